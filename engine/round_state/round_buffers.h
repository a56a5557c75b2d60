// GPU state of all slots, and scratch of one round.
#pragma once

#include "tensor/upload.h"

namespace auspex {

// nodes: rows of an entry in the target's pass, see shaders/shared/round_rows.h; here for max_draft_len.
struct RoundBuffers {
    Buffer state;           // (slots) SlotState
    Buffer history;         // (slots, history_stride) uint
    Buffer round_slots;     // (batch) RoundSlot
    Buffer target_rows;     // (batch, nodes) Row
    Buffer draft_rows;      // regions of Row
    Buffer counts;          // counts_words(batch) uint
    Buffer index;           // (slots, 1 + index_words) uint: of searches
    Buffer target_logits;   // (batch, nodes, vocab) f32, or BestTokens: at most half as many
    Buffer draft_logits;    // (batch, draft_len, draft_vocab) f32: what the drafts were sampled from, penalties and biases included; or
                            // BestTokens; of engines without a draft model 1 f32
    Buffer biases;          // (slots, kMaxBiases) TokenBias
    Buffer truncate_scratch; // (batch · nodes, truncate_words(vocab)) uint
    Buffer cuts;            // (batch · nodes) Cut
    Buffer partials;        // (batch · nodes, vocab chunks) VocabChoice
    Buffer target_choices;  // (batch, nodes) VocabChoice
    Buffer draft_choices;   // (batch, draft_len) VocabChoice
    Buffer plans;           // (batch) AcceptPlan
    Buffer race_partials;   // (batch, vocab chunks) RacePartial
    Buffer logprob_partials; // (batch · nodes, vocab chunks) LogprobPartial
    Buffer kept_logits;     // (batch · nodes, kept_words_of(history_stride)) f32: the target's that edit_logits may have changed
    uint32_t history_stride = 0;
    uint32_t max_batch = 0, max_draft_len = 0;

    static Result<RoundBuffers> create(MemoryPool& memory, Uploader& uploader, uint32_t n_slots, uint32_t history_stride,
                                       uint32_t max_batch, uint32_t max_draft_len, uint32_t vocab, uint32_t draft_vocab); // 0: no draft model
};

} // namespace auspex
