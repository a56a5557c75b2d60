// The reference itself: known answers, identities, published tables.
#include "reference/accept_rule.h"
#include "reference/half.h"
#include "reference/llama.h"
#include "reference/random.h"
#include "reference/statistics.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace auspex::reference::reference_test {
namespace {

// Random123's kat_vectors.
TEST(Philox, gives_the_published_answers) {
    using Block = std::array<uint32_t, 4>;
    EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Half, knows_every_value_and_rounds_to_even) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const float value = half_to_float(half);
        if (!std::isnan(value)) {
            EXPECT_EQ(float_to_half(value), half);
        }
        EXPECT_EQ(float_to_bfloat(bfloat_to_float(half)) | 0x40, half | 0x40);
    }
    EXPECT_EQ(float_to_half(1.0f + 0x1p-11f), 0x3c00);     // tie: down to even
    EXPECT_EQ(float_to_half(1.0f + 3 * 0x1p-11f), 0x3c02); // tie: up to even
    EXPECT_EQ(float_to_half(1.0f + 0x1p-11f + 0x1p-23f), 0x3c01);
    EXPECT_EQ(float_to_half(65519.9f), 0x7bff);
    EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
    EXPECT_EQ(float_to_half(0x1p-25f), 0);                 // half of the smallest: to even
    EXPECT_EQ(float_to_half(0x1p-14f - 0x1p-26f), 0x0400); // rounds into the normal numbers
    EXPECT_EQ(float_to_bfloat(1.0f + 0x1p-8f), 0x3f80);
    EXPECT_EQ(float_to_bfloat(1.0f + 3 * 0x1p-8f), 0x3f82);
}

TEST(Statistics, knows_the_tables) {
    EXPECT_NEAR(chi_square_p(3.841459, 1), 0.05, 1e-7);
    EXPECT_NEAR(chi_square_p(18.307038, 10), 0.05, 1e-7);
    EXPECT_NEAR(chi_square_p(92.010024, 63), 0.01, 1e-7);
    EXPECT_NEAR(chi_square_p(2.0 * 30.0, 2), std::exp(-30.0), 1e-20);
    // facts: 8 bins at 1e-4 need 134,000 draws to see 0.01; 64 bins at 1e-6 need 304,000.
    EXPECT_NEAR(double(samples_needed(8, 0.01, 1e-4)), 134000.0, 500.0);
    EXPECT_NEAR(double(samples_needed(64, 0.01, 1e-6)), 304000.0, 500.0);
    EXPECT_NEAR(double(samples_needed(64, 0.005, 1e-6)), 1220000.0, 5000.0);
}

TEST(Statistics, p_values_of_true_hypotheses_are_uniform) {
    DataStream data(1);
    const Vector p{0.5, 0.25, 0.125, 0.0625, 0.0625};
    std::vector<double> p_values;
    for (int run = 0; run < 1000; ++run) {
        std::vector<uint64_t> counts(5);
        for (int i = 0; i < 2000; ++i) {
            uint32_t at = data.bits() >> 28, bin = at < 8 ? 0 : at < 12 ? 1 : at < 14 ? 2 : at < 15 ? 3 : 4;
            ++counts[bin];
        }
        p_values.push_back(fit(counts, p).p_value);
    }
    std::sort(p_values.begin(), p_values.end());
    double distance = 0.0;
    for (size_t i = 0; i < 1000; ++i)
        distance = std::max(distance, std::fabs(p_values[i] - (double(i) + 0.5) / 1000));
    EXPECT_LT(distance, 0.085); // Kolmogorov-Smirnov at 1e-6
}

TEST(Statistics, the_impossible_is_never_explained_away) {
    const std::vector<uint64_t> counts{1000, 1000, 1};
    EXPECT_EQ(fit(counts, {0.5, 0.5, 0.0}).p_value, 0.0);
    EXPECT_GT(fit(std::vector<uint64_t>{1000, 1000, 0}, {0.5, 0.5, 0.0}).p_value, 0.5);
}

Table random_table(uint32_t vocab, DataStream& data, bool with_zeros) {
    Table table(vocab);
    for (Vector& row : table) {
        Vector logits(vocab);
        for (double& l : logits)
            l = with_zeros && data.below(3) == 0 ? -INFINITY : 2.0 * data.normal();
        logits[data.below(vocab)] = 0.0;
        row = softmax(logits);
    }
    return table;
}

TEST(AcceptRule, the_theorem_holds) {
    DataStream data(2);
    for (uint32_t draft_len = 0; draft_len <= 4; ++draft_len) {
        for (bool zeros : {false, true}) {
            const Table target = random_table(4, data, zeros), draft = random_table(4, data, zeros);
            const Vector joint = first_two(target, draft, 1, draft_len);
            for (uint32_t a = 0; a < 4; ++a)
                for (uint32_t b = 0; b < 4; ++b)
                    EXPECT_NEAR(joint[a * 4 + b], target[1][a] * target[a][b], 1e-14);
        }
    }
}

