// Records the radix select: 2 dispatches for min_p, 6 for top_k or top_p, 9 for both.
#include "kernels/truncate.h"

namespace auspex {

uint64_t truncate_words(uint32_t vocab) {
    return gpu::truncate_scratch_words(vocab_chunks(vocab));
}

void record_truncate(Recorder& to, const TruncateBuffers& b, const VocabShape& shape, Truncation what) {
    if (shape.vocab > gpu::kMaxTruncateVocab) {
        to.cmd.fail({Code::unsupported, "truncation takes vocabularies of up to " + std::to_string(gpu::kMaxTruncateVocab) + " tokens, this one has " +
                                            std::to_string(shape.vocab)});
        return;
    }
    const std::vector<uint32_t> constants = {to.tuning().vocab_threads};
    const auto prepare = to.kernel<ops::TruncatePrepare>({.constants = constants});
    const auto level = to.kernel<ops::TruncateLevel>({.constants = constants});
    const auto cut = to.kernel<ops::TruncateCut>({.constants = constants});
    if (!prepare || !level || !cut) return;
    const uint32_t n_chunks = vocab_chunks(shape.vocab);
    gpu::TruncateArgs args = {};
    set_logits_rows(args, shape);
    args.search = gpu::kSearchTopK;
    const ops::TruncatePrepare::Bindings buffers = {.logits = b.logits, .state = b.state, .rows = shape.rows, .scratch = b.scratch};
    auto count_level = [&](uint32_t search, uint32_t of_level) {
        args.search = search;
        args.level = of_level;
        to.cmd.dispatch(level, {n_chunks, shape.n_rows, 1}, args, buffers);
        to.cmd.barrier();
    };
    to.cmd.dispatch(prepare, {n_chunks, shape.n_rows, 1}, args, buffers);
    to.cmd.barrier();
    if (what.top_k || what.top_p) count_level(gpu::kSearchTopK, 0);
    for (uint32_t l = 1; what.top_k && l < gpu::kSelectLevels; ++l) count_level(gpu::kSearchTopK, l);
    for (uint32_t l = 1; what.top_p && l < gpu::kSelectLevels; ++l) count_level(gpu::kSearchTopP, l);
    to.cmd.dispatch(cut, {shape.n_rows, 1, 1}, args,
                    {.logits = b.logits, .state = b.state, .rows = shape.rows, .scratch = b.scratch, .cuts = b.cuts});
}

} // namespace auspex
