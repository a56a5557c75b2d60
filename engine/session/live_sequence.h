// One sequence as the host knows it: what was asked, the tokens read so far, what is under way, and its output queues.
#pragma once

#include "session/request.h"
#include "session/speculation/policy.h"
#include "tokens/text_stream.h"

#include <deque>
#include <optional>

namespace auspex {

struct Slot; // session/slots/slots.h

struct OutputToken {
    uint32_t id;
    TokenOrigin origin;
    uint32_t text_bytes; // of the text stream that this token completed
};

// Says which rows use the prompt kernels, for life. Of every part that was put in these are its tokens except the last,
// plus the token just before the part where nothing had evaluated that yet. All other rows use the row family.
class PromptRows {
  public:
    // [begin, end) joins; begin is not below what joined before.
    void add(uint32_t begin, uint32_t end);
    bool contains(uint32_t row) const;
    // The first row at or after `row` that takes the other path than `row`.
    uint32_t end_of_path(uint32_t row) const;

  private:
    struct Range {
        uint32_t begin, end;
    };
    std::vector<Range> ranges_; // ascending, apart, not empty
};

struct LiveSequence {
    uint64_t id = 0;
    Slot* slot = nullptr; // its own from when it is let in; null: it waits, or has ended before its turn came
    SequenceRequest request;
    std::string cache_salt;       // of all its parts, and of its forks
    std::vector<uint32_t> tokens; // known: prompt and generated
    uint32_t prompt_n = 0;        // tokens before the latest generation began
    PromptRows prompt_rows;
    uint64_t fork_of = 0;         // waits to be copied from this sequence; 0: no
    uint32_t fork_rows = 0;       // that are copied then
    uint32_t epoch = 0;           // counts appends and parkings: rounds queued in an earlier one say nothing

    uint32_t wanted_rows = 0;     // of the target cache, before there is a round
    uint32_t target_rows = 0;     // … that are evaluated or queued, until there are so many
    uint32_t target_len = 0;      // rows committed, as of the last round read
    uint32_t target_len_before = 0; // … of the round before that
    uint32_t draft_rows = 0;      // rows of the draft cache, as of the last round read or catch-up queued
    uint32_t unread_rounds = 0;   // queued, not yet read
    uint32_t unread_rows = 0;     // rows those may add at most
    uint32_t unread_undrafted = 0; // of the unread rounds those that leave the draft cache as it is
    Drafter drafter = Drafter::none; // of the next round
    uint32_t draft_len = 0;          // … how many drafts it shall have
    DraftChoice choice;              // … and what the policy said to it
    bool planned = false;            // those three are for a round that was not started yet
    uint32_t match_len = 0;        // context tokens of the proposals found at the end of the last round read
    uint32_t match_len_before = 0; // … of the round before that
    std::vector<uint32_t> proposed; // those proposals, of a search
    uint64_t last_turn = 0;       // that it took part in
    bool drafts_are_off = false;  // the draft model's pages were needed elsewhere, until the next part
    bool is_held_back = false;    // parked by its caller, until that resumes it
    uint32_t n_parked = 0;        // times
    uint64_t parked_at = 0;       // count of sequences that had ended by then
    uint32_t prefilled_n = 0;     // rows that prefills gave the target in this epoch
    uint32_t cached_n = 0;        // … that were in the cache when it was to be read
    StopReason stop = StopReason::none;

    std::optional<TextStream> stream; // none: the engine has no tokenizer
    std::deque<OutputToken> output;
    std::deque<TokenLogprobs> logprobs; // in step with it, of parts that ask for them
    std::string text;
    std::string undecided; // after `text`: may turn out to be the beginning of a stop text
    SequenceStats stats;
    std::optional<SequenceSpeculation> speculation; // of all its parts; none before its first round
    uint64_t came_ns = 0; // its first part
    uint64_t created_ns = 0, first_round_ns = 0, first_token_ns = 0, last_token_ns = 0;

    bool holds() const { return request.max_tokens == kHoldTokens; }
    bool is_prefilled() const { return slot && fork_of == 0 && target_rows == wanted_rows; }
    bool is_over() const { return stop != StopReason::none || (holds() && is_prefilled()); } // nothing more is to come of it
    // Whether text is coming: a long prefill of somebody else's would be felt.
    bool is_speaking() const { return is_prefilled() && stop == StopReason::none && !holds(); }
    uint32_t n_generated() const { return static_cast<uint32_t>(tokens.size()) - prompt_n; }

    // That may be said before its limits, but for what rounds under way will say.
    uint32_t tokens_left(uint32_t max_context) const;
    const DrafterRow& who() const { return request.drafters->of(drafter); } // drafts in the next round
    // Asks for drafts of the next round: as many as there are become its draft_len. No round of it is under way.
    std::vector<uint32_t> ask(uint32_t vocab);
    // Whether a round may be queued that has something to do, but for the draft model's lag.
    bool awaits_round(uint32_t max_context) const;
    // Rows that the draft model, which holds draft_context rows of a sequence (0: there is none), must be given before it can draft.
    uint32_t lag_rows(uint32_t draft_context) const;
    // Whether it must be given some, because it drafts in the next round.
    bool lags(uint32_t draft_context) const { return planned && who().need == DraftNeed::pass && lag_rows(draft_context) > 0; }
    // Whether it is to hold the whole prompt, for whoever goes on from there.
    bool holds_for_draft(uint32_t draft_context) const { return holds() && may_use_model() && target_len < draft_context; }
    // As its request has it, as long as the draft model has pages for it.
    bool may_use_model() const { return request.may_use_model() && !drafts_are_off; }
    bool names_model() const { return request.names_model() && !drafts_are_off; }

    // A round's tokens become known; text and statistics follow. of_tokens: log-probabilities of each of them, where they were asked for.
    void apply(Outcome outcome, uint64_t time_ns, std::span<const TokenLogprobs> of_tokens = {});
    // Nothing follows what was generated: an unfinished character ends, and the beginning of a stop text was none.
    void end_text();
    // It lost its slot, and all rows with it: they are to be read again, each by the path that it took. Rounds under way say nothing.
    void forget_rows();
    // Goes on after `request.prompt`, which may be empty. What the caches hold stays; text not yet taken stays too.
    void append(SequenceRequest next, const Tokenizer* tokenizer, uint64_t time_ns);
};

} // namespace auspex
