// One sequence as the host knows it: what was asked, the tokens read so far, what is under way, and its output queues.
#pragma once

#include "sequence/sequence.h"
#include "tokens/text_stream.h"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace auspex {

constexpr uint32_t kHoldTokens = 0xffffffffu; // max_tokens of a sequence that only reads its prompt

struct SequenceRequest {
    std::vector<uint32_t> prompt; // at least one token; unused by forks
    uint32_t max_tokens = 0;      // 0: until the context is full; kHoldTokens: read the prompt only
    SamplingParams sampling;
    uint32_t draft_len = 0;
    bool ignore_eos = false;
};

struct OutputToken {
    uint32_t id;
    TokenOrigin origin;
    uint32_t text_bytes; // of the text stream that this token completed
};

struct LiveSequence {
    uint64_t id = 0;
    uint32_t slot = 0;
    SequenceRequest request;
    std::vector<uint32_t> tokens; // known: prompt and generated
    uint32_t prompt_n = 0;        // tokens before generation began
    uint32_t prompt_rows = 0;     // rows below use the prompt kernels, for life
    uint64_t fork_of = 0;         // waits to be copied from this sequence; 0: no

    bool admitted = false;        // the GPU was told of it
    uint32_t target_rows = 0;     // rows of the target cache that are evaluated or queued, while the prompt is read
    uint32_t target_len = 0;      // rows committed, as of the last round read
    uint32_t draft_rows = 0;      // rows of the draft cache, as of the last round read or replay queued
    uint32_t unread_rounds = 0;   // queued, not yet read
    uint32_t unread_rows = 0;     // rows those may add at most
    uint64_t last_turn = 0;       // that it took part in
    StopReason stop = StopReason::none;

    std::optional<TextStream> stream; // none: the engine has no tokenizer
    std::deque<OutputToken> output;
    std::string text;
    SequenceStats stats;
    uint64_t created_ns = 0, first_round_ns = 0, first_token_ns = 0, last_token_ns = 0;

    bool holds() const { return request.max_tokens == kHoldTokens; }
    bool prompt_read() const { return fork_of == 0 && target_rows == prompt_rows_wanted(); }
    uint32_t prompt_rows_wanted() const { return static_cast<uint32_t>(prompt_n) - 1; }
    uint32_t n_generated() const { return static_cast<uint32_t>(tokens.size()) - prompt_n; }
    bool wants_drafts() const { return request.draft_len > 0; }

    // A round's tokens become known; text and statistics follow.
    void apply(const Outcome& outcome, uint64_t time_ns);
};

} // namespace auspex
