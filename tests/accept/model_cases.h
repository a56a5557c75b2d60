// Pairs of models that see only the last token, as tables of logits: everything that can happen between two models.
#pragma once

#include "reference/accept_rule.h"
#include "reference/random.h"
#include "shared/slot_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace auspex {

constexpr std::array<float, 2> kTemperatures{1.0f, 0.7f};
constexpr uint32_t kFirstToken = 0; // known before the round

// Logits that follow each token: (vocab, vocab), of a draft that has the first ids only (vocab, draft_vocab).
struct ModelCase {
    const char* name;
    std::vector<float> target, draft;
    std::vector<uint32_t> proposals = {};                // (vocab): proposed after each token, where drafts are proposed
    std::vector<gpu::Cut> target_cuts = {}, draft_cuts = {}; // (vocab): of the row after each token, where rows are cut

    uint32_t draft_vocab() const;
    std::vector<float> whole_draft() const; // (vocab, vocab): -inf for ids that the draft lacks
};

inline size_t table_size(const std::vector<float>& logits) {
    return static_cast<size_t>(std::lround(std::sqrt(double(logits.size()))));
}

inline uint32_t ModelCase::draft_vocab() const { return static_cast<uint32_t>(draft.size() / table_size(target)); }
inline std::vector<float> ModelCase::whole_draft() const {
    const size_t vocab = table_size(target), n = draft_vocab();
    std::vector<float> whole(vocab * vocab, -INFINITY);
    for (size_t t = 0; t < vocab; ++t)
        std::copy_n(&draft[t * n], n, &whole[t * vocab]);
    return whole;
}

// Over 8 tokens.
inline std::vector<ModelCase> model_cases() {
    constexpr uint32_t kVocab = 8;
    reference::DataStream data(7);
    auto logits = [&](float scale) {
        std::vector<float> out(kVocab * kVocab);
        for (float& v : out)
            v = scale * data.normal();
        return out;
    };
    std::vector<ModelCase> cases;
    cases.push_back({"generic", logits(1.5f), logits(1.5f)});
    ModelCase close{"close", logits(2.0f), {}};
    close.draft = close.target;
    for (float& v : close.draft)
        v += 0.3f * data.normal();
    cases.push_back(close);
    ModelCase equal{"equal", logits(1.0f), {}};
    equal.draft = equal.target;
    cases.push_back(equal);
    ModelCase disjoint{"disjoint", logits(1.0f), logits(1.0f)};
    for (uint32_t t = 0; t < kVocab; ++t)
        for (uint32_t i = 0; i < kVocab; ++i)
            ((t + i) % 8 < 4 ? disjoint.target : disjoint.draft)[t * kVocab + i] = -INFINITY;
    cases.push_back(disjoint);
    ModelCase one_hot{"one-hot", logits(1.0f),
                      logits(1.0f)}; // the target after even tokens, the draft after multiples of 3
    for (uint32_t t = 0; t < kVocab; ++t)
        for (uint32_t i = 0; i < kVocab; ++i) {
            if (t % 2 == 0 && t > 0 && i != (t + 3) % 8) one_hot.target[t * kVocab + i] = -INFINITY;
            if (t % 3 == 0 && i != (t + 5) % 8) one_hot.draft[t * kVocab + i] = -INFINITY;
        }
    cases.push_back(one_hot);
    ModelCase zeros{"zeros", logits(1.0f), logits(1.0f)}; // some tokens impossible for one, the other, or both
    for (uint32_t t = 0; t < kVocab; ++t)
        for (uint32_t i = 0; i < kVocab; ++i) {
            if ((t + i) % 3 == 0) zeros.target[t * kVocab + i] = -INFINITY;
            if ((t + i) % 4 == 0 || i == t) zeros.draft[t * kVocab + i] = -INFINITY;
        }
    cases.push_back(zeros);
    return cases;
}

// Nothing above or below a proposal: the same drafts as a distribution.
inline void propose(ModelCase& c, const std::vector<uint32_t>& proposals) {
    const size_t vocab = proposals.size();
    c.proposals = proposals;
    c.draft.assign(vocab * vocab, -INFINITY);
    for (size_t t = 0; t < vocab; ++t)
        c.draft[t * vocab + proposals[t]] = 0.0f;
}

// Keeps the `kept` largest logits, lowest ids first among equals; impossible tokens are never kept.
inline gpu::Cut top_cut(std::span<const float> row, size_t kept) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < row.size(); ++i)
        if (row[i] != -INFINITY) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return row[a] > row[b]; });
    const uint32_t last = order[std::min(kept, order.size()) - 1];
    return {row[last], last};
}
inline std::vector<gpu::Cut> top_cuts(const std::vector<float>& logits, size_t kept) {
    const size_t vocab = table_size(logits);
    std::vector<gpu::Cut> cuts;
    for (size_t t = 0; t < vocab; ++t)
        cuts.push_back(top_cut({&logits[t * vocab], vocab}, kept));
    return cuts;
}

