// Rounds as the engine records them, with tables in place of models: every slot is an independent trial whose exact
// distribution is known. Slot s plays case s % n_cases at temperature kTemperatures[s / n_cases % 2].
#pragma once

#include "accept/model_cases.h"
#include "gpu_test.h"
#include "kernels/accept.h"
#include "kernels/rows.h"
#include "kernels/vocab.h"
#include "reference/statistics.h"
#include "shared/accept_args.h"
#include "test_shaders.h"

#include <array>

namespace auspex {

// What many rounds gave, per case and temperature.
struct Tally {
    std::vector<uint64_t> pairs; // (vocab, vocab): the first two tokens
    std::vector<uint64_t> later; // (vocab, vocab): a token of the first round and the one after it, from the third on
    std::vector<uint64_t> accepted_len; // (draft_len + 1) of the first round
};

class RoundTest : public GpuTest {
  protected:
    // draws: trials per case and temperature, at least.
    std::vector<Tally> play(KernelLibrary& library, const std::vector<ModelCase>& cases, uint32_t draft_len,
                            uint64_t draws, uint32_t seed) {
        const auto vocab = static_cast<uint32_t>(std::lround(std::sqrt(double(cases[0].target.size()))));
        const auto n_groups = static_cast<uint32_t>(cases.size() * kTemperatures.size());
        const uint32_t batch = n_groups * std::min<uint32_t>(static_cast<uint32_t>(draws), 6000u / n_groups);
        Rig rig = make_rig(library, cases, vocab, batch, draft_len);
        std::vector<Tally> tallies(n_groups, {std::vector<uint64_t>(size_t{vocab} * vocab),
                                              std::vector<uint64_t>(size_t{vocab} * vocab),
                                              std::vector<uint64_t>(draft_len + 1)});
        for (uint64_t done = 0; done < draws; done += batch / n_groups) {
            reset(rig, seed, static_cast<uint32_t>(done));
            submit_and_wait(*rig.recording);
            if (HasFatalFailure()) break;
            const auto* records = reinterpret_cast<const gpu::RoundRecord*>(rig.records.mapped());
            const auto* history = reinterpret_cast<const uint32_t*>(rig.history.mapped());
            for (uint32_t s = 0; s < batch; ++s) {
                Tally& tally = tallies[s % n_groups];
                const uint32_t a = history[s * kHistory + 1], b = history[s * kHistory + 2];
                const bool sane = a < vocab && b < vocab && records[s].n_tokens == records[s].accepted_len + 1 &&
                                  records[s].accepted_len <= draft_len;
                EXPECT_TRUE(sane) << "slot " << s << " has tokens " << a << ", " << b;
                if (!sane) return tallies;
                ++tally.pairs[a * vocab + b];
                ++tally.accepted_len[records[s].accepted_len];
                // Given that a round got this far, its next token is one more draw from the target.
                for (uint32_t i = 2; i < records[s].n_tokens; ++i)
                    ++tally.later[records[s].tokens[i - 1] * vocab + records[s].tokens[i]];
            }
        }
        return tallies;
    }

    // p-values; the smallest over all cases and temperatures where there is one for each.
    struct Verdict {
        double pairs = 1.0;     // of the worst case
        double all_pairs = 1.0; // of the sum of all chi-squares
        double later = 1.0;
        double accepted_len = 1.0;
        std::string worst;
    };
    static Verdict judge(const std::vector<Tally>& tallies, const std::vector<ModelCase>& cases, uint32_t draft_len) {
        Verdict verdict;
        double statistic = 0.0, degrees = 0.0;
        for (size_t g = 0; g < tallies.size(); ++g) {
            const ModelCase& c = cases[g % cases.size()];
            const float temperature = kTemperatures[g / cases.size()];
            const reference::Table target = table_of(c.target, temperature), draft = table_of(c.draft, temperature);
            reference::Vector joint;
            for (double a : target[kFirstToken])
                for (double b : target[joint.size() / target.size()])
                    joint.push_back(a * b);
            const reference::Fit pairs = reference::fit(tallies[g].pairs, joint);
            const reference::Fit lens =
                reference::fit(tallies[g].accepted_len,
                               reference::round_distribution(target, draft, kFirstToken, draft_len).accepted_len);
            if (pairs.p_value <= verdict.pairs)
                verdict.worst = std::string(c.name) + " at temperature " + std::to_string(temperature) +
                                ", chi-square " + std::to_string(pairs.statistic) + " over " +
                                std::to_string(pairs.bins) + " bins; " + pairs.note;
            verdict.later = std::min(verdict.later, reference::fit_rows(tallies[g].later, target).p_value);
            statistic += pairs.statistic;
            degrees += pairs.bins - 1.0;
            verdict.pairs = std::min(verdict.pairs, pairs.p_value);
            verdict.accepted_len = std::min(verdict.accepted_len, lens.p_value);
        }
        verdict.all_pairs = reference::chi_square_p(statistic, degrees);
        return verdict;
    }

