// The round on one screen.
#include "round/round.h"

#include "accept/acceptance.h"
#include "draft/model_drafter.h"
#include "draft/search_drafter.h"
#include "kernels/apply_commands.h"
#include "kernels/rows.h"
#include "verify/verify.h"

namespace auspex {

namespace {

void record_rows_of_round(Recorder& to, const RoundPass& round) {
    const RoundBuffers& b = round.buffers;
    const LlamaModel* draft = round.models.draft;
    record_rows(to,
                {.batch = round.turn.batch.view(), .state = b.state.view(), .history = b.history.view(), .round_slots = b.round_slots.view(),
                 .target_rows = b.target_rows.view(), .draft_rows = b.draft_rows.view(), .counts = b.counts.view()},
                {.batch = round.form.batch,
                 .draft_len = round.form.draft_len,
                 .history_stride = b.history_stride,
                 .target_kv_heads = round.models.target.config().n_kv_heads,
                 .draft_kv_heads = draft ? draft->config().n_kv_heads : 1,
                 .model_drafts = round.form.model_drafts,
                 .draft_lead = round.draft_lead(),
                 .draft_max_rows = draft ? draft->cache().shape().max_rows : 0});
    to.cmd.barrier();
}

} // namespace

void record_round(Recorder& to, const RoundPass& round) {
    const bool is_sliced = round.n_slices > 0;
    to.cmd.begin_segment("round");
    record_commands(to, round.models, round.buffers, round.turn);
    record_rows_of_round(to, round);
    for (uint32_t node = 0; round.form.model_drafts && node < round.form.draft_len; ++node) {
        to.cmd.begin_region(Region::draft);
        record_draft_step(to, round, node);
        to.cmd.end_region();
        if (is_sliced) to.cmd.cut();
    }

    to.cmd.begin_region(Region::verify);
    record_verify(to, round);
    to.cmd.end_region();
    if (is_sliced) to.cmd.cut();

    to.cmd.begin_region(Region::accept);
    record_acceptance(to, round);
    if (round.form.searches) record_search(to, round);
    to.cmd.end_region();
    to.cmd.end_segment();
}

void record_commands(Recorder& to, const RoundModels& models, const RoundBuffers& b, const TurnBuffers& turn) {
    const KvCache& target = models.target.cache();
    const KvCache& draft = models.draft_cache() ? *models.draft_cache() : target;
    record_apply_commands(to,
                          {.n_commands = turn.count.view(),
                           .commands = turn.commands.view(),
                           .state = b.state.view(),
                           .history = b.history.view(),
                           .target_pages = target.page_table(),
                           .draft_pages = draft.page_table(),
                           .biases = b.biases.view()},
                          turn.max_commands, b.history_stride, target.pages_per_slot(), draft.pages_per_slot());
    to.cmd.barrier();
}

} // namespace auspex
