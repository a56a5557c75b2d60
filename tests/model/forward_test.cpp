// Whole passes: logits against the double-precision reference over a matrix of shapes; row r of an n-row pass has the bits
// of a one-row pass, in logits and cache; a prompt in any chunks leaves the same cache.
#include "kernels/matmul.h"
#include "model/forward_rig.h"
#include "model/reference_checkpoint.h"
#include "reference/half.h"
#include "session/engine_fixture.h"

#include <cmath>

namespace auspex::forward_test {
namespace {

using namespace test;

// How the kernels reduce: as the device likes it, with prompts by either family; through shared memory; other lanes.
enum class Kernels { native, matmul, shared_matmul, lanes_16, lanes_32_matmul };

struct ForwardCase {
    const char* name;
    Shape shape;
    DType cache;
    Kernels kernels = Kernels::native;
    RopeScaling rope = {};
};
std::vector<ForwardCase> forward_cases() {
    return {
        {"gqa1_hd32_d100", {.d = 100, .heads = 2, .kv_heads = 2, .head_dim = 32, .ffn = 77, .vocab = 301, .scale = 0.1f}, DType::f32},
        {"gqa3_hd64_d72_tied_bf16", {.d = 72, .heads = 3, .head_dim = 64, .ffn = 130, .vocab = 1031, .tied = true, .dtype = DType::bf16, .scale = 0.1f}, DType::f16},
        {"gqa4_hd128_d33_f16", {.d = 33, .heads = 8, .kv_heads = 2, .head_dim = 128, .ffn = 41, .vocab = 97, .dtype = DType::f16, .scale = 0.15f}, DType::f32, Kernels::matmul},
        {"gqa5_hd32_d96_tied", {.d = 96, .layers = 3, .heads = 10, .kv_heads = 2, .head_dim = 32, .ffn = 256, .vocab = 11, .tied = true, .scale = 0.08f}, DType::f16, Kernels::matmul},
        {"gqa3_shared", {.d = 72, .heads = 3, .head_dim = 64, .ffn = 130, .vocab = 131, .dtype = DType::bf16, .scale = 0.1f}, DType::f16, Kernels::shared_matmul},
        {"gqa5_lanes_16_linear_rope", {.d = 100, .heads = 5, .head_dim = 32, .ffn = 77, .vocab = 131, .dtype = DType::f16, .scale = 0.1f}, DType::f32, Kernels::lanes_16, {RopeScaling::Kind::linear, 4.0f}},
        // A first context of 40 tokens, so that within these texts some wavelengths stay, some are between, some stretched.
        {"gqa1_lanes_32_llama3_rope", {.d = 33, .heads = 1, .head_dim = 128, .ffn = 41, .vocab = 131, .scale = 0.15f}, DType::f32, Kernels::lanes_32_matmul, {RopeScaling::Kind::llama3, 8.0f, 1.0f, 4.0f, 40}},
    };
}

class Forward : public GpuTestWith<ForwardCase> {
  protected:
    SyntheticModel synthetic() {
        SyntheticModel model = random_model(GetParam().shape, 3, 256);
        model.config.rope_scaling = GetParam().rope;
        return model;
    }
    std::unique_ptr<ForwardRig> rig() {
        Tuning tuning = device_tuning(device().caps, GetParam().cache);
        const Kernels kind = GetParam().kernels;
        if (kind != Kernels::native) tuning.prompt_by_rows = kind == Kernels::lanes_16;
        if (kind >= Kernels::shared_matmul) {
            tuning = without_shuffles(tuning, kind == Kernels::lanes_16 ? 16 : kind == Kernels::lanes_32_matmul ? 32 : 0);
            tuning.matmul_parts = 0;
            tuning.matrix = {}; // the units want the device's lanes
        }
        auto made = KernelLibrary::create(device(), tuning, "");
        EXPECT_TRUE(made.ok()) << made.status().message();
        library_ = std::move(made).value();
        return std::make_unique<ForwardRig>(device(), memory(), *library_, synthetic(), GetParam().cache);
    }
    const Tuning& tuning() { return library_->tuning(); }
    uint32_t vocab() { return GetParam().shape.vocab; }
    CacheShape cache_shape(ForwardRig& rig) { return rig.model().cache().shape(); }

