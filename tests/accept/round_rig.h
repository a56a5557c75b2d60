// Rounds as the engine records them, with tables in place of models: every slot is an independent trial whose exact
// distribution is known. Slot s plays case s % n_cases at temperature kTemperatures[s / n_cases % 2].
#pragma once

#include "accept/round_judge.h"
#include "gpu_test.h"
#include "accept/acceptance.h"
#include "kernels/rows.h"
#include "kernels/vocab.h"
#include "shared/accept_args.h"
#include "test_shaders.h"

#include <array>
#include <map>
#include <numeric>

namespace auspex {

class RoundTest : public GpuTest {
  protected:
    static constexpr uint32_t kHistory = 16; // tokens kept per slot

    // draws: trials per case and temperature, at least. A trial is a round and a plain one.
    std::vector<Tally> play(KernelLibrary& library, const std::vector<ModelCase>& cases, uint32_t draft_len,
                            uint64_t draws, uint32_t seed, const Rules& rules = {}) {
        const auto n_groups = static_cast<uint32_t>(cases.size() * kTemperatures.size());
        const uint32_t batch = n_groups * std::min<uint32_t>(static_cast<uint32_t>(draws), 6000u / n_groups);
        Rig rig = make_rig(library, cases, batch, {draft_len, 0}, rules);
        const uint32_t vocab = rig.vocab;
        const std::vector<uint64_t> nothing(size_t{vocab} * vocab);
        std::vector<Tally> tallies(n_groups, {nothing, nothing, nothing, std::vector<uint64_t>(draft_len + 1)});
        for (uint64_t done = 0; done < draws; done += batch / n_groups) {
            reset(rig, cases, seed, static_cast<uint32_t>(done), rules);
            submit_and_wait(*rig.recording);
            if (HasFatalFailure()) break;
            const auto* records = reinterpret_cast<const gpu::RoundRecord*>(rig.records.mapped());
            const auto* history = reinterpret_cast<const uint32_t*>(rig.history.mapped());
            for (uint32_t s = 0; s < batch; ++s) {
                Tally& tally = tallies[s % n_groups];
                const gpu::RoundRecord& record = records[s];
                const uint32_t* tokens = history + size_t{s} * kHistory + 1;
                bool sane = record.n_tokens == record.accepted_len + 1 && record.accepted_len <= draft_len;
                for (uint32_t i = 0; sane && i <= record.n_tokens && i < kHistory - 1; ++i)
                    sane = tokens[i] < vocab;
                EXPECT_TRUE(sane) << "slot " << s << " has tokens " << tokens[0] << ", " << tokens[1];
                if (!sane) return tallies;
                ++tally.pairs[tokens[0] * vocab + tokens[1]];
                ++tally.accepted_len[record.accepted_len];
                tally.tested += std::min(record.accepted_len + 1, draft_len);
                tally.accepted += record.accepted_len;
                tally.overlap += double(record.overlap);
                // Given that a round got this far, its next token is one more draw from the target.
                for (uint32_t i = 2; i < record.n_tokens; ++i)
                    ++tally.later[record.tokens[i - 1] * vocab + record.tokens[i]];
                if (record.n_tokens < kHistory - 1)
                    ++tally.after[tokens[record.accepted_len] * vocab + tokens[record.n_tokens]];
            }
        }
        return tallies;
    }

    struct Played {
        std::vector<uint32_t> texts;           // (batch, kHistory): tokens by position, poison where there are none
        std::vector<gpu::RoundRecord> records; // (batch) of the first round
    };
    // One trial of so many rounds per slot.
    Played play_texts(KernelLibrary& library, const std::vector<ModelCase>& cases, uint32_t batch,
                      const std::vector<uint32_t>& draft_lens, uint32_t seed, const Rules& rules) {
        Rig rig = make_rig(library, cases, batch, draft_lens, rules);
        reset(rig, cases, seed, 0, rules);
        submit_and_wait(*rig.recording);
        return {read<uint32_t>(rig.history, size_t{batch} * kHistory), read<gpu::RoundRecord>(rig.records, batch)};
    }
    static bool is_proposed_to(uint32_t slot, size_t n_cases, const Rules& rules) {
        return rules.drafts == Rules::Drafts::proposed ||
               (rules.drafts == Rules::Drafts::alternating && slot / (n_cases * kTemperatures.size()) % 2 == 1);
    }

    // This error in a shader and in its variant with shuffles, where there is one.
    static void plant(KernelLibrary& library, const std::string& shader, int fault) {
        int found = 0;
        for (const std::string& variant : {shader, shader + ".subgroup"}) {
            const auto spirv = test_shader(variant + ".fault" + std::to_string(fault));
            if (spirv.empty()) continue;
            library.replace(variant, spirv);
            ++found;
        }
        EXPECT_GT(found, 0) << shader << " has no fault " << fault;
    }

