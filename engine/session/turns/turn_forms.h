// Which recordings sequences need: what a request asks of a round, and every turn that sequences with it may take part in.
#pragma once

#include "session/request.h"
#include "session/turns/turn_queue.h"

#include <algorithm>

namespace auspex {

constexpr uint32_t kRowBucket = 8, kFewRows = 64, kManyRowBucket = 64;
constexpr uint32_t kCatchUpRows = 16; // of a turn, of generated tokens

// Recordings of prefills and of prompts' catch-ups exist for multiples of 8 rows, beyond 64 rows of 64.
inline uint32_t row_bucket(uint32_t n_rows, uint32_t max_replay_rows) {
    return std::min(round_up(n_rows, n_rows > kFewRows ? kManyRowBucket : kRowBucket), max_replay_rows);
}

// All that the recording of an answer's catch-up holds, however few there are: kernels of another row count cost more to build than they save.
inline uint32_t catch_up_rows(uint32_t max_replay_rows) { return std::min(kCatchUpRows, max_replay_rows); }

// The next shorter recording of a prefill, at most half as long; the shortest has none.
inline uint32_t shorter_bucket(uint32_t rows) { return rows <= kRowBucket ? rows : row_bucket(rows / 2, rows); }

struct TurnLimits {
    uint32_t max_batch, max_replay_rows, max_draft_len;
    bool has_draft = false;       // a drafter with passes,
    bool has_draft_cache = false; // whose cache may have to catch up
    bool may_run_short = false;   // of pages, so that sequences are parked
};

// A round that nobody takes part in yet; and with one more sequence, but for its drafts.
RoundForm empty_round();
void add_to_round(RoundForm& form, const SequenceRequest& request);
void join_sampling(RoundForm& form, const RoundForm& other); // what sequences of either need, but for batch and drafts
RoundForm without_search(RoundForm form); // where no draft could pay

// Every turn that sequences with such a request may take part in.
std::vector<TurnKey> turns_of(const SequenceRequest& request, const TurnLimits& limits);

// What rounds with draft passes need besides: turns that let the draft model begin; none where no cache of its own is there.
std::vector<TurnKey> catch_up_turns(const TurnLimits& limits);

} // namespace auspex