  private:
    std::unique_ptr<KernelLibrary> library_;
};

// Reads [begin, end) of a text as known tokens.
std::vector<gpu::Row> rows_of(const std::vector<uint32_t>& tokens, uint32_t slot, uint32_t begin, uint32_t end) {
    std::vector<gpu::Row> rows;
    for (uint32_t position = begin; position < end; ++position) rows.push_back(plain_row(tokens[position], slot, position));
    return rows;
}

// Weights and what they are multiplied with have the bits that prompts by halves have.
void round_factors(reference::ReferenceLlama& model) {
    model.half_inputs = true;
    for (reference::LlamaLayer& layer : model.layers)
        for (std::vector<float>* weight : {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.w_gate, &layer.w_up, &layer.w_down})
            for (float& value : *weight) value = static_cast<float>(reference::round_to_11_bits(static_cast<double>(value)));
}

TEST_P(Forward, logits_are_the_references) {
    auto r = rig();
    const auto tokens = random_prompt(150, vocab(), 1); // two splits of keys
    reference::ReferenceLlama reference = reference_model(synthetic(), GetParam().cache == DType::f16);
    const auto expected_of_rows = reference.forward(tokens);
    // Where prompts multiply halves, so does their reference.
    const bool halves = matmul_wants_halves(tuning()) && tuning().matmul_parts == 1;
    if (halves) round_factors(reference);
    const auto expected_of_prompts = halves ? reference.forward(tokens) : expected_of_rows;
    double spread = 0, worst = 0;
    for (const auto& row : expected_of_rows)
        for (double logit : row) spread += logit * logit;
    spread = std::sqrt(spread / (150.0 * vocab()));
    for (PassKind kind : {PassKind::rows, PassKind::prompt}) {
        r->clear();
        const auto& expected = kind == PassKind::prompt ? expected_of_prompts : expected_of_rows;
        uint32_t begin = 0;
        for (uint32_t n : {1u, 2u, 7u, 60u, 80u}) {
            const auto logits = r->pass(rows_of(tokens, 1, begin, begin + n), kind);
            for (uint32_t i = 0; i < n; ++i)
                for (uint32_t id = 0; id < vocab(); ++id)
                    worst = std::max(worst, std::abs(static_cast<double>(logits[i * vocab() + id]) - expected[begin + i][id]));
            begin += n;
        }
        ASSERT_EQ(begin, 150u);
    }
    // f32 arithmetic leaves some hundred roundings of 2^-24 of random sign. With an f16 cache the reference rounds keys and
    // values too, but where the two sides of a rounding meet, one of them lands on the neighbour, 2^-11 away. Prompts may multiply halves
    // besides: seven more roundings a layer where that happens (and on matrix units attention rounds what the reference does not).
    EXPECT_LE(worst, spread * ((GetParam().cache == DType::f16 ? 2e-3 : 3e-5) + (halves ? 2e-3 : 0)));
    EXPECT_GT(spread, 0.1);
    RecordProperty("worst_relative_error", std::to_string(worst / spread));
    std::printf("worst error %.2e of the logits' spread %.2f\n", worst / spread, spread);
}

TEST_P(Forward, a_rows_bits_do_not_depend_on_its_company) {
    auto r = rig();
    const uint32_t n_prompt[kRigSlots] = {21, 1, 130 - 30}, n_new = 30;
    std::vector<std::vector<uint32_t>> texts;
    for (uint32_t slot = 0; slot < kRigSlots; ++slot) texts.push_back(random_prompt(n_prompt[slot] + n_new, vocab(), 5 + slot));
    auto read_prompts = [&] {
        r->clear();
        for (uint32_t slot = 0; slot < kRigSlots; ++slot)
            for (uint32_t begin = 0; begin + 1 < n_prompt[slot]; begin += kRigRows)
                r->pass(rows_of(texts[slot], slot, begin, std::min(begin + kRigRows, n_prompt[slot] - 1)), PassKind::prompt);
    };
    // 90 rows after the prompts, one at a time.
    read_prompts();
    std::vector<gpu::Row> rows;
    for (uint32_t i = 0; i < n_new; ++i)
        for (uint32_t slot : {2u, 0u, 1u}) rows.push_back(plain_row(texts[slot][n_prompt[slot] - 1 + i], slot, n_prompt[slot] - 1 + i));
    std::vector<float> alone;
    for (const gpu::Row& row : rows) {
        const auto logits = r->pass({row}, PassKind::rows);
        alone.insert(alone.end(), logits.begin(), logits.end());
    }
    std::vector<std::vector<std::byte>> caches;
    for (uint32_t slot = 0; slot < kRigSlots; ++slot) caches.push_back(r->cache(slot, n_prompt[slot] - 1 + n_new));
    for (float logit : alone) ASSERT_TRUE(std::isfinite(logit));

    for (uint32_t n : {2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 12u, 13u, 14u, 15u, 16u, 17u, 40u, 72u}) {
        read_prompts();
        const size_t step = n < 16 ? 2 * n : n; // small passes: two, then the rest in one
        for (size_t begin = 0; begin < rows.size();) {
            const size_t size = n < 16 && begin >= step ? std::min<size_t>(rows.size() - begin, kRigRows) : std::min<size_t>(n, rows.size() - begin);
            std::vector<gpu::Row> company(rows.begin() + static_cast<ptrdiff_t>(begin), rows.begin() + static_cast<ptrdiff_t>(begin + size));
            // Order is no matter: keys are appended before any row reads them.
            std::reverse(company.begin(), company.end());
            gpu::Row dead = plain_row(0, 0, 0);
            dead.live = 0;
            if (n % 3 == 0 && size < kRigRows) company.insert(company.begin(), dead);
            const auto logits = r->pass(company, PassKind::rows);
            for (size_t i = 0; i < size; ++i)
                ASSERT_TRUE(same_bits(std::span(logits).subspan((company.size() - 1 - i) * vocab(), vocab()), std::span(alone).subspan((begin + i) * vocab(), vocab())))
                    << "row " << i << " of " << company.size();
            begin += size;
        }
        for (uint32_t slot = 0; slot < kRigSlots; ++slot)
            ASSERT_EQ(first_difference(cache_shape(*r), r->cache(slot, n_prompt[slot] - 1 + n_new), caches[slot]), "") << "slot " << slot << ", passes of " << n;
    }
}

// A drafted chain names its ancestors by path; the same keys as committed ones, the same bits.
TEST_P(Forward, a_path_is_a_prefix) {
    auto r = rig();
    const auto tokens = random_prompt(60, vocab(), 2);
    r->pass(rows_of(tokens, 0, 0, 44), PassKind::prompt);
    const auto expected = r->pass(rows_of(tokens, 0, 44, 60), PassKind::rows);
    auto rows = rows_of(tokens, 0, 44, 60);
    for (uint32_t j = 0; j < 16; ++j) {
        rows[j].prefix_len = 44;
        for (uint32_t i = 0; i < gpu::kMaxPath; ++i) rows[j].path[i] = 44 + i;
    }
    EXPECT_TRUE(same_bits(r->pass(rows, PassKind::rows), expected));
    // The same chain at other places of the cache, in reverse: positions 44… lie at indices 75, 74, …
    for (uint32_t j = 0; j < 16; ++j) {
        rows[j].kv_index = 75 - j;
        for (uint32_t i = 0; i < gpu::kMaxPath; ++i) rows[j].path[i] = 75 - i;
    }
    EXPECT_TRUE(same_bits(r->pass(rows, PassKind::rows), expected));
}

TEST_P(Forward, a_prompt_in_any_chunks_leaves_the_same_cache) {
    auto r = rig();
    const auto tokens = random_prompt(139, vocab(), 4);
    std::vector<std::byte> expected;
    for (const std::vector<uint32_t>& chunks : std::vector<std::vector<uint32_t>>{{80}, {64}, {8}, {1}, {1, 16, 5, 33}, {17}, {79, 3}}) {
        r->clear();
        for (uint32_t begin = 0, i = 0; begin < tokens.size(); ++i) {
            const uint32_t n = std::min(chunks[i % chunks.size()], static_cast<uint32_t>(tokens.size()) - begin);
            r->pass(rows_of(tokens, 2, begin, begin + n), PassKind::prompt);
            begin += n;
        }
        const auto found = r->cache(2, 139);
        if (expected.empty()) expected = found;
        EXPECT_EQ(first_difference(cache_shape(*r), found, expected), "") << "chunks of " << chunks[0];
    }
}

INSTANTIATE_TEST_SUITE_P(shape, Forward, ::testing::ValuesIn(forward_cases()), [](const auto& at) { return at.param.name; });

} // namespace
} // namespace auspex::forward_test