  private:
    static constexpr uint32_t kHistory = 8; // tokens kept per slot

    struct Rig {
        uint32_t batch = 0, draft_len = 0;
        std::vector<std::unique_ptr<Kernel>> table_kernels; // one per use
        Buffer target_tables, draft_tables;                 // (cases, vocab, vocab) f32
        Buffer batch_list, state, history, round_slots, target_rows, draft_rows, counts;
        Buffer target_logits, draft_logits, partials, target_choices, draft_choices, plans, race, records,
            plain_records;
        std::unique_ptr<Recording> recording;
    };

    void reset(Rig& rig, uint32_t seed, uint32_t trial) {
        auto* states = reinterpret_cast<gpu::SlotState*>(rig.state.mapped());
        auto* history = reinterpret_cast<uint32_t*>(rig.history.mapped());
        for (uint32_t s = 0; s < rig.batch; ++s) {
            gpu::SlotState state = neutral_state();
            state.live = 1;
            state.last_token = kFirstToken;
            state.draft_len = rig.draft_len;
            state.max_generated = 1000;
            state.max_context = 1000;
            state.temperature = kTemperatures[s / n_cases_ % kTemperatures.size()];
            state.seed_low = trial * 0x10000u + s; // batch < 2^16
            state.seed_high = seed;
            states[s] = state;
            std::fill_n(history + s * kHistory, kHistory, kPoison);
        }
    }

    Rig make_rig(KernelLibrary& library, const std::vector<ModelCase>& cases, uint32_t vocab, uint32_t batch,
                 uint32_t draft_len) {
        n_cases_ = static_cast<uint32_t>(cases.size());
        Rig rig;
        rig.batch = batch;
        rig.draft_len = draft_len;
        std::vector<float> target, draft;
        for (const ModelCase& c : cases) {
            target.insert(target.end(), c.target.begin(), c.target.end());
            draft.insert(draft.end(), c.draft.begin(), c.draft.end());
        }
        rig.target_tables = upload(target);
        rig.draft_tables = upload(draft);
        std::vector<uint32_t> slots;
        for (uint32_t s = 0; s < batch; ++s)
            slots.push_back(s);
        rig.batch_list = upload(slots);
        const uint32_t n_target = batch * (draft_len + 1), n_draft = batch * std::max(draft_len, 1u);
        rig.state = output<gpu::SlotState>(batch);
        rig.history = output<uint32_t>(batch * kHistory);
        rig.round_slots = output<gpu::RoundSlot>(batch);
        rig.target_rows = output<gpu::Row>(n_target);
        rig.draft_rows = output<gpu::Row>(gpu::draft_pass_first_row(batch, draft_len + 1));
        rig.counts = output<uint32_t>(9);
        rig.target_logits = output<float>(n_target * vocab);
        rig.draft_logits = output<float>(n_draft * vocab);
        rig.partials = output<gpu::VocabChoice>(n_target);
        rig.target_choices = output<gpu::VocabChoice>(n_target);
        rig.draft_choices = output<gpu::VocabChoice>(n_draft);
        rig.plans = output<gpu::AcceptPlan>(batch);
        rig.race = output<gpu::RacePartial>(batch);
        rig.records = output<gpu::RoundRecord>(batch);
        rig.plain_records = output<gpu::RoundRecord>(batch);
        auto recording = Recording::create(device(), 0);
        EXPECT_TRUE(recording.ok()) << recording.status().message();
        rig.recording = std::move(recording).value();
        rig.recording->begin_segment("trial");
        Recorder to{*rig.recording, library};
        record_round(to, rig, vocab, draft_len, rig.records);
        record_round(to, rig, vocab, 0, rig.plain_records); // gives every slot its second token
        rig.recording->end_segment();
        const Status status = rig.recording->finish();
        EXPECT_TRUE(status.ok()) << status.message();
        return rig;
    }

