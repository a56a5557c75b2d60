// One acceptance for a batch of slots with given logits and drafts: reductions, test, race, commit.
#pragma once

#include "gpu_test.h"
#include "accept/acceptance.h"
#include "kernels/vocab.h"
#include "shared/accept_args.h"

namespace auspex {

// Entry b of the batch is slot n - 1 - b. Rows that do not exist are for the caller to poison.
struct AcceptInput {
    uint32_t batch, draft_len, vocab, history_stride;
    std::vector<gpu::SlotState> states;      // (batch) by slot
    std::vector<gpu::RoundSlot> round_slots; // (batch)
    std::vector<float> target, draft;        // (batch, draft_len + 1, vocab), (batch, draft_len, vocab) logits
    std::vector<uint32_t> drafts;            // (batch, draft_len)
    std::vector<gpu::Cut> target_cuts;       // (batch, draft_len + 1), or none

    AcceptInput(uint32_t n, uint32_t k, uint32_t n_tokens, uint32_t stride)
        : batch(n), draft_len(k), vocab(n_tokens), history_stride(stride), states(n), round_slots(n),
          target(size_t{n} * (k + 1) * n_tokens), draft(size_t{n} * k * n_tokens), drafts(size_t{n} * k) {}
    std::span<float> target_row(uint32_t b, uint32_t j) {
        return {&target[(size_t{b} * (draft_len + 1) + j) * vocab], vocab};
    }
    std::span<float> draft_row(uint32_t b, uint32_t j) { return {&draft[(size_t{b} * draft_len + j) * vocab], vocab}; }
};

struct AcceptOutput {
    std::vector<gpu::SlotState> states;    // by slot
    std::vector<gpu::RoundRecord> records; // by entry
    std::vector<uint32_t> history;         // (slots, history_stride), poison where nothing was written
};

class AcceptFixture : public GpuTest {
  protected:
    AcceptOutput accept(const AcceptInput& in) {
        const uint32_t n = in.batch, n_target = n * (in.draft_len + 1), n_draft = n * in.draft_len;
        std::vector<uint32_t> tokens;
        for (uint32_t b = 0; b < n; ++b)
            for (uint32_t j = 0; j <= in.draft_len; ++j) tokens.push_back(j ? in.drafts[b * in.draft_len + j - 1] : 0);
        const std::vector<gpu::Row> rows = chain_rows(in.round_slots, in.draft_len, tokens);
        const std::vector<gpu::Row> draft_rows = in.draft_len > 0 ? chain_rows(in.round_slots, in.draft_len - 1) : std::vector<gpu::Row>();
        const Buffer target_logits = upload(in.target), draft_logits = upload(in.draft), state = upload(in.states);
        const Buffer slots = upload(in.round_slots), row_buffer = upload(rows), draft_row_buffer = upload(draft_rows);
        const uint32_t chunks = vocab_chunks(in.vocab);
        const Buffer partials = output<gpu::VocabChoice>(n_target * chunks),
                     draft_partials = output<gpu::VocabChoice>(n_draft * chunks);
        const Buffer target_choices = output<gpu::VocabChoice>(n_target),
                     draft_choices = output<gpu::VocabChoice>(n_draft);
        const Buffer cuts = upload(in.target_cuts);
        const BufferView target_cuts = in.target_cuts.empty() ? BufferView{} : cuts.view();
        const Buffer history = output<uint32_t>(size_t{n} * in.history_stride), plans = output<gpu::AcceptPlan>(n);
        const Buffer race = output<gpu::RacePartial>(n * chunks), records = output<gpu::RoundRecord>(n);
        run([&](Recorder& to) {
            record_vocab_partials(to, target_logits.view(), state.view(), partials.view(),
                                  {.vocab = in.vocab, .n_rows = n_target, .rows = row_buffer.view(), .cuts = target_cuts});
            record_vocab_partials(to, draft_logits.view(), state.view(), draft_partials.view(),
                                  {.vocab = in.vocab, .n_rows = n_draft, .rows = draft_row_buffer.view()});
            to.cmd.barrier();
            record_pick(to, partials.view(), target_choices.view(), n_target, in.vocab, target_cuts);
            record_pick(to, draft_partials.view(), draft_choices.view(), n_draft, in.vocab);
            to.cmd.barrier();
            record_accept(to,
                          {.target_logits = target_logits.view(), .draft_logits = draft_logits.view(), .target_choices = target_choices.view(),
                           .draft_choices = draft_choices.view(), .state = state.view(), .history = history.view(), .round_slots = slots.view(),
                           .target_rows = row_buffer.view(), .plans = plans.view(), .race_partials = race.view(), .records = records.view()},
                          {n, in.draft_len, in.vocab, in.vocab, in.history_stride});
        });
        return {read<gpu::SlotState>(state, n), read<gpu::RoundRecord>(records, n),
                read<uint32_t>(history, size_t{n} * in.history_stride)};
    }
};

} // namespace auspex
