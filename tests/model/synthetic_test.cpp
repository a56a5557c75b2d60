// Synthetic weights: the tensors of a Llama, values that depend on nothing but seed, name and index, and their spread.
#include "model/checkpoint/checkpoint.h"
#include "model/file_fixtures.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace auspex::synthetic_test {
namespace {

using namespace test;

SyntheticModel small_model(DType dtype) {
    SyntheticModel model;
    model.config.hidden_size = 96;
    model.config.n_layers = 2;
    model.config.n_heads = 3;
    model.config.n_kv_heads = 1;
    model.config.head_dim = 64;
    model.config.ffn_size = 130;
    model.config.vocab_size = 301;
    model.config.max_position = 128;
    model.dtype = dtype;
    return model;
}

std::vector<std::byte> read_whole(const Checkpoint& checkpoint, std::string_view name) {
    const TensorInfo* tensor = checkpoint.find(name);
    EXPECT_TRUE(tensor) << name;
    if (!tensor) return {};
    std::vector<std::byte> out(tensor->bytes);
    EXPECT_TRUE(checkpoint.read(*tensor, 0, out).ok());
    return out;
}

float f16_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const auto fraction = static_cast<float>(bits & 1023);
    const float magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0f + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

std::vector<float> values(const Checkpoint& checkpoint, std::string_view name, DType dtype) {
    const std::vector<std::byte> bytes = read_whole(checkpoint, name);
    std::vector<float> out;
    for (size_t i = 0; i + dtype_bytes(dtype) <= bytes.size(); i += dtype_bytes(dtype)) {
        uint32_t word = 0;
        std::memcpy(&word, bytes.data() + i, dtype_bytes(dtype)); // little-endian
        const auto half = static_cast<uint16_t>(word);
        out.push_back(dtype == DType::f16 ? f16_value(half)
                                          : std::bit_cast<float>(dtype == DType::f32 ? word : word << 16));
    }
    return out;
}

TEST(Synthetic, has_every_tensor_of_a_llama) {
    SyntheticModel model = small_model(DType::f16);
    const auto untied = make_synthetic_checkpoint(model);
    ASSERT_TRUE(untied.ok()) << untied.status().message();
    const Checkpoint& checkpoint = *untied.value();
    EXPECT_EQ(checkpoint.find("model.layers.1.self_attn.q_proj.weight")->shape, (std::vector<uint64_t>{192, 96}));
    EXPECT_EQ(checkpoint.find("model.layers.1.self_attn.k_proj.weight")->shape, (std::vector<uint64_t>{64, 96}));
    EXPECT_EQ(checkpoint.find("model.layers.0.self_attn.o_proj.weight")->shape, (std::vector<uint64_t>{96, 192}));
    EXPECT_EQ(checkpoint.find("model.layers.0.mlp.down_proj.weight")->shape, (std::vector<uint64_t>{96, 130}));
    EXPECT_EQ(checkpoint.find("lm_head.weight")->shape, (std::vector<uint64_t>{301, 96}));
    EXPECT_EQ(checkpoint.find("lm_head.weight")->bytes, 2u * 301 * 96);
    EXPECT_FALSE(checkpoint.find("model.layers.2.mlp.down_proj.weight"));
    EXPECT_FALSE(checkpoint.name().empty());

    model.config.tied_embedding = true;
    const auto tied = make_synthetic_checkpoint(model);
    ASSERT_TRUE(tied.ok());
    EXPECT_FALSE(tied.value()->find("lm_head.weight"));
}

TEST(Synthetic, pieces_join_to_the_whole) {
    for (DType dtype : {DType::f16, DType::bf16, DType::f32}) {
        const auto made = make_synthetic_checkpoint(small_model(dtype));
        ASSERT_TRUE(made.ok());
        const std::vector<std::byte> whole = read_whole(*made.value(), "model.layers.0.mlp.up_proj.weight");
        const TensorInfo& tensor = *made.value()->find("model.layers.0.mlp.up_proj.weight");
        for (size_t step : {2u, 6u, 10u, 34u, 4098u}) {
            std::vector<std::byte> joined(whole.size());
            for (size_t at = 0; at < joined.size(); at += step)
                ASSERT_TRUE(made.value()
                                ->read(tensor, at, std::span(joined).subspan(at, std::min(step, joined.size() - at)))
                                .ok());
            EXPECT_EQ(joined, whole) << dtype_name(dtype) << " in steps of " << step;
        }
        std::vector<std::byte> out(4);
        EXPECT_EQ(made.value()->read(tensor, tensor.bytes - 2, out).code(), Code::internal);
        EXPECT_EQ(made.value()->read(tensor, ~uint64_t{0}, out).code(), Code::internal);
    }
}

TEST(Synthetic, repeats_its_vocabulary_when_asked) {
    SyntheticModel model = small_model(DType::f16);
    const auto all = make_synthetic_checkpoint(model);
    model.distinct_tokens = 7;
    const auto made = make_synthetic_checkpoint(model);
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
        const std::vector<std::byte> rows = read_whole(*made.value(), name), source = read_whole(*all.value(), name);
        const size_t row = rows.size() / model.config.vocab_size;
        for (size_t i = 0; i < rows.size(); ++i)
            ASSERT_EQ(rows[i], source[i % (7 * row)]) << name << ", byte " << i;
        // In pieces that begin and end anywhere, too.
        std::vector<std::byte> piece(9 * row + 1);
        ASSERT_TRUE(made.value()->read(*made.value()->find(name), 5 * row + 3, piece).ok());
        EXPECT_TRUE(std::equal(piece.begin(), piece.end(), rows.begin() + static_cast<std::ptrdiff_t>(5 * row + 3)));
    }
    const std::string up = "model.layers.0.mlp.up_proj.weight";
    EXPECT_EQ(read_whole(*made.value(), up), read_whole(*all.value(), up));
}

