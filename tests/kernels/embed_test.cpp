// The embedding gather: exact copies, in every format, from one shard or many.
#include "kernels/embed.h"
#include "kernels/linear.h"

namespace auspex::embed_test {
namespace {

struct Case {
    DType dtype;
    uint32_t width, n_tokens, shard_rows;
};

class Embed : public GpuTestWith<Case> {};

TEST_P(Embed, copies_the_row_of_the_token) {
    const Case c = GetParam();
    std::vector<float> values = random_floats(size_t{c.width} * c.n_tokens, 1);
    const Tensor table = tensor(values, c.n_tokens, c.width, c.dtype, c.shard_rows);
    std::vector<gpu::Row> rows;
    for (uint32_t token = 0; token < c.n_tokens; ++token)
        rows.push_back(plain_row((token * 5 + 3) % c.n_tokens, 0, token));
    rows.push_back(plain_row(c.n_tokens, 0, 0)); // beyond the table
    rows.push_back(plain_row(0xffffffffu, 0, 0));
    rows.push_back(plain_row(0, 0, 0));
    rows.back().live = 0;
    const auto n_rows = static_cast<uint32_t>(rows.size());
    const uint32_t stride = padded_width(c.width);

    const Buffer row_buffer = upload(rows);
    const Buffer x = output<float>(size_t{n_rows} * stride);
    run([&](Recorder& to) { record_embed(to, table, row_buffer.view(), n_rows, x.view(), stride); });

    const std::vector<float> found = floats(x, size_t{n_rows} * stride);
    for (uint32_t r = 0; r < n_rows; ++r) {
        std::vector<float> expected(c.width, 0.0f);
        if (r < c.n_tokens)
            for (uint32_t i = 0; i < c.width; ++i)
                expected[i] = values[size_t{rows[r].token} * c.width + i];
        EXPECT_TRUE(same_bits({&found[size_t{r} * stride], c.width}, expected)) << "row " << r;
    }
}

INSTANTIATE_TEST_SUITE_P(, Embed,
                         ::testing::Values(Case{DType::bf16, 1234, 33, 7}, Case{DType::bf16, 7, 1, 0},
                                           Case{DType::f16, 33, 7, 1}, Case{DType::f16, 64, 100, 0},
                                           Case{DType::f32, 1, 33, 10}, Case{DType::f32, 1234, 7, 3}));

class EmbedQuantized : public GpuTestWith<QuantCase> {};

TEST_P(EmbedQuantized, decodes_the_row_of_the_token_bit_by_bit) {
    const auto [dtype, cols] = GetParam();
    constexpr uint32_t kTokens = 50;
    std::vector<float> values;
    const Tensor table = quantized_tensor(values, kTokens, cols, dtype, 30, 17);
    std::vector<gpu::Row> rows;
    for (uint32_t token = 0; token < kTokens; ++token) rows.push_back(plain_row((token * 7 + 3) % kTokens, 0, token));
    const Buffer row_buffer = upload(rows), x = output<float>(size_t{kTokens} * cols);
    run([&, cols = cols](Recorder& to) { record_embed(to, table, row_buffer.view(), kTokens, x.view(), cols); });
    std::vector<float> found = floats(x, size_t{kTokens} * cols), expected;
    for (const gpu::Row& row : rows)
        expected.insert(expected.end(), &values[size_t{row.token} * cols], &values[size_t{row.token} * cols] + cols);
    for (float& v : found) v += 0.0f; // a zero has no sign
    for (float& v : expected) v += 0.0f;
    EXPECT_TRUE(same_bits(found, expected));
}

INSTANTIATE_TEST_SUITE_P(, EmbedQuantized, ::testing::ValuesIn(kQuantCases), quant_case_name);

} // namespace
} // namespace auspex::embed_test
