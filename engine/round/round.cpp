// The round on one screen.
#include "round/round.h"

#include "shared/accept_args.h"
#include "shared/rows_args.h"
#include "shared/vocab_args.h"

#include <algorithm>

namespace auspex {

namespace {
// Parts that a draft pass is cut into; one is not worth a cut.
uint32_t draft_slices(const RoundModels& models, uint32_t n_slices) {
    const auto parts = static_cast<uint32_t>(ceil_div(n_slices * models.draft->weights().bytes(), models.target.weights().bytes()));
    return parts > 1 ? parts : 0;
}
} // namespace

void record_round(Recorder& to, const RoundModels& models, const RoundBuffers& b, const TurnBuffers& turn, const RoundForm& form,
                  uint32_t n_slices) {
    const uint32_t draft_len = form.draft_len, batch = form.batch;
    const LlamaModel& target = models.target;
    auto counts = [&](uint32_t first) { return b.counts.view(first * 4, 12); };

    to.cmd.begin_segment("round");
    record_commands(to, models, b, turn);
    record_rows(to, {turn.batch.view(), b.state.view(), b.history.view(), b.round_slots.view(), b.target_rows.view(), b.draft_rows.view(), b.counts.view()},
                {.batch = batch,
                 .draft_len = draft_len,
                 .history_stride = b.history_stride,
                 .target_kv_heads = target.config().n_kv_heads,
                 .draft_kv_heads = models.draft ? models.draft->config().n_kv_heads : 1,
                 .model_drafts = form.model_drafts,
                 .draft_max_rows = models.draft ? models.draft->cache().shape().max_rows : 0});
    to.cmd.barrier();

    const TransformBuffers transforms = {b.state.view(),  b.round_slots.view(),      b.history.view(), b.biases.view(),
                                         b.target_rows.view(), b.truncate_scratch.view(), b.cuts.view()};
    const TransformForm transform_form = {form.edits_logits, form.truncation, b.history_stride, draft_len};
    DraftBuffers draft = {b.draft_rows.view(),  b.target_rows.view(), counts(gpu::kCountsDraftFirst), counts(gpu::kCountsDraftNext), b.state.view(),
                          b.round_slots.view(), b.draft_logits.view(), b.partials.view(),              b.draft_choices.view(), transforms};
    for (uint32_t step = 0; form.model_drafts && step < draft_len; ++step) {
        to.cmd.begin_region("draft");
        record_draft_step(to, *models.draft, draft, step, draft_len, batch, form.logits_use, transform_form,
                          models.draft->slice_layers(draft_slices(models, n_slices)));
        to.cmd.end_region();
        if (n_slices > 0) to.cmd.cut();
    }

    VerifyBuffers verify = {b.target_rows.view(), counts(gpu::kCountsTarget), b.state.view(), b.round_slots.view(), b.target_logits.view(), b.partials.view(), b.target_choices.view(), transforms};
    to.cmd.begin_region("verify");
    record_verify(to, target, verify, draft_len, batch, form.logits_use, transform_form, target.slice_layers(n_slices));
    to.cmd.end_region();
    if (n_slices > 0) to.cmd.cut();

    to.cmd.begin_region("accept");
    record_acceptance(to, {b.target_logits.view(), b.draft_logits.view(), b.target_choices.view(), b.draft_choices.view(), b.state.view(), b.history.view(),
                           b.round_slots.view(), b.target_rows.view(), b.plans.view(), b.race_partials.view(), turn.records.view(), b.counts.view(), b.index.view()},
                      {.batch = batch, .draft_len = draft_len, .vocab = target.config().vocab_size, .draft_vocab = models.draft ? models.draft->config().vocab_size : 0, .history_stride = b.history_stride, .races = form.logits_use == LogitsUse::all,
                       .index_words = form.searches ? gpu::index_words_for(b.history_stride) : 0});
    if (form.searches) {
        to.cmd.barrier();
        record_propose(to, {turn.batch.view(), b.state.view(), b.history.view(), turn.records.view(), b.counts.view(), b.index.view()}, b.history_stride);
    }
    to.cmd.end_region();
    to.cmd.end_segment();
}

void record_commands(Recorder& to, const RoundModels& models, const RoundBuffers& b, const TurnBuffers& turn) {
    const KvCache& target = models.target.cache();
    const KvCache& draft = models.draft ? models.draft->cache() : target;
    record_apply_commands(to, {turn.count.view(), turn.commands.view(), b.state.view(), b.history.view(), target.page_table(), draft.page_table(),
                               b.biases.view()},
                          turn.max_commands, b.history_stride, target.pages_per_slot(), draft.pages_per_slot());
    to.cmd.barrier();
}

Result<RoundBuffers> RoundBuffers::create(MemoryPool& memory, Uploader& uploader, uint32_t n_slots, uint32_t history_stride,
                                          uint32_t max_batch, uint32_t max_draft_len, uint32_t vocab, uint32_t draft_vocab) {
    RoundBuffers b;
    b.history_stride = history_stride;
    b.max_batch = max_batch;
    b.max_draft_len = max_draft_len;
    const uint64_t target_rows = uint64_t(max_batch) * (max_draft_len + 1), draft_rows = uint64_t(max_batch) * std::max(max_draft_len, 1u);
    const uint64_t chunks = vocab_chunks(vocab);
    auto make = [&](Buffer& buffer, uint64_t bytes) -> Status {
        AUSPEX_TRY_ASSIGN(made, memory.create(bytes, MemoryUse::device));
        AUSPEX_TRY(uploader.zero_and_wait(made.view()));
        buffer = std::move(made);
        return ok_status();
    };
    AUSPEX_TRY(make(b.state, n_slots * sizeof(gpu::SlotState)));
    AUSPEX_TRY(make(b.history, uint64_t(n_slots) * history_stride * 4));
    AUSPEX_TRY(make(b.round_slots, max_batch * sizeof(gpu::RoundSlot)));
    AUSPEX_TRY(make(b.target_rows, target_rows * sizeof(gpu::Row)));
    // The region size depends on the batch bucket; the largest bucket needs the most.
    AUSPEX_TRY(make(b.draft_rows, gpu::draft_pass_first_row(max_batch, max_draft_len + 1) * sizeof(gpu::Row)));
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
    return b;
}

} // namespace auspex