TEST(Synthetic, is_a_function_of_seed_and_name) {
    SyntheticModel model = small_model(DType::f16);
    const auto first = make_synthetic_checkpoint(model), again = make_synthetic_checkpoint(model);
    model.seed = 2;
    const auto other = make_synthetic_checkpoint(model);
    const std::string up = "model.layers.0.mlp.up_proj.weight", gate = "model.layers.0.mlp.gate_proj.weight";
    EXPECT_EQ(read_whole(*first.value(), up), read_whole(*again.value(), up));
    EXPECT_NE(read_whole(*first.value(), up), read_whole(*other.value(), up));
    EXPECT_NE(read_whole(*first.value(), up), read_whole(*first.value(), gate));
    // A larger model begins with the same values: the index is the element's, whatever the shape.
    model.seed = 1;
    model.config.vocab_size = 400;
    const auto larger = make_synthetic_checkpoint(model);
    std::vector<std::byte> start = read_whole(*larger.value(), "lm_head.weight");
    start.resize(2u * 301 * 96);
    EXPECT_EQ(start, read_whole(*first.value(), "lm_head.weight"));
}

TEST(Synthetic, is_normal_with_the_given_scale) {
    for (DType dtype : {DType::f16, DType::bf16, DType::f32}) {
        SyntheticModel model = small_model(dtype);
        model.config.vocab_size = 4000;
        model.scale = 0.05f;
        const auto made = make_synthetic_checkpoint(model);
        const std::vector<float> x = values(*made.value(), "lm_head.weight", dtype);
        double sum = 0, square = 0, fourth = 0, lagged = 0;
        for (size_t i = 0; i < x.size(); ++i) {
            const double z = x[i] / 0.05;
            sum += z;
            square += z * z;
            fourth += z * z * z * z;
            if (i > 0) lagged += z * x[i - 1] / 0.05;
        }
        const auto n = static_cast<double>(x.size());
        EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n)) << dtype_name(dtype);
        EXPECT_NEAR(square / n, 1, 0.0005 + 5 * std::sqrt(2 / n)) << dtype_name(dtype);
        EXPECT_NEAR(fourth / n, 3, 0.02 + 5 * std::sqrt(96 / n)) << dtype_name(dtype);
        EXPECT_NEAR(lagged / n, 0, 5 / std::sqrt(n)) << dtype_name(dtype); // neighbours share a hash, not a value
        for (float w : values(*made.value(), "model.norm.weight", dtype))
            EXPECT_NEAR(w, 1, 0.005 * 4 + 0.004);
    }
}

TEST(Synthetic, rounds_tiny_and_large_scales_right) {
    SyntheticModel model = small_model(DType::f16);
    for (float scale : {1e-6f, 3e-5f, 0.02f, 1.0f, 100.0f}) {
        model.scale = scale;
        model.dtype = DType::f16;
        const auto narrow = make_synthetic_checkpoint(model);
        model.dtype = DType::bf16;
        const auto brain = make_synthetic_checkpoint(model);
        model.dtype = DType::f32;
        const auto wide = make_synthetic_checkpoint(model);
        const auto a = values(*narrow.value(), "lm_head.weight", DType::f16);
        const auto b = values(*wide.value(), "lm_head.weight", DType::f32);
        const auto c = values(*brain.value(), "lm_head.weight", DType::bf16);
        for (size_t i = 0; i < b.size(); ++i)
            ASSERT_LE(std::fabs(c[i] - b[i]), std::ldexp(std::fabs(b[i]), -8)) << b[i];
        for (size_t i = 0; i < a.size(); ++i) // half a unit: 2^-11 relative, 2^-25 in the subnormal range
            ASSERT_LE(std::fabs(a[i] - b[i]), std::max(std::ldexp(std::fabs(b[i]), -11), std::ldexp(1.0f, -25)))
                << b[i];
    }
}

TEST(Synthetic, refuses_impossible_models) {
    const auto refused = [](auto change, Code code) {
        SyntheticModel model = small_model(DType::f16);
        change(model);
        expect_refused(make_synthetic_checkpoint(model).status(), code, "synthetic model", "synthetic");
    };
    refused([](SyntheticModel& m) { m.config.hidden_size = 0; }, Code::invalid_argument);
    refused([](SyntheticModel& m) { m.config.n_kv_heads = 2; }, Code::invalid_argument);
    refused([](SyntheticModel& m) { m.config.head_dim = 96; }, Code::unsupported);
    refused([](SyntheticModel& m) { m.dtype = DType::u32; }, Code::invalid_argument);
    refused([](SyntheticModel& m) { m.dtype = DType::q8_0; }, Code::invalid_argument);
    refused([](SyntheticModel& m) { m.distinct_tokens = m.config.vocab_size + 1; }, Code::invalid_argument);
    refused([](SyntheticModel& m) { m.scale = 0; }, Code::invalid_argument);
    refused([](SyntheticModel& m) { m.scale = std::numeric_limits<float>::quiet_NaN(); }, Code::invalid_argument);
}

} // namespace
} // namespace auspex::synthetic_test
