// The plain data that flows between the stages: what was asked of a sequence, what it holds, what a round did to it.
//
// The invariant, between rounds: the target cache holds every token of the sequence except the last one; the last token
// is known but not yet evaluated. The draft cache holds some prefix of that.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace auspex {

constexpr uint32_t kMaxDraft = 15; // drafts per round

struct SamplingParams {
    float temperature = 0; // 0: greedy
    uint64_t seed = 0;
};

enum class StopReason : uint32_t { none = 0, eos = 1, length = 2, context = 3, cancelled = 4 };
enum class TokenOrigin : uint32_t { plain = 0, accepted = 1, correction = 2, bonus = 3 };

// What one round did to one slot.
struct Outcome {
    uint32_t start = 0;           // position of the last token before the round
    uint32_t draft_len = 0;       // drafts tested
    uint32_t accepted_len = 0;    // drafts the target accepted, before stops and limits
    uint32_t draft_cache_len = 0; // rows the draft cache holds afterwards
    StopReason stop = StopReason::none;
    uint32_t n_tokens = 0;        // emitted: at most accepted_len + 1
    std::array<uint32_t, kMaxDraft + 1> tokens = {};

    TokenOrigin origin(uint32_t index) const {
        if (index < accepted_len) return TokenOrigin::accepted;
        if (draft_len == 0) return TokenOrigin::plain;
        return accepted_len == draft_len ? TokenOrigin::bonus : TokenOrigin::correction;
    }
    // A draft after a stop or limit counts neither as drafted nor as accepted.
    uint32_t counted_drafts() const { return stop == StopReason::none || draft_len < n_tokens ? draft_len : n_tokens; }
    uint32_t counted_accepted() const { return accepted_len < n_tokens ? accepted_len : n_tokens; }
};

// Sums over the rounds of one sequence. Times are GPU milliseconds, negative when the device has no timestamps.
struct SequenceStats {
    uint32_t rounds = 0;
    uint32_t draft_n = 0;
    uint32_t draft_n_accepted = 0;
    double draft_ms = 0, verify_ms = 0, accept_ms = 0;
    std::array<uint32_t, kMaxDraft + 1> accepted_histogram = {};

    void add(const Outcome& outcome) {
        rounds += 1;
        draft_n += outcome.counted_drafts();
        draft_n_accepted += outcome.counted_accepted();
        accepted_histogram[outcome.counted_accepted()] += 1;
    }
};

} // namespace auspex
