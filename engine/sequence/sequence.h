// The plain data that flows between the stages: what was asked of a sequence, what it holds, what a round did to it.
//
// The invariant, between rounds: the target cache holds every token of the sequence except the last one; the last token
// is known but not yet evaluated. The draft cache holds some prefix of that.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace auspex {

constexpr uint32_t kMaxDraft = 15; // drafts per round

// Whose drafts a round tests; 0: nobody's. draft/drafters.h has them all.
enum class Drafter : uint32_t;
constexpr uint32_t kMostDrafters = 8;
// How drafts are tested; equal kAccept… of shared/slot_state.h. Greedy sampling compares tokens under either.
// simulated: a coin decides, to measure speed at a given acceptance; the text means nothing.
enum class AcceptanceRule : uint32_t { rejection = 0, coupled = 1, simulated = 2 };

constexpr uint32_t kAutoDraftLen = 0xffffffffu;

struct TokenBias {
    uint32_t token;
    float bias; // added to the logit; -inf bans the token
};

// What choosing a token needs of a row of logits; each more than the one before.
enum class LogitsUse : uint32_t {
    largest,     // which is the largest
    largest_key, // which is the largest after coupled noise
    all,
};

// What is done to logits of target and drafts alike, in this order: penalties, biases, top_k, top_p, min_p, temperature.
struct SamplingParams {
    float temperature = 0; // 0: greedy
    uint64_t seed = 0;
    float repeat_penalty = 1;    // tokens seen so far: positive logits are divided by it, negative ones multiplied; 1: off
    float presence_penalty = 0;  // subtracted once from tokens seen so far
    float frequency_penalty = 0; // … and once for each time they were seen
    uint32_t top_k = 0;          // 0: off
    float top_p = 1;             // 1: off
    float min_p = 0;             // of the most probable token's probability; 0: off
    std::vector<TokenBias> biases = {};
    AcceptanceRule acceptance = AcceptanceRule::rejection;
    float lenience = 1; // Leviathan et al. 2023, A.5; below 1 the text is no longer distributed as the target's
    float simulated_alpha = 0; // of AcceptanceRule::simulated: the probability with which a draft passes

    bool edits_logits() const {
        return repeat_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0 || !biases.empty();
    }
    LogitsUse logits_use() const {
        if (lenience != 1 || edits_logits() || truncates()) return LogitsUse::all;
        if (temperature == 0) return LogitsUse::largest;
        return acceptance == AcceptanceRule::coupled ? LogitsUse::largest_key : LogitsUse::all;
    }
    bool truncates() const { return temperature > 0 && (top_k > 0 || top_p < 1 || min_p > 0); }
};

// What was asked of the target's distributions besides tokens.
constexpr uint32_t kMostLogprobs = 20; // best tokens of a row
struct TokenLogprob {
    uint32_t id;
    float logprob; // natural logarithm
};
// Of one generated token: of the target's logits before penalties, biases, truncation and temperature.
struct TokenLogprobs {
    TokenLogprob token;
    uint32_t n_best = 0;
    std::array<TokenLogprob, kMostLogprobs> best = {}; // the most probable first, ties by lowest id
};

enum class StopReason : uint32_t { none = 0, eos = 1, length = 2, context = 3, cancelled = 4, text = 5 };
enum class TokenOrigin : uint32_t { plain = 0, accepted = 1, correction = 2, bonus = 3 };

// The first token that a search had proposed for a round, whether or not it was a draft, held against the one that came.
enum class Foretold : uint32_t { nothing = 0, wrong = 1, right = 2 };

// What one round did to one slot.
struct Outcome {
    uint32_t start = 0;           // position of the last token before the round
    uint32_t draft_len = 0;       // drafts tested
    uint32_t accepted_len = 0;    // drafts the target accepted, before stops and limits
    uint32_t draft_cache_len = 0; // rows the draft cache holds afterwards
    StopReason stop = StopReason::none;
    Drafter drafter = {};         // whose drafts were tested
    float overlap = 0;      // Σ min(1, target / draft) over the tested drafts, up to the first rejected one
    uint32_t not_finite = 0; // bit i: the target's row that gave token i has no finite largest logit: all NaN, all -inf, or +inf
    uint32_t match_len = 0; // context tokens that the next round's proposals were found by; 0: none were found
    std::vector<uint32_t> proposed = {}; // those proposals, of a search
    Foretold foretold = Foretold::nothing; // by what had been found for this round
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
    // Drafts that the test looked at: it ends at the first it rejects.
    uint32_t tested() const { return accepted_len < draft_len ? accepted_len + 1 : draft_len; }
};

// Sums over the rounds of one sequence. Times are GPU milliseconds, negative when the device has no timestamps.
struct SequenceStats {
    uint32_t rounds = 0;
    uint32_t draft_n = 0;
    uint32_t draft_n_accepted = 0;
    double draft_ms = 0, verify_ms = 0, accept_ms = 0;
    std::array<uint32_t, kMaxDraft + 1> accepted_histogram = {};
    uint32_t n_tested = 0; // drafts the test looked at
    double overlap = 0;    // Σ min(1, target / draft) over those: divided by n_tested an unbiased estimate of α = Σ min(target, draft)
    std::array<uint32_t, kMostDrafters> drafter_rounds = {}; // by Drafter
    uint32_t n_not_finite = 0; // tokens from rows of the target without a finite largest logit: they mean nothing

    void add(const Outcome& outcome) {
        rounds += 1;
        draft_n += outcome.counted_drafts();
        draft_n_accepted += outcome.counted_accepted();
        accepted_histogram[outcome.counted_accepted()] += 1;
        if (outcome.n_tokens == outcome.accepted_len + 1) { // else drafts after the stop were tested too
            n_tested += outcome.tested();
            overlap += outcome.overlap;
        }
        drafter_rounds[static_cast<size_t>(outcome.drafter)] += 1;
        n_not_finite += static_cast<uint32_t>(std::popcount(outcome.not_finite & ((1u << outcome.n_tokens) - 1)));
    }
};

} // namespace auspex