  private:
    struct Rig {
        uint32_t batch = 0, vocab = 0, draft_vocab = 0, n_cases = 0, draft_len = 0; // draft_len: largest
        std::map<std::vector<uint32_t>, std::unique_ptr<Kernel>> tables; // by constants
        Buffer target_tables, draft_tables;                             // (cases, vocab, vocab), (cases, vocab, draft_vocab) f32
        Buffer target_cut_tables, draft_cut_tables, target_cuts, draft_cuts; // of Cut, unless there are none
        Buffer batch_list, state, history, round_slots, target_rows, draft_rows, counts;
        Buffer target_logits, draft_logits, partials, target_choices, draft_choices, plans, race, records,
            later_records;
        std::unique_ptr<Recording> recording;
    };

    void reset(Rig& rig, const std::vector<ModelCase>& cases, uint32_t seed, uint32_t trial, const Rules& rules) {
        auto* states = reinterpret_cast<gpu::SlotState*>(rig.state.mapped());
        auto* history = reinterpret_cast<uint32_t*>(rig.history.mapped());
        for (uint32_t s = 0; s < rig.batch; ++s) {
            gpu::SlotState state = neutral_state();
            state.live = 1;
            state.last_token = kFirstToken;
            state.draft_len = rig.draft_len;
            state.max_generated = 1000;
            state.max_context = 1000;
            state.temperature = rules.greedy ? 0.0f : kTemperatures[s / rig.n_cases % kTemperatures.size()];
            state.seed_low = trial * 0x10000u + s; // batch < 2^16
            state.seed_high = seed;
            state.acceptance = rules.acceptance;
            state.lenience = rules.lenience;
            if (is_proposed_to(s, rig.n_cases, rules)) {
                state.drafter = gpu::kDrafterNgram;
                state.n_proposed = rig.draft_len;
                uint32_t token = kFirstToken;
                for (uint32_t j = 0; j < rig.draft_len; ++j)
                    state.proposed[j] = token = cases[s % rig.n_cases].proposals[token];
            }
            states[s] = state;
            std::fill_n(history + s * kHistory, kHistory, kPoison);
        }
    }

    Rig make_rig(KernelLibrary& library, const std::vector<ModelCase>& cases, uint32_t batch,
                 const std::vector<uint32_t>& draft_lens, const Rules& rules) {
        Rig rig;
        rig.vocab = static_cast<uint32_t>(table_size(cases[0].target));
        rig.draft_vocab = cases[0].draft_vocab();
        rig.n_cases = static_cast<uint32_t>(cases.size());
        rig.batch = batch;
        rig.draft_len = *std::max_element(draft_lens.begin(), draft_lens.end());
        std::vector<float> target, draft;
        std::vector<gpu::Cut> target_cuts, draft_cuts;
        for (const ModelCase& c : cases) {
            target.insert(target.end(), c.target.begin(), c.target.end());
            draft.insert(draft.end(), c.draft.begin(), c.draft.end());
            target_cuts.insert(target_cuts.end(), c.target_cuts.begin(), c.target_cuts.end());
            draft_cuts.insert(draft_cuts.end(), c.draft_cuts.begin(), c.draft_cuts.end());
        }
        rig.target_tables = upload(target);
        rig.draft_tables = upload(draft);
        std::vector<uint32_t> slots;
        for (uint32_t s = 0; s < batch; ++s)
            slots.push_back(s);
        rig.batch_list = upload(slots);
        const uint32_t n_target = batch * (rig.draft_len + 1), n_draft = batch * std::max(rig.draft_len, 1u);
        if (rules.with_cuts) {
            rig.target_cut_tables = upload(target_cuts);
            rig.draft_cut_tables = upload(draft_cuts);
            rig.target_cuts = output<gpu::Cut>(n_target);
            rig.draft_cuts = output<gpu::Cut>(batch);
        }
        rig.state = output<gpu::SlotState>(batch);
        rig.history = output<uint32_t>(batch * kHistory);
        rig.round_slots = output<gpu::RoundSlot>(batch);
        rig.target_rows = output<gpu::Row>(n_target);
        rig.draft_rows = output<gpu::Row>(gpu::draft_pass_first_row(batch, rig.draft_len + 1));
        rig.counts = output<uint32_t>(gpu::counts_words(batch));
        rig.target_logits = output<float>(n_target * rig.vocab);
        rig.draft_logits = output<float>(n_draft * rig.draft_vocab);
        rig.partials = output<gpu::VocabChoice>(n_target);
        rig.target_choices = output<gpu::VocabChoice>(n_target);
        rig.draft_choices = output<gpu::VocabChoice>(n_draft);
        rig.plans = output<gpu::AcceptPlan>(batch);
        rig.race = output<gpu::RacePartial>(batch);
        rig.records = output<gpu::RoundRecord>(batch);
        rig.later_records = output<gpu::RoundRecord>(batch);
        auto recording = Recording::create(device(), 0);
        EXPECT_TRUE(recording.ok()) << recording.status().message();
        rig.recording = std::move(recording).value();
        rig.recording->begin_segment("trial");
        Recorder to{*rig.recording, library};
        for (size_t i = 0; i < draft_lens.size(); ++i)
            record_round(to, rig, draft_lens[i], i == 0 ? rig.records : rig.later_records);
        rig.recording->end_segment();
        const Status status = rig.recording->finish();
        EXPECT_TRUE(status.ok()) << status.message();
        return rig;
    }

