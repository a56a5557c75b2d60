// Records the acceptance of several candidates for one position.
#include "kernels/accept_candidates.h"

namespace auspex {

void record_accept_candidates(Recorder& to, const ops::AcceptCandidates::Bindings& buffers, uint32_t n_entries, uint32_t vocab, uint32_t draft_vocab) {
    const auto kernel = to.kernel<ops::AcceptCandidates>({.constants = {to.tuning().lanes}, .has_subgroup_variant = true});
    if (kernel) to.cmd.dispatch(kernel, {n_entries, 1, 1}, {.n_entries = n_entries, .vocab = vocab, .draft_vocab = draft_vocab}, buffers);
}

} // namespace auspex
