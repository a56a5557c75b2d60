// Ten million tokens, drafts and emitted ones, of slots with truncated distributions over a small vocabulary: not one lies
// outside of what its row keeps.
#include "gpu_test.h"
#include "accept/acceptance.h"
#include "kernels/truncate.h"
#include "reference/transforms.h"
#include "shared/accept_args.h"
#include "test_shaders.h"

#include <cmath>

namespace auspex::support_test {
namespace {

class Support : public GpuTest {
  protected:
    static constexpr uint32_t kVocab = 33, kBatch = 1024, kDraftLen = 3, kTargetRows = kBatch * (kDraftLen + 1), kDraftRows = kBatch * kDraftLen;

    struct Found {
        uint64_t drafts = 0, emitted = 0, outside = 0;
    };

    static gpu::SlotState setting(uint32_t s) {
        gpu::SlotState slot = neutral_state();
        slot.live = 1;
        slot.draft_len = kDraftLen;
        slot.temperature = s % 2 ? 1.5f : 0.7f;
        slot.max_generated = slot.max_context = 1000;
        slot.top_k = s % 5 == 0 ? 1 + s % 7 : s % 5 == 3 ? 12 : 0;
        slot.top_p = s % 5 == 1 || s % 5 == 3 ? 0.1f + 0.01f * float(s % 83) : 1.0f;
        slot.min_p = s % 5 == 2 || s % 5 == 4 ? 0.02f + 0.001f * float(s % 400) : 0.0f;
        if (s % 5 == 4) slot.top_k = 9;
        return slot;
    }
    static std::vector<float> all_logits(uint32_t n_rows, uint32_t seed) {
        std::vector<float> z = random_floats(size_t{n_rows} * kVocab, seed, 1.5f);
        for (size_t i = 0; i < z.size(); i += 17) z[i] = i % 2 ? -INFINITY : 1.0f; // bans and ties
        return z;
    }
    // What every row keeps, in double, (n_rows, kVocab).
    static std::vector<bool> kept(const std::vector<float>& logits, uint32_t rows_per_slot) {
        std::vector<bool> out(logits.size());
        for (size_t r = 0; r < logits.size() / kVocab; ++r) {
            const gpu::SlotState s = setting(static_cast<uint32_t>(r / rows_per_slot));
            reference::Transforms t;
            t.top_k = s.top_k, t.top_p = double(s.top_p), t.min_p = double(s.min_p);
            const reference::Vector p = reference::probabilities({&logits[r * kVocab], &logits[r * kVocab] + kVocab}, t, {}, 1.0);
            for (uint32_t i = 0; i < kVocab; ++i) out[r * kVocab + i] = p[i] > 0;
        }
        return out;
    }

