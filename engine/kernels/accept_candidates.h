// Several independent proposals for one position: multi-step speculative sampling (Miao et al. 2024, SpecInfer,
// algorithm 2), after vocab_partials and pick have reduced every row. Exactly the target's distribution, however many proposals
// there are, whatever they were drawn from.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/accept_candidates_args.h"

namespace auspex {

namespace ops {
struct AcceptCandidates {
    static constexpr std::string_view kShader = "accept_candidates";
    using Args = gpu::AcceptCandidatesArgs;
    struct Bindings {
        BufferView target_logits;  // (target rows, vocab) f32
        BufferView draft_logits;   // (draft rows, draft_vocab) f32; any buffer when all candidates are one-hot
        BufferView target_choices; // (target rows) VocabChoice, with the rows' cuts
        BufferView draft_choices;  // (draft rows) VocabChoice; any buffer when all candidates are one-hot
        BufferView state;          // (slots) SlotState
        BufferView entries;        // (n_entries) CandidateEntry
        BufferView candidates;     // Candidate
        BufferView outcomes;       // (n_entries) CandidateOutcome, written where an entry is live
    };
};
} // namespace ops

// At most 65,535 entries.
void record_accept_candidates(Recorder& to, const ops::AcceptCandidates::Bindings& buffers, uint32_t n_entries, uint32_t vocab, uint32_t draft_vocab);

} // namespace auspex
