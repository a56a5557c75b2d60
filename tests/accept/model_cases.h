// Pairs of models that see only the last token, as tables of logits: everything that can happen between two models.
#pragma once

#include "reference/accept_rule.h"
#include "reference/random.h"

#include <array>
#include <cmath>

namespace auspex {

constexpr std::array<float, 2> kTemperatures{1.0f, 0.7f};
constexpr uint32_t kFirstToken = 0; // known before the round

// Logits that follow each token: (vocab, vocab).
struct ModelCase {
    const char* name;
    std::vector<float> target, draft;
};

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

inline reference::Table table_of(const std::vector<float>& logits, float temperature) {
    const auto vocab = static_cast<size_t>(std::lround(std::sqrt(double(logits.size()))));
    reference::Table table;
    for (size_t t = 0; t < vocab; ++t)
        table.push_back(
            reference::softmax(reference::Vector(&logits[t * vocab], &logits[t * vocab] + vocab), double(temperature)));
    return table;
}

} // namespace auspex
