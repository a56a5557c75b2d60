// From logits to choices: the lowest id among equals at every level, softmax sums, and drafts drawn with the noise the
// design defines.
#include "gpu_test.h"
#include "kernels/vocab.h"
#include "reference/ops.h"
#include "shared/philox.h"
#include "shared/slot_state.h"

#include <cmath>

namespace auspex::vocab_test {
namespace {

// Slots with one temperature each, and entries that name them.
struct Slots {
    std::vector<gpu::SlotState> state;
    std::vector<gpu::RoundSlot> round_slots;

    void add(float temperature, uint32_t start, uint64_t seed) {
        gpu::SlotState slot = neutral_state();
        slot.live = 1;
        slot.temperature = temperature;
        slot.seed_low = static_cast<uint32_t>(seed);
        slot.seed_high = static_cast<uint32_t>(seed >> 32);
        round_slots.push_back({static_cast<uint32_t>(state.size()), gpu::kMaxDraftLen, start, 1, 0});
        state.push_back(slot);
    }
};

class VocabTest : public GpuTest {
  protected:
    // Choices (n_rows) of dense logits (n_rows, vocab).
    std::vector<gpu::VocabChoice> choose(KernelLibrary& library, const std::vector<float>& logits, const Slots& slots,
                                         VocabShape shape) {
        const Buffer values = upload(logits), state = upload(slots.state);
        const Buffer rows = upload(chain_rows(slots.round_slots, shape.n_rows / static_cast<uint32_t>(slots.round_slots.size()) - 1));
        shape.rows = rows.view();
        const Buffer partials = output<gpu::VocabChoice>(size_t{shape.n_rows} * vocab_chunks(shape.vocab));
        const Buffer choices = output<gpu::VocabChoice>(shape.n_rows + 1);
        run(library, [&](Recorder& to) {
            record_vocab_partials(to, values.view(), state.view(), partials.view(), shape);
            to.cmd.barrier();
            record_pick(to, partials.view(), choices.view(), shape.n_rows, shape.vocab);
        });
        EXPECT_EQ(read<uint32_t>(choices, 1, shape.n_rows * sizeof(gpu::VocabChoice) / 4)[0], kPoison) << "wrote past its rows";
        return read<gpu::VocabChoice>(choices, shape.n_rows);
    }
};

class Vocab : public VocabTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(Vocab, finds_the_largest_and_sums_the_rest) {
    for (uint32_t vocab : {3u, 7u, 33u, 1023u, 1024u, 1025u, 1234u, 5000u, 128256u}) {
        if (GetParam() != Variant::native && vocab > 5000) continue;
        SCOPED_TRACE("vocab " + std::to_string(vocab));
        Slots slots;
        for (float temperature : {0.0f, 1.0f, 0.7f})
            slots.add(temperature, 5, 1);
        const VocabShape shape{.vocab = vocab, .n_rows = 6, .rows = {}};
        const std::vector<float> logits = random_floats(size_t{6} * vocab, vocab, 4.0f);
        const std::vector<gpu::VocabChoice> found = choose(kernels(GetParam()), logits, slots, shape);
        for (uint32_t r = 0; r < 6; ++r) {
            const float temperature = slots.state[r / 2].temperature;
            const double divisor = temperature == 0.0f ? 1.0 : double(temperature);
            const reference::Vector row(&logits[size_t{r} * vocab], &logits[size_t{r} * vocab] + vocab);
            const uint32_t best = reference::argmax(row);
            const double largest = row[best] / divisor, scale_error = kDivisionError + kUnit;
            EXPECT_EQ(found[r].best_id, best);
            EXPECT_NEAR(found[r].best, largest, temperature == 0.0f ? 0.0 : scale_error * std::abs(largest));
            if (temperature == 0.0f) continue;
            double sum = 0.0, bound = 0.0;
            for (double z : row) {
                const double distance = z / divisor - largest, term = std::exp(distance);
                sum += term;
                const double argument =
                    scale_error * (std::abs(z / divisor) + std::abs(largest)) + kUnit * std::abs(distance);
                // One exp here, one for its chunk, sums over lanes and chunks.
                bound += term * (1.01 * argument + 2 * exp_error(distance) + rounding(vocab / 8.0 + 40.0));
            }
            EXPECT_EQ(found[r].max, found[r].best);
            EXPECT_NEAR(found[r].sum, sum, bound);
            EXPECT_NEAR(found[r].sum / sum, 1.0, 1e-5);
        }
    }
}

// Equal largest values in every place where the reduction changes hands: within a quad, between lanes, between chunks.
TEST_P(Vocab, gives_ties_to_the_lowest_id) {
    constexpr uint32_t kVocab = 5000;
    const std::vector<std::vector<uint32_t>> ties{
        {0, 1},       {3, 2},       {4, 7, 5},      {8, 3000, 12}, {1023, 1024},
        {2048, 1020}, {4999, 4998}, {4096, 31, 33}, {64, 32, 96},  {4995, 4096, 3072}};
    Slots slots;
    for (size_t i = 0; i < ties.size(); ++i)
        slots.add(i % 2 ? 0.7f : 0.0f, 0, i);
    std::vector<float> logits = random_floats(ties.size() * kVocab, 1);
    for (size_t r = 0; r < ties.size(); ++r)
        for (uint32_t id : ties[r])
            logits[r * kVocab + id] = 30.0f;
    std::vector<gpu::VocabChoice> found =
        choose(kernels(GetParam()), logits, slots, {.vocab = kVocab, .n_rows = static_cast<uint32_t>(ties.size()), .rows = {}});
    for (size_t r = 0; r < ties.size(); ++r)
        EXPECT_EQ(found[r].best_id, *std::min_element(ties[r].begin(), ties[r].end())) << r;

    // All equal, all hopeless but one, nothing but minus infinity.
    Slots three;
    for (int i = 0; i < 3; ++i)
        three.add(0.0f, 0, 0);
    logits.assign(3 * kVocab, -1.0f);
    std::fill_n(&logits[kVocab], 2 * kVocab, -INFINITY);
    logits[kVocab + 4000] = -3e38f;
    found = choose(kernels(GetParam()), logits, three, {.vocab = kVocab, .n_rows = 3, .rows = {}});
    EXPECT_EQ(found[0].best_id, 0u);
    EXPECT_EQ(found[1].best_id, 4000u);
    EXPECT_EQ(found[2].best_id, 0u);
}

INSTANTIATE_TEST_SUITE_P(, Vocab, ::testing::ValuesIn(all_variants()),
                         [](const auto& i) { return variant_name(i.param); });

class VocabBits : public VocabTest {};

TEST_F(VocabBits, do_not_depend_on_company_or_exchange) {
    constexpr uint32_t kVocab = 3000, kRows = 40;
    Slots slots;
    for (uint32_t i = 0; i < kRows; ++i)
        slots.add(0.5f + 0.1f * float(i % 7), i, i * 77);
    const std::vector<float> logits = random_floats(kRows * kVocab, 2, 3.0f);
    const VocabShape shape{.vocab = kVocab, .n_rows = kRows, .rows = {}, .of_draft = true};
    const std::vector<gpu::VocabChoice> native = choose(kernels(), logits, slots, shape);
    const std::vector<gpu::VocabChoice> shared = choose(kernels(Variant::shared), logits, slots, shape);
    EXPECT_EQ(std::memcmp(native.data(), shared.data(), kRows * sizeof(gpu::VocabChoice)), 0);
    for (uint32_t r : {0u, 17u, 39u}) {
        Slots alone;
        alone.state.push_back(slots.state[r]);
        alone.round_slots.push_back({0, 0, r, 1, 0});
        VocabShape one = shape;
        one.n_rows = 1;
        one.first_logits = r;
        const std::vector<gpu::VocabChoice> found = choose(kernels(), logits, alone, one);
        EXPECT_EQ(std::memcmp(&found[0], &native[r], sizeof found[0]), 0) << "row " << r;
    }
}

// The key of a token, from the design's words.
double noisy_key(float logit, const gpu::SlotState& slot, uint32_t position, uint32_t token) {
    const auto random =
        reference::philox({position, gpu::kPurposeDraft, 0, token / 4}, {slot.seed_low, slot.seed_high});
    return double(logit) / double(slot.temperature) - std::log(reference::exponential(random[token % 4]));
}

TEST_F(VocabBits, drafts_are_the_gumbel_argmax_of_seed_position_and_token) {
    for (uint32_t vocab : {7u, 1234u, 128256u}) {
        const uint32_t n = vocab == 7 ? 500 : vocab == 1234 ? 100 : 4;
        Slots slots;
        for (uint32_t i = 0; i < n; ++i)
            slots.add(i % 2 ? 0.7f : 1.0f, 1000 * i, 0x1234567890ull * (i + 1));
        const std::vector<float> logits = random_floats(size_t{n} * vocab, vocab, 2.0f);
        const std::vector<gpu::VocabChoice> found =
            choose(kernels(), logits, slots,
                   {.vocab = vocab, .n_rows = n, .rows = {}, .of_draft = true});
        for (uint32_t r = 0; r < n; ++r) {
            const uint32_t position = 1000 * r + 1;
            double best = -INFINITY;
            for (uint32_t t = 0; t < vocab; ++t)
                best = std::max(best, noisy_key(logits[size_t{r} * vocab + t], slots.state[r], position, t));
            // log has an absolute error of 2^-21 near one; logits of this size add less.
            ASSERT_LT(found[r].best_id, vocab);
            EXPECT_NEAR(
                noisy_key(logits[size_t{r} * vocab + found[r].best_id], slots.state[r], position, found[r].best_id),
                best, 4e-6);
            EXPECT_NEAR(found[r].best, best, 4e-6);
        }
    }
}

// Logits and choices strided as drafts are; tokens go to the rows that wait for them and nowhere else.
TEST_F(VocabBits, drafts_reach_the_rows_that_wait_for_them) {
    constexpr uint32_t kVocab = 33, kBatch = 5, kDraftLen = 3;
    Slots slots;
    for (uint32_t b = 0; b < kBatch; ++b)
        slots.add(0.0f, 10, 0);
    const uint32_t n_draft_rows = gpu::draft_pass_first_row(kBatch, kDraftLen + 1),
                   n_target_rows = kBatch * (kDraftLen + 1);
    const std::vector<float> logits = random_floats(kBatch * kDraftLen * kVocab, 3);
    const Buffer values = upload(logits), state = upload(slots.state), round_slots = upload(slots.round_slots);
    const Buffer partials = output<gpu::VocabChoice>(kBatch), choices = output<gpu::VocabChoice>(kBatch * kDraftLen);
    const Buffer target_rows = output<gpu::Row>(n_target_rows), draft_rows = output<gpu::Row>(n_draft_rows);
    std::vector<gpu::Row> target = read<gpu::Row>(target_rows, n_target_rows),
                          draft = read<gpu::Row>(draft_rows, n_draft_rows);
    const Buffer rows = upload(chain_rows(slots.round_slots, 0));
    for (uint32_t step = 0; step < kDraftLen; ++step) {
        run([&](Recorder& to) {
            record_vocab_partials(to, values.view(), state.view(), partials.view(),
                                  {.vocab = kVocab, .n_rows = kBatch, .rows = rows.view(), .first_logits = step, .logits_step = kDraftLen, .of_draft = true});
            to.cmd.barrier();
            record_pick_draft(to, partials.view(), {.choices = choices.view(), .target_rows = target_rows.view(), .draft_rows = draft_rows.view(),
                                                    .round_slots = round_slots.view()}, kVocab,
                              kBatch, step, kDraftLen);
        });
        for (uint32_t b = 0; b < kBatch; ++b) {
            const float* row = &logits[(b * kDraftLen + step) * kVocab];
            const uint32_t token = reference::argmax(reference::Vector(row, row + kVocab));
            EXPECT_EQ(read<gpu::VocabChoice>(choices, 1, b * kDraftLen + step)[0].best_id, token);
            target[b * (kDraftLen + 1) + step + 1].token = token;
            if (step + 1 < kDraftLen) draft[gpu::draft_pass_first_row(kBatch, step + 1) + b].token = token;
        }
    }
    EXPECT_EQ(std::memcmp(target.data(), target_rows.mapped(), n_target_rows * sizeof(gpu::Row)), 0);
    EXPECT_EQ(std::memcmp(draft.data(), draft_rows.mapped(), n_draft_rows * sizeof(gpu::Row)), 0);
}

} // namespace
} // namespace auspex::vocab_test
