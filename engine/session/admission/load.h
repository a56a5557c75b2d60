// Where a sequence is on its way, and how long one that waits will: plain data, and the arithmetic of it.
#pragma once

#include "session/prefix/prefix_tree.h"

namespace auspex {

// Equal to auspex_phase.
enum class Phase : uint32_t { waiting = 0, prompt = 1, running = 2, finished = 3, parked = 4 };

struct EngineLoad {
    uint32_t n_running = 0, n_waiting = 0; // sequences with a slot that are not over, and without
    uint64_t waiting_tokens = 0;
    double wait_ms = -1; // of one that came now; < 0: not known
    uint32_t target_pages = 0, target_pages_free = 0, draft_pages = 0, draft_pages_free = 0;
    uint32_t target_pages_evictable = 0, draft_pages_evictable = 0; // of the free ones: only the prefix cache holds them
    uint64_t n_parked = 0; // times, since the engine began
    PrefixTree::Counts prefix = {};
    double turn_ms = 0, turn_expected_ms = 0; // of the oldest turn that is submitted whole and not done: so far, and predicted
};

// ahead_ms: GPU time that those who run and those who wait before it still need. With a slot free it waits for nobody. Else so many
// of the n_ahead must end first as have no slot, and one more; and in company each takes about as much of the device as another.
inline double predicted_wait_ms(double ahead_ms, uint32_t n_ahead, uint32_t n_slots) {
    return n_ahead < n_slots ? 0 : ahead_ms * (n_ahead + 1 - n_slots) / n_ahead;
}

} // namespace auspex
