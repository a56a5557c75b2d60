// The checks of what rounds may be asked for, on any library: the real shaders must pass them, planted faults must not.
#pragma once

#include "accept/round_rig.h"

namespace auspex {

class RuleChecks : public RoundTest {
  protected:
    static constexpr Rules kCoupled{.acceptance = gpu::kAcceptCoupled};
    static constexpr Rules kGreedy{.greedy = true};

    Verdict play_and_judge(KernelLibrary& library, const std::vector<ModelCase>& cases, uint32_t draft_len,
                           uint64_t draws, uint32_t seed, const Rules& rules) {
        const Verdict verdict = judge(play(library, cases, draft_len, draws, seed, rules), cases, draft_len, rules);
        record_properties(verdict);
        return verdict;
    }
    Verdict play_proposals(KernelLibrary& library, uint64_t draws) {
        return play_and_judge(library, proposal_cases(), 3, draws, 400, {.drafts = Rules::Drafts::proposed});
    }
    Verdict play_narrow(KernelLibrary& library, uint64_t draws) {
        return play_and_judge(library, narrow_cases(), 3, draws, 490, {});
    }
    Verdict play_cut(KernelLibrary& library, uint64_t draws) {
        return play_and_judge(library, cut_cases(), 3, draws, 450, {.with_cuts = true});
    }

    // Tokens and records of slots that differ from those in a batch where all slots are of their kind, and accepted
    // proposals that nobody proposed.
    uint64_t strange_tokens(KernelLibrary& library) {
        const std::vector<ModelCase> cases = mixed_cases();
        constexpr uint32_t kDraftLen = 4, kBatch = 2000;
        const std::vector<uint32_t> rounds{kDraftLen, kDraftLen, 0};
        const Rules mixed{.drafts = Rules::Drafts::alternating}, proposals{.drafts = Rules::Drafts::proposed};
        const Played both = play_texts(library, cases, kBatch, rounds, 410, mixed);
        const Played by_model = play_texts(library, cases, kBatch, rounds, 410, {});
        const Played by_others = play_texts(library, cases, kBatch, rounds, 410, proposals);
        uint64_t n_strange = 0, n_accepted = 0;
        for (uint32_t s = 0; s < kBatch; ++s) {
            const bool proposed = is_proposed_to(s, cases.size(), mixed);
            const Played& alone = proposed ? by_others : by_model;
            for (uint32_t i = s * kHistory; i < (s + 1) * kHistory; ++i)
                n_strange += both.texts[i] != alone.texts[i];
            const gpu::RoundRecord& record = both.records[s];
            n_strange += record.drafter != (proposed ? gpu::kDrafterNgram : gpu::kDrafterModel);
            n_strange += record.accepted_len != alone.records[s].accepted_len;
            n_strange += record.overlap != alone.records[s].overlap;
            if (!proposed) continue;
            uint32_t token = kFirstToken;
            for (uint32_t j = 0; j < record.accepted_len; ++j)
                n_strange += record.tokens[j] != (token = cases[s % cases.size()].proposals[token]);
            n_accepted += record.accepted_len;
        }
        return n_strange + (n_accepted < kBatch / 20 ? 1 : 0); // most were lost
    }

    // Tokens of 100 seeds per case and temperature that are not those of plain rounds; every other slot has its first
    // drafts proposed.
    uint64_t other_than_plain(KernelLibrary& library, const std::vector<ModelCase>& cases, uint32_t draft_len, Rules rules) {
        constexpr uint32_t kSeeds = 100, kTokens = 12;
        static_assert(kTokens < kHistory);
        const auto batch = static_cast<uint32_t>(kSeeds * cases.size() * kTemperatures.size());
        const Played plain = play_texts(library, cases, batch, std::vector<uint32_t>(kTokens, 0), 430, rules);
        rules.drafts = Rules::Drafts::alternating;
        const Played drafted = play_texts(library, cases, batch, std::vector<uint32_t>(kTokens, draft_len), 430, rules);
        uint64_t n_other = 0, n_accepted = 0;
        for (uint32_t s = 0; s < batch; ++s) {
            for (uint32_t i = 1; i <= kTokens; ++i) {
                const uint32_t token = plain.texts[s * kHistory + i];
                EXPECT_LT(token, 8u);
                n_other += drafted.texts[s * kHistory + i] != token;
            }
            n_accepted += drafted.records[s].accepted_len;
        }
        return n_other + (n_accepted < batch / 10 ? 1 : 0); // no drafts, no check
    }
};

} // namespace auspex
