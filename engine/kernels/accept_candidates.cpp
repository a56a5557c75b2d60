// Records the acceptance of several candidates for one position.
#include "kernels/accept_candidates.h"

#include "shared/accept_candidates_args.h"

namespace auspex {

void record_accept_candidates(Recorder& to, const CandidateBuffers& b, uint32_t n_entries, uint32_t vocab, uint32_t draft_vocab) {
    const Kernel* kernel =
        to.kernel({"accept_candidates", 8, sizeof(gpu::AcceptCandidatesArgs), true, {to.tuning().lanes}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {n_entries, 1, 1}, gpu::AcceptCandidatesArgs{.n_entries = n_entries, .vocab = vocab, .draft_vocab = draft_vocab},
                    {b.target_logits, b.draft_logits, b.target_choices, b.draft_choices, b.state, b.entries, b.candidates,
                     b.outcomes});
}

} // namespace auspex
