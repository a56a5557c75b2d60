// Known tokens are read between rounds, never instead of them: after every chunk whoever waits for a round gets one, chunks are as
// long as the texts that are coming may be kept waiting, and two prompts take turns, so that a long one does not hide a short one.
// Knows ids and predicted times; which bits come of it does not depend on any of this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace auspex {

class TurnOrder {
  public:
    bool round_is_due() const { return chunk_was_last_; } // if anybody waits for one
    void round_began() { chunk_was_last_ = false; }
    void chunk_began(uint64_t first) { // of a chunk's prompts the one that it begins with
        chunk_was_last_ = true;
        last_first_ = first;
    }

    // Puts those that have a prompt to be read, the oldest first, into the order in which a chunk takes them.
    template <typename Item, typename IdOf> void arrange(std::vector<Item>& oldest_first, IdOf id_of) const {
        if (oldest_first.size() > 1 && id_of(oldest_first[0]) == last_first_) std::swap(oldest_first[0], oldest_first[1]);
    }

  private:
    bool chunk_was_last_ = false;
    uint64_t last_first_ = 0;
};

// The most rows, of those that `fewer` steps down through from `most`, that are predicted to take at most limit_ms; the fewest if none do.
inline uint32_t rows_within(double limit_ms, uint32_t most, const std::function<double(uint32_t)>& ms_of, const std::function<uint32_t(uint32_t)>& fewer) {
    uint32_t rows = most;
    for (uint32_t next = fewer(rows); next < rows && ms_of(rows) > limit_ms; next = fewer(rows)) rows = next;
    return rows;
}

} // namespace auspex