// What the cuts leave of the logits, as logits: the reference for a case with cuts.
inline std::vector<float> cut_logits(std::vector<float> logits, const std::vector<gpu::Cut>& cuts) {
    const size_t vocab = cuts.size();
    for (size_t t = 0; t < vocab; ++t)
        for (uint32_t i = 0; i < vocab; ++i) {
            float& logit = logits[t * vocab + i];
            if (logit < cuts[t].logit || (logit == cuts[t].logit && i > cuts[t].last_id)) logit = -INFINITY;
        }
    return logits;
}

// Proposals of every quality: the likeliest token, the unlikeliest, an impossible one, and whatever comes.
inline std::vector<ModelCase> proposal_cases() {
    std::vector<ModelCase> cases;
    const std::vector<float> target = model_cases()[0].target;
    const size_t vocab = table_size(target);
    for (const char* name : {"good", "bad", "impossible", "some"}) {
        ModelCase c{name, target, {}};
        std::vector<uint32_t> next;
        for (size_t t = 0; t < vocab; ++t) {
            float* row = &c.target[t * vocab];
            const auto best = static_cast<uint32_t>(std::max_element(row, row + vocab) - row),
                       worst = static_cast<uint32_t>(std::min_element(row, row + vocab) - row);
            if (name[0] == 'i') row[worst] = -INFINITY;
            next.push_back(name[0] == 'g' ? best : name[0] == 's' ? static_cast<uint32_t>((t + 1) % vocab) : worst);
        }
        propose(c, next);
        cases.push_back(c);
    }
    return cases;
}

// With a draft model and with proposals, as a slot asks.
inline std::vector<ModelCase> mixed_cases() {
    const std::vector<ModelCase> all = model_cases(), proposed = proposal_cases();
    std::vector<ModelCase> cases{all[0], all[1], all[5]};
    for (size_t i = 0; i < cases.size(); ++i)
        cases[i].proposals = proposed[i == 1 ? 3 : i].proposals;
    return cases;
}

// Many rows with several largest logits, of which the draft likes the last best.
inline std::vector<ModelCase> tied_cases() {
    std::vector<ModelCase> cases = mixed_cases();
    for (ModelCase& c : cases) {
        for (float& v : c.target)
            v = std::round(0.7f * v);
        c.draft = c.target;
        for (size_t i = 0; i < c.draft.size(); ++i)
            c.draft[i] += 0.01f * float(i % table_size(c.target));
    }
    return cases;
}

// Drafts that have 5 of the 8 ids: those of the target alone follow everywhere, and something follows them.
inline std::vector<ModelCase> narrow_cases() {
    constexpr size_t kIds = 5;
    std::vector<ModelCase> cases = mixed_cases();
    for (ModelCase& c : cases) {
        const size_t vocab = table_size(c.target);
        std::vector<float> narrow;
        for (size_t t = 0; t < vocab; ++t)
            for (size_t i = 0; i < kIds; ++i)
                narrow.push_back(c.draft[t * vocab + i] == -INFINITY ? -1.0f : c.draft[t * vocab + i]);
        c.draft = narrow;
    }
    return cases;
}

// Rows that are cut, through ties too: a target of 3 to 5 tokens and drafts that reach beyond it, or not far enough.
inline std::vector<ModelCase> cut_cases() {
    std::vector<ModelCase> cases = model_cases();
    cases.erase(cases.begin() + 3, cases.begin() + 5); // disjoint, one-hot
    const size_t target_kept[] = {3, 4, 5, 3}, draft_kept[] = {5, 3, 4, 3};
    for (size_t i = 0; i < cases.size(); ++i) {
        ModelCase& c = cases[i];
        for (float& v : c.target)
            v = std::round(v); // ties
        if (i == 2)
            c.draft = c.target;
        else if (i == 3)
            for (float& v : c.draft)
                v = std::round(v);
        c.target_cuts = top_cuts(c.target, target_kept[i]);
        c.draft_cuts = top_cuts(c.draft, draft_kept[i]);
    }
    return cases;
}

inline reference::Table table_of(const std::vector<float>& logits, float temperature) {
    const size_t vocab = table_size(logits);
    reference::Table table;
    for (size_t t = 0; t < vocab; ++t)
        table.push_back(
            reference::softmax(reference::Vector(&logits[t * vocab], &logits[t * vocab] + vocab), double(temperature)));
    return table;
}

} // namespace auspex
