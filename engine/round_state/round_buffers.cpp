// Sizes of what a round works on: for the largest batch and draft_len.
#include "round_state/round_buffers.h"

#include "kernels/truncate.h"
#include "shared/accept_args.h"
#include "shared/logprobs_args.h"
#include "shared/round_rows.h"
#include "shared/rows_args.h"
#include "shared/vocab_args.h"

#include <algorithm>

namespace auspex {

Result<RoundBuffers> RoundBuffers::create(MemoryPool& memory, Uploader& uploader, uint32_t n_slots, uint32_t history_stride,
                                          uint32_t max_batch, uint32_t max_draft_len, uint32_t vocab, uint32_t draft_vocab) {
    RoundBuffers b;
    b.history_stride = history_stride;
    b.max_batch = max_batch;
    b.max_draft_len = max_draft_len;
    const uint64_t target_rows = uint64_t(max_batch) * gpu::nodes_of(max_draft_len), draft_rows = uint64_t(max_batch) * std::max(max_draft_len, 1u);
    const uint64_t chunks = vocab_chunks(vocab);
    auto make = [&](Buffer& buffer, uint64_t bytes) -> Status {
        AUSPEX_TRY_SET(buffer, create_zeroed(memory, uploader, bytes));
        return ok_status();
    };
    AUSPEX_TRY(make(b.state, n_slots * sizeof(gpu::SlotState)));
    AUSPEX_TRY(make(b.history, uint64_t(n_slots) * history_stride * 4));
    AUSPEX_TRY(make(b.round_slots, max_batch * sizeof(gpu::RoundSlot)));
    AUSPEX_TRY(make(b.target_rows, target_rows * sizeof(gpu::Row)));
    // The region size depends on the batch bucket; the largest bucket needs the most.
    AUSPEX_TRY(make(b.draft_rows, gpu::draft_pass_first_row(max_batch, gpu::nodes_of(max_draft_len)) * sizeof(gpu::Row)));
    AUSPEX_TRY(make(b.counts, gpu::counts_words(max_batch) * 4));
    AUSPEX_TRY(make(b.index, uint64_t(n_slots) * (1 + gpu::index_words_for(history_stride)) * 4));
    const auto logits_bytes = [](uint32_t n_tokens) { return uint64_t{ceil_div(n_tokens, 2u)} * sizeof(gpu::BestToken); }; // f32 logits of a row, or best tokens
    AUSPEX_TRY(make(b.target_logits, target_rows * logits_bytes(vocab)));
    AUSPEX_TRY(make(b.draft_logits, draft_vocab > 0 ? draft_rows * logits_bytes(draft_vocab) : 4));
    AUSPEX_TRY(make(b.biases, uint64_t(n_slots) * gpu::kMaxBiases * sizeof(gpu::TokenBias)));
    AUSPEX_TRY(make(b.truncate_scratch, target_rows * truncate_words(vocab) * 4));
    AUSPEX_TRY(make(b.cuts, target_rows * sizeof(gpu::Cut)));
    AUSPEX_TRY(make(b.partials, target_rows * chunks * sizeof(gpu::VocabChoice)));
    AUSPEX_TRY(make(b.target_choices, target_rows * sizeof(gpu::VocabChoice)));
    AUSPEX_TRY(make(b.draft_choices, draft_rows * sizeof(gpu::VocabChoice)));
    AUSPEX_TRY(make(b.plans, max_batch * sizeof(gpu::AcceptPlan)));
    AUSPEX_TRY(make(b.race_partials, max_batch * chunks * sizeof(gpu::RacePartial)));
    AUSPEX_TRY(make(b.logprob_partials, target_rows * chunks * sizeof(gpu::LogprobPartial)));
    AUSPEX_TRY(make(b.kept_logits, target_rows * gpu::kept_words_of(history_stride) * 4));
    return b;
}

} // namespace auspex