TEST(AcceptRule, equal_models_accept_everything) {
    DataStream data(3);
    const Table target = random_table(5, data, false);
    EXPECT_NEAR(round_distribution(target, target, 0, 3).accepted_len[3], 1.0, 1e-14);
    // Theorem 3.5: one draft is accepted with probability Σ min(p, q).
    const Table draft = random_table(5, data, false);
    double overlap = 0.0;
    for (size_t i = 0; i < 5; ++i)
        overlap += std::min(target[0][i], draft[0][i]);
    EXPECT_NEAR(round_distribution(target, draft, 0, 1).accepted_len[1], overlap, 1e-14);
}

ReferenceLlama tiny_llama() {
    DataStream data(4);
    auto weights = [&](size_t n) {
        std::vector<float> w(n);
        for (float& v : w)
            v = 0.3f * data.normal();
        return w;
    };
    ReferenceLlama model;
    model.hidden = 6, model.n_heads = 3, model.n_kv_heads = 1, model.head_dim = 4, model.ffn = 5, model.vocab = 3;
    model.embedding = weights(18), model.final_norm = weights(6);
    for (int i = 0; i < 2; ++i)
        model.layers.push_back({weights(6), weights(72), weights(24), weights(24), weights(72), weights(6), weights(30),
                                weights(30), weights(30)});
    return model;
}

TEST(Llama, rope_sees_only_distances) {
    DataStream data(5);
    Vector q(8), k(8);
    for (double& v : q)
        v = data.normal();
    for (double& v : k)
        v = data.normal();
    auto score = [&](uint32_t at, uint32_t from) {
        Vector a = q, b = k;
        rope(a, at, 100.0);
        rope(b, from, 100.0);
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    EXPECT_NEAR(score(7, 3), score(104, 100), 1e-12);
    EXPECT_GT(std::fabs(score(7, 3) - score(7, 4)), 1e-3);
}

// The published configurations of Llama 3.1 and 3.2; divisors computed with transformers.
TEST(Llama, long_contexts_stretch_long_wavelengths) {
    const Vector half_of_64 = llama3_divisors(64, 500000.0, {32.0, 1.0, 4.0, 8192.0});
    ASSERT_EQ(half_of_64.size(), 32u);
    for (size_t i = 0; i < 15; ++i)
        EXPECT_EQ(half_of_64[i], 1.0);
    EXPECT_NEAR(half_of_64[15], 1.651329, 1e-6);
    EXPECT_NEAR(half_of_64[16], 3.292262, 1e-6);
    EXPECT_NEAR(half_of_64[17], 9.666729, 1e-6);
    for (size_t i = 18; i < 32; ++i)
        EXPECT_EQ(half_of_64[i], 32.0);
    Vector plain{1.0, 2.0, 3.0, 4.0}, divided = plain;
    rope(plain, 3, 100.0);
    rope(divided, 6, 100.0, Vector{2.0, 2.0});
    for (size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(plain[i], divided[i], 1e-14);
}

TEST(Llama, enumeration_is_a_product_of_softmaxes) {
    const ReferenceLlama model = tiny_llama();
    const std::vector<uint32_t> prompt{1, 2};
    const Vector all = model.enumerate(prompt, 3, 0.7);
    EXPECT_EQ(all.size(), 27u);
    EXPECT_NEAR(std::accumulate(all.begin(), all.end(), 0.0), 1.0, 1e-12);
    const std::vector<Vector> logits = model.forward(std::vector<uint32_t>{1, 2, 0, 2});
    const double expected = softmax(logits[1], 0.7)[0] * softmax(logits[2], 0.7)[2] * softmax(logits[3], 0.7)[1];
    EXPECT_NEAR(all[0 * 9 + 2 * 3 + 1], expected, 1e-14);

    const Vector stopped = model.enumerate(prompt, 3, 0.7, 2);
    EXPECT_NEAR(std::accumulate(stopped.begin(), stopped.end(), 0.0), 1.0, 1e-12);
    EXPECT_NEAR(stopped[2 * 9 + 2 * 3 + 2], softmax(logits[1], 0.7)[2], 1e-14);
    EXPECT_EQ(stopped[2 * 9 + 1 * 3 + 2], 0.0);
}

TEST(Llama, a_half_cache_changes_little_but_something) {
    ReferenceLlama model = tiny_llama();
    const std::vector<uint32_t> tokens{1, 2, 0, 1};
    const Vector exact = model.forward(tokens).back();
    model.half_cache = true;
    const Vector rounded = model.forward(tokens).back();
    double difference = 0.0;
    for (size_t i = 0; i < exact.size(); ++i)
        difference = std::max(difference, std::fabs(exact[i] - rounded[i]));
    EXPECT_GT(difference, 0.0);
    EXPECT_LT(difference, 2e-3);
}

} // namespace
} // namespace auspex::reference::reference_test