    // n: results; constants: of the shader. What a row finds in a table by its slot and token.
    template <typename Op>
    void record_table(Recorder& to, Rig& rig, uint32_t n, const std::vector<uint32_t>& constants, const typename Op::Bindings& buffers) {
        std::unique_ptr<Kernel>& kernel = rig.tables[constants];
        if (!kernel) {
            auto made = make_test_kernel<Op>(device(), constants);
            ASSERT_TRUE(made.ok()) << made.status().message();
            kernel = std::make_unique<Kernel>(std::move(made).value());
        }
        to.cmd.dispatch(KernelOf<Op>{kernel.get()}, {(n + 63) / 64, 1, 1}, {}, buffers);
        to.cmd.barrier();
    }
    void record_logits(Recorder& to, Rig& rig, const Buffer& tables, uint32_t width, const Buffer& rows, const Buffer& logits, const std::array<uint32_t, 5>& c) {
        record_table<ops::TableLogits>(to, rig, c[0] * width, {c[0], width, rig.n_cases, c[1], c[2], c[3], c[4], rig.vocab},
                                       {.tables = tables.view(), .rows = rows.view(), .logits = logits.view()});
    }
    BufferView record_cuts(Recorder& to, Rig& rig, const Buffer& tables, const Buffer& rows, const Buffer& cuts,
                           const std::array<uint32_t, 3>& c) {
        if (!tables) return {};
        record_table<ops::TableCuts>(to, rig, c[0], {c[0], rig.vocab, rig.n_cases, c[1], c[2]},
                                     {.tables = tables.view(), .rows = rows.view(), .cuts = cuts.view()});
        return cuts.view();
    }

    // As engine/round records it.
    void record_round(Recorder& to, Rig& rig, uint32_t draft_len, const Buffer& records) {
        const uint32_t batch = rig.batch, vocab = rig.vocab, draft_vocab = rig.draft_vocab, n_target = batch * (draft_len + 1);
        record_rows(to,
                    {.batch = rig.batch_list.view(), .state = rig.state.view(), .history = rig.history.view(), .round_slots = rig.round_slots.view(),
                     .target_rows = rig.target_rows.view(), .draft_rows = rig.draft_rows.view(), .counts = rig.counts.view()},
                    {batch, draft_len, kHistory, 1, 1, true, 1, kHistory});
        to.cmd.barrier();
        for (uint32_t step = 0; step < draft_len; ++step) {
            const uint32_t per_slot = gpu::draft_pass_rows_per_entry(1, step), first = gpu::draft_pass_first_row(batch, step) + gpu::draft_pass_row(1, 0, step);
            record_logits(to, rig, rig.draft_tables, draft_vocab, rig.draft_rows, rig.draft_logits, {batch, first, per_slot, step, draft_len});
            const BufferView cuts = record_cuts(to, rig, rig.draft_cut_tables, rig.draft_rows, rig.draft_cuts, {batch, first, per_slot});
            record_vocab_partials(to, rig.draft_logits.view(), rig.state.view(), rig.partials.view(),
                                  {.vocab = draft_vocab, .n_rows = batch, .rows = rig.draft_rows.view(), .first_row = first, .row_step = per_slot,
                                   .first_logits = step, .logits_step = draft_len, .of_draft = true, .cuts = cuts});
            to.cmd.barrier();
            record_pick_draft(to, rig.partials.view(),
                              {.choices = rig.draft_choices.view(), .target_rows = rig.target_rows.view(), .draft_rows = rig.draft_rows.view(),
                               .round_slots = rig.round_slots.view(), .cuts = cuts},
                              draft_vocab, batch, step, draft_len);
            to.cmd.barrier();
        }
        record_logits(to, rig, rig.target_tables, vocab, rig.target_rows, rig.target_logits, {n_target, 0, 1, 0, 1});
        const BufferView cuts = record_cuts(to, rig, rig.target_cut_tables, rig.target_rows, rig.target_cuts, {n_target, 0, 1});
        record_vocab_partials(to, rig.target_logits.view(), rig.state.view(), rig.partials.view(),
                              {.vocab = vocab, .n_rows = n_target, .rows = rig.target_rows.view(), .cuts = cuts});
        to.cmd.barrier();
        record_pick(to, rig.partials.view(), rig.target_choices.view(), n_target, vocab, cuts);
        to.cmd.barrier();
        record_accept(to,
                      {.target_logits = rig.target_logits.view(), .draft_logits = rig.draft_logits.view(), .target_choices = rig.target_choices.view(),
                       .draft_choices = rig.draft_choices.view(), .state = rig.state.view(), .history = rig.history.view(),
                       .round_slots = rig.round_slots.view(), .target_rows = rig.target_rows.view(), .plans = rig.plans.view(),
                       .race_partials = rig.race.view(), .records = records.view()},
                      {batch, draft_len, vocab, draft_vocab, kHistory});
        to.cmd.barrier();
    }
};

} // namespace auspex
