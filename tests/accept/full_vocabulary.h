// Draws over a full vocabulary of 128,256 tokens, where one token has nearly everything: bad noise shows here. With a
// 24-bit uniform 0.75 % of all draws would go to a random token.
#pragma once

#include "gpu_test.h"
#include "accept/acceptance.h"
#include "kernels/vocab.h"
#include "reference/statistics.h"
#include "shared/accept_args.h"

#include <cmath>

namespace auspex {

// One token has the mass `favourite`, the other 128,255 share the rest equally.
class FullVocabulary : public GpuTest {
  protected:
    static constexpr uint32_t kVocab = 128256, kFavourite = 77777;
    static constexpr float kTemperature = 0.7f;
    static constexpr double kAlpha = 1e-6;

    static std::vector<float> logits(double favourite) {
        std::vector<float> out(kVocab, 0.0f);
        out[kFavourite] =
            static_cast<float>(double(kTemperature) * std::log(favourite / (1.0 - favourite) * (kVocab - 1)));
        return out;
    }
    static void seed(Buffer& state, uint32_t batch, uint32_t round) {
        auto* states = reinterpret_cast<gpu::SlotState*>(state.mapped());
        for (uint32_t s = 0; s < batch; ++s) {
            states[s] = neutral_state();
            states[s].live = 1;
            states[s].temperature = kTemperature;
            states[s].max_generated = states[s].max_context = 1000;
            states[s].seed_low = round * 0x10000u + s;
        }
    }

    struct Count {
        uint64_t draws = 0, rest = 0;
        std::vector<uint64_t> where = std::vector<uint64_t>(64); // of the rest, by id
        void add(uint32_t token) {
            ++draws;
            if (token == kFavourite) return;
            ++rest;
            ++where[uint64_t{token} * 64 / kVocab];
        }
    };
    void expect_share(const Count& count, double favourite) {
        const double n = double(count.draws), share = 1.0 - favourite;
        EXPECT_NEAR(double(count.rest) / n, share, 5.0 * std::sqrt(share * favourite / n)) << count.draws << " draws";
        if (count.rest > 64 * 25) {
            EXPECT_GT(reference::fit(count.where, reference::Vector(64, 1.0 / 64)).p_value, kAlpha);
        }
        RecordProperty("rest", std::to_string(count.rest) + " of " + std::to_string(count.draws));
    }

    void draw_drafts(double favourite, uint32_t n_rounds) {
        constexpr uint32_t kBatch = 256;
        const Buffer values = upload(logits(favourite));
        Buffer state = output<gpu::SlotState>(kBatch);
        std::vector<gpu::RoundSlot> slots;
        for (uint32_t s = 0; s < kBatch; ++s)
            slots.push_back({s, 1, s * 3, 1, 0});
        const Buffer round_slots = upload(slots), rows = upload(chain_rows(slots, 0)), partials = output<gpu::VocabChoice>(kBatch * vocab_chunks(kVocab));
        const Buffer choices = output<gpu::VocabChoice>(kBatch), target_rows = output<gpu::Row>(2 * kBatch);
        const Buffer draft_rows = output<gpu::Row>(gpu::draft_pass_first_row(kBatch, 2));
        Count count;
        for (uint32_t round = 0; round < n_rounds; ++round) {
            seed(state, kBatch, round);
            run([&](Recorder& to) {
                record_vocab_partials(to, values.view(), state.view(), partials.view(),
                                      {.vocab = kVocab, .n_rows = kBatch, .rows = rows.view(), .logits_step = 0, .of_draft = true});
                to.cmd.barrier();
                record_pick_draft(to, partials.view(), {.choices = choices.view(), .target_rows = target_rows.view(),
                                                        .draft_rows = draft_rows.view(), .round_slots = round_slots.view()}, kVocab,
                                  kBatch, 0, 1);
            });
            for (const gpu::VocabChoice& choice : read<gpu::VocabChoice>(choices, kBatch))
                count.add(choice.best_id);
        }
        expect_share(count, favourite);
    }

    // Plain rounds: the token comes from the race over the target.
    void draw_next_tokens(double favourite, uint32_t n_rounds) {
        constexpr uint32_t kBatch = 64;
        std::vector<float> all;
        for (uint32_t s = 0; s < kBatch; ++s) {
            const std::vector<float> row = logits(favourite);
            all.insert(all.end(), row.begin(), row.end());
        }
        const Buffer values = upload(all);
        Buffer state = output<gpu::SlotState>(kBatch);
        std::vector<gpu::RoundSlot> slots;
        std::vector<gpu::Row> rows;
        for (uint32_t s = 0; s < kBatch; ++s)
            slots.push_back({s, 0, s * 3, 1, 0}), rows.push_back(plain_row(0, s, s * 3));
        const Buffer round_slots = upload(slots), target_rows = upload(rows), nothing = output<uint32_t>(4);
        const Buffer partials = output<gpu::VocabChoice>(kBatch * vocab_chunks(kVocab)),
                     choices = output<gpu::VocabChoice>(kBatch);
        const Buffer history = output<uint32_t>(kBatch), plans = output<gpu::AcceptPlan>(kBatch);
        const Buffer race = output<gpu::RacePartial>(kBatch * vocab_chunks(kVocab)),
                     records = output<gpu::RoundRecord>(kBatch);
        seed(state, kBatch, 0);
        run([&](Recorder& to) {
            record_vocab_partials(to, values.view(), state.view(), partials.view(), {.vocab = kVocab, .n_rows = kBatch, .rows = target_rows.view()});
            to.cmd.barrier();
            record_pick(to, partials.view(), choices.view(), kBatch, kVocab);
        });
        Count count;
        for (uint32_t round = 0; round < n_rounds; ++round) {
            seed(state, kBatch, round);
            run([&](Recorder& to) {
                record_accept(to,
                              {.target_logits = values.view(), .draft_logits = nothing.view(), .target_choices = choices.view(),
                               .draft_choices = nothing.view(), .state = state.view(), .history = history.view(), .round_slots = round_slots.view(),
                               .target_rows = target_rows.view(), .plans = plans.view(), .race_partials = race.view(), .records = records.view()},
                              {kBatch, 0, kVocab, kVocab, 1});
            });
            for (const gpu::RoundRecord& record : read<gpu::RoundRecord>(records, kBatch))
                count.add(record.tokens[0]);
        }
        expect_share(count, favourite);
    }
};

} // namespace auspex