    // constants: of table_logits.comp
    void record_table(Recorder& to, Rig& rig, const Buffer& tables, const Buffer& rows, const Buffer& logits,
                      const std::array<uint32_t, 7>& constants) {
        auto kernel =
            Kernel::create(device(), {"table_logits", test_shader("table_logits"), 3, 4, constants, 0}, VK_NULL_HANDLE);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        rig.table_kernels.push_back(std::make_unique<Kernel>(std::move(kernel).value()));
        const uint32_t groups = (constants[0] * constants[1] + 63) / 64;
        to.cmd.dispatch(*rig.table_kernels.back(), {groups, 1, 1}, uint32_t{0},
                        {tables.view(), rows.view(), logits.view()});
        to.cmd.barrier();
    }

    // As engine/round records it.
    void record_round(Recorder& to, Rig& rig, uint32_t vocab, uint32_t draft_len, const Buffer& records) {
        const uint32_t batch = rig.batch, n_target = batch * (draft_len + 1);
        record_rows(to,
                    {rig.batch_list.view(), rig.state.view(), rig.history.view(), rig.round_slots.view(),
                     rig.target_rows.view(), rig.draft_rows.view(), rig.counts.view()},
                    {batch, draft_len, kHistory, 1, 1, true});
        to.cmd.barrier();
        for (uint32_t step = 0; step < draft_len; ++step) {
            const uint32_t per_slot = step == 0 ? 2 : 1;
            record_table(to, rig, rig.draft_tables, rig.draft_rows, rig.draft_logits,
                         {batch, vocab, n_cases_, gpu::draft_pass_first_row(batch, step) + per_slot - 1, per_slot, step,
                          draft_len});
            record_vocab_partials(to, rig.draft_logits.view(), rig.state.view(), rig.round_slots.view(),
                                  rig.partials.view(), {vocab, batch, 1, step + 1, true, step, draft_len});
            to.cmd.barrier();
            record_pick_draft(to, rig.partials.view(),
                              {rig.draft_choices.view(), rig.target_rows.view(), rig.draft_rows.view(), rig.round_slots.view()}, vocab,
                              batch, step, draft_len);
            to.cmd.barrier();
        }
        record_table(to, rig, rig.target_tables, rig.target_rows, rig.target_logits,
                     {n_target, vocab, n_cases_, 0, 1, 0, 1});
        record_vocab_partials(to, rig.target_logits.view(), rig.state.view(), rig.round_slots.view(),
                              rig.partials.view(), {vocab, n_target, draft_len + 1, 1, false, 0, 1});
        to.cmd.barrier();
        record_pick(to, rig.partials.view(), rig.target_choices.view(), n_target, vocab);
        to.cmd.barrier();
        record_accept(to,
                      {rig.target_logits.view(), rig.draft_logits.view(), rig.target_choices.view(),
                       rig.draft_choices.view(), rig.state.view(), rig.history.view(), rig.round_slots.view(),
                       rig.target_rows.view(), rig.plans.view(), rig.race.view(), records.view()},
                      {batch, draft_len, vocab, kHistory});
        to.cmd.barrier();
    }

    uint32_t n_cases_ = 0;
};

constexpr double kAlpha = 1e-6; // with fixed seeds: this very run would be a one-in-a-million accident

} // namespace auspex
