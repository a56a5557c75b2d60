// Several independent proposals for one position: multi-step speculative sampling (Miao et al. 2024, SpecInfer,
// algorithm 2), after vocab_partials and pick have reduced every row. Exactly the target's distribution, however many proposals
// there are, whatever they were drawn from.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

struct CandidateBuffers {
    BufferView target_logits;  // (target rows, vocab) f32
    BufferView draft_logits;   // (draft rows, draft_vocab) f32; any buffer when all candidates are one-hot
    BufferView target_choices; // (target rows) VocabChoice, with the rows' cuts
    BufferView draft_choices;  // (draft rows) VocabChoice; any buffer when all candidates are one-hot
    BufferView state;          // (slots) SlotState
    BufferView entries;        // (n_entries) CandidateEntry
    BufferView candidates;     // Candidate
    BufferView outcomes;       // (n_entries) CandidateOutcome, written where an entry is live
};

// At most 65,535 entries.
void record_accept_candidates(Recorder& to, const CandidateBuffers& buffers, uint32_t n_entries, uint32_t vocab, uint32_t draft_vocab);

} // namespace auspex
