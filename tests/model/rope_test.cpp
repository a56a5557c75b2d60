// Rotary frequencies: the plain formula to the bit, linear and llama3 scaling, and divisors from a file.
#include "model/llama_config.h"

#include <cmath>
#include <gtest/gtest.h>

namespace auspex::rope_test {
namespace {

LlamaConfig with_theta(uint32_t head_dim, float theta) {
    LlamaConfig config;
    config.head_dim = head_dim;
    config.rope_theta = theta;
    return config;
}

// What scaling divides each frequency by.
std::vector<double> divisors(const LlamaConfig& config) {
    LlamaConfig plain = config;
    plain.rope_scaling = {};
    plain.rope_divisors.clear();
    std::vector<double> out = rope_frequencies(plain);
    const std::vector<double> scaled = rope_frequencies(config);
    EXPECT_EQ(scaled.size(), config.head_dim / 2);
    for (size_t i = 0; i < out.size(); ++i)
        out[i] /= scaled[i];
    return out;
}

TEST(Rope, plain_frequencies_have_the_bits_of_the_formula) {
    for (uint32_t head_dim : {32u, 64u, 128u})
        for (float theta : {10000.0f, 500000.0f, 1.0f}) {
            const std::vector<double> frequencies = rope_frequencies(with_theta(head_dim, theta));
            ASSERT_EQ(frequencies.size(), head_dim / 2);
            for (uint32_t i = 0; i < head_dim / 2; ++i)
                EXPECT_EQ(frequencies[i], std::pow(static_cast<double>(theta), -2.0 * i / head_dim));
        }
}

// Llama 3.1 (factor 8) and 3.2 (factor 32): how many frequencies stay, those in between, the rest divided by the factor.
// From transformers 5's _compute_llama3_parameters.
TEST(Rope, llama3_divisors_are_the_published_ones) {
    const struct {
        uint32_t head_dim;
        float factor;
        size_t kept;
        std::vector<double> between;
    } cases[] = {
        {64, 8.0f, 15, {1.55341, 2.69453, 5.25733}},
        {64, 32.0f, 15, {1.651329, 3.292262, 9.666729}},
        {128, 8.0f, 29, {1.20748, 1.55341, 2.02631, 2.69453, 3.68425, 5.25733}},
        {128, 32.0f, 29, {1.234937, 1.651329, 2.276660, 3.292262, 5.171596, 9.666729}},
    };
    for (const auto& one : cases) {
        LlamaConfig config = with_theta(one.head_dim, 500000.0f);
        config.rope_scaling = {RopeScaling::Kind::llama3, one.factor, 1.0f, 4.0f, 8192};
        const std::vector<double> found = divisors(config);
        ASSERT_EQ(found.size(), one.head_dim / 2);
        for (size_t i = 0; i < found.size(); ++i) {
            const size_t at = i - one.kept;
            const double expected = i < one.kept ? 1.0 : at < one.between.size() ? one.between[at] : static_cast<double>(one.factor);
            EXPECT_NEAR(found[i], expected, 6e-6) << "head_dim " << one.head_dim << " factor " << one.factor << " pair " << i;
        }
    }
}

TEST(Rope, linear_scaling_divides_all_alike) {
    LlamaConfig config = with_theta(64, 10000.0f);
    config.rope_scaling.kind = RopeScaling::Kind::linear;
    config.rope_scaling.factor = 4.0f;
    for (double divisor : divisors(config))
        EXPECT_NEAR(divisor, 4.0, 1e-12);
}

TEST(Rope, divisors_of_a_file_are_used_one_by_one) {
    LlamaConfig config = with_theta(32, 10000.0f);
    for (uint32_t i = 0; i < 16; ++i)
        config.rope_divisors.push_back(1.0f + 0.5f * static_cast<float>(i));
    const std::vector<double> found = divisors(config);
    for (uint32_t i = 0; i < 16; ++i)
        EXPECT_NEAR(found[i], 1.0 + 0.5 * i, 1e-12);
}

} // namespace
} // namespace auspex::rope_test