    Found draw(KernelLibrary& library, uint64_t n_tokens) {
        const std::vector<float> target = all_logits(kTargetRows, 1), draft = all_logits(kDraftRows, 2);
        const std::vector<bool> target_kept = kept(target, kDraftLen + 1), draft_kept = kept(draft, kDraftLen);
        std::vector<gpu::RoundSlot> entries;
        for (uint32_t s = 0; s < kBatch; ++s) entries.push_back({s, kDraftLen, 5, 1, 0});
        const std::vector<gpu::Row> rows = chain_rows(entries, kDraftLen);
        std::vector<Buffer> rows_of_step;
        for (uint32_t step = 0; step < kDraftLen; ++step) rows_of_step.push_back(upload(draft_pass_rows(entries, kDraftLen, step, rows)));
        const Buffer target_logits = upload(target), draft_logits = upload(draft), slots = upload(entries), target_rows = upload(rows);
        const Buffer state = output<gpu::SlotState>(kBatch), draft_rows = output<gpu::Row>(gpu::draft_pass_first_row(kBatch, kDraftLen + 1));
        const Buffer scratch = output<uint32_t>(kTargetRows * truncate_words(kVocab)), target_cuts = output<gpu::Cut>(kTargetRows);
        std::vector<Buffer> draft_cuts;
        const Buffer partials = output<gpu::VocabChoice>(kTargetRows), target_choices = output<gpu::VocabChoice>(kTargetRows),
                     draft_choices = output<gpu::VocabChoice>(kDraftRows);
        const Buffer history = output<uint32_t>(kBatch * 16), plans = output<gpu::AcceptPlan>(kBatch), race = output<gpu::RacePartial>(kBatch),
                     records = output<gpu::RoundRecord>(kBatch);
        auto* states = reinterpret_cast<gpu::SlotState*>(state.mapped());
        auto reset = [&](uint32_t trial) {
            for (uint32_t s = 0; s < kBatch; ++s) {
                states[s] = setting(s);
                states[s].seed_low = trial * kBatch + s;
            }
        };
        auto draft_shape = [&](uint32_t step) {
            return VocabShape{.vocab = kVocab, .n_rows = kBatch, .rows = rows_of_step[step].view(), .first_logits = step, .logits_step = kDraftLen, .of_draft = true};
        };
        VocabShape target_shape = {.vocab = kVocab, .n_rows = kTargetRows, .rows = target_rows.view()};
        reset(0);
        run(library, [&](Recorder& to) { // cuts and sums of the target do not depend on the seed
            for (uint32_t step = 0; step < kDraftLen; ++step) {
                draft_cuts.push_back(output<gpu::Cut>(kBatch));
                record_truncate(to, {.logits = draft_logits.view(), .state = state.view(), .scratch = scratch.view(),
                                     .cuts = draft_cuts[step].view()}, draft_shape(step), {true, true, true});
                to.cmd.barrier();
            }
            record_truncate(to, {.logits = target_logits.view(), .state = state.view(), .scratch = scratch.view(), .cuts = target_cuts.view()},
                            target_shape, {true, true, true});
            to.cmd.barrier();
            target_shape.cuts = target_cuts.view();
            record_vocab_partials(to, target_logits.view(), state.view(), partials.view(), target_shape);
            to.cmd.barrier();
            record_pick(to, partials.view(), target_choices.view(), kTargetRows, kVocab, target_cuts.view());
        });
        auto made = Recording::create(device(), 0);
        EXPECT_TRUE(made.ok());
        Recording& recording = *made.value();
        recording.begin_segment("trial");
        Recorder to{recording, library};
        for (uint32_t step = 0; step < kDraftLen; ++step) {
            VocabShape shape = draft_shape(step);
            shape.cuts = draft_cuts[step].view();
            record_vocab_partials(to, draft_logits.view(), state.view(), partials.view(), shape);
            to.cmd.barrier();
            record_pick_draft(to, partials.view(),
                              {.choices = draft_choices.view(), .target_rows = target_rows.view(), .draft_rows = draft_rows.view(),
                               .round_slots = slots.view(), .cuts = shape.cuts},
                              kVocab, kBatch, step, kDraftLen);
            to.cmd.barrier();
        }
        record_accept(to, {.target_logits = target_logits.view(), .draft_logits = draft_logits.view(), .target_choices = target_choices.view(),
                           .draft_choices = draft_choices.view(), .state = state.view(), .history = history.view(), .round_slots = slots.view(),
                           .target_rows = target_rows.view(), .plans = plans.view(), .race_partials = race.view(), .records = records.view()},
                      {kBatch, kDraftLen, kVocab, kVocab, 16});
        recording.end_segment();
        EXPECT_TRUE(recording.finish().ok());

        Found found;
        const auto* drafted = reinterpret_cast<const gpu::Row*>(target_rows.mapped());
        const auto* record = reinterpret_cast<const gpu::RoundRecord*>(records.mapped());
        for (uint32_t trial = 0; found.drafts + found.emitted < n_tokens && !HasFailure(); ++trial) {
            reset(trial);
            submit_and_wait(recording);
            for (uint32_t s = 0; s < kBatch; ++s) {
                for (uint32_t j = 0; j < kDraftLen; ++j, ++found.drafts)
                    found.outside += draft_kept[(s * kDraftLen + j) * kVocab + drafted[s * (kDraftLen + 1) + j + 1].token] ? 0 : 1;
                EXPECT_EQ(record[s].n_tokens, record[s].accepted_len + 1);
                for (uint32_t i = 0; i < record[s].n_tokens; ++i, ++found.emitted)
                    found.outside += target_kept[(s * (kDraftLen + 1) + i) * kVocab + record[s].tokens[i]] ? 0 : 1;
            }
        }
        return found;
    }
};

TEST_F(Support, no_token_of_ten_million_is_outside) {
    const Found found = draw(kernels(), 10'000'000);
    EXPECT_EQ(found.outside, 0u);
    EXPECT_GT(found.drafts, 5'000'000u);
    EXPECT_GT(found.emitted, 2'000'000u);
    RecordProperty("tokens", std::to_string(found.drafts) + " drafts, " + std::to_string(found.emitted) + " emitted");
}

TEST_F(Support, a_race_that_forgets_the_cut_is_seen) {
    const std::unique_ptr<KernelLibrary> library = new_library();
    for (const std::string variant : {"accept_race", "accept_race.subgroup"}) library->replace(variant, test_shader(variant + ".fault10"));
    EXPECT_GT(draw(*library, 20'000).outside, 0u);
}

} // namespace
} // namespace auspex::support_test
