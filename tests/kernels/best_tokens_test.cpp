// The head that leaves best tokens instead of logits: the choices are bitwise those that logits lead to.
#include "kernels/vocab.h"
#include "linear.h"
#include "shared/slot_state.h"
#include "shared/vocab_args.h"

namespace auspex::best_tokens_test {
namespace {

constexpr uint32_t kVocab = 1235, kCols = 352, kShard = 500; // an odd vocabulary in shards

struct Entries {
    std::vector<gpu::SlotState> state;
    std::vector<gpu::RoundSlot> round_slots;
    void add(float temperature, bool live = true) {
        const auto i = static_cast<uint32_t>(state.size());
        gpu::SlotState slot = neutral_state();
        slot.live = live;
        slot.temperature = temperature;
        slot.acceptance = gpu::kAcceptCoupled;
        slot.seed_low = 77 * i + 1;
        slot.seed_high = i;
        state.push_back(slot);
        round_slots.push_back({live ? i : gpu::kNoSlot, gpu::kMaxDraftLen, 10 * i + 3, live, 0});
    }
    bool any_noise() const {
        return std::any_of(state.begin(), state.end(), [](const gpu::SlotState& slot) { return slot.temperature > 0; });
    }
};

class BestTokensTest : public LinearTest {
  protected:
    std::vector<gpu::VocabChoice> choose(KernelLibrary& library, const Tensor& head, const NormedRows& rows, const Entries& entries,
                                         uint32_t rows_per_slot, bool by_logits) {
        const uint32_t n = rows.n_rows;
        const Buffer state = upload(entries.state), rows_of_round = upload(chain_rows(entries.round_slots, rows_per_slot - 1));
        const Buffer logits = output<float>(size_t{n} * kVocab), bests = output<gpu::BestToken>(size_t{n} * ((kVocab + 1) / 2) + 1);
        const Buffer partials = output<gpu::VocabChoice>(size_t{n} * vocab_chunks(kVocab)), choices = output<gpu::VocabChoice>(n);
        uint32_t n_bests = 0;
        run(library, [&](Recorder& to) {
            if (by_logits) {
                record_normed_matvec(to, head, rows, logits.view(), kVocab);
                to.cmd.barrier();
                record_vocab_partials(to, logits.view(), state.view(), partials.view(), {.vocab = kVocab, .n_rows = n, .rows = rows_of_round.view()});
                to.cmd.barrier();
                return record_pick(to, partials.view(), choices.view(), n, kVocab);
            }
            n_bests = record_best_tokens(to, head, rows, {.bests = bests.view(), .state = state.view(), .adds_noise = entries.any_noise(),
                                                          .rows = rows_of_round.view()});
            to.cmd.barrier();
            record_pick_best(to, bests.view(), choices.view(), n, n_bests);
        });
        const size_t words = size_t{2} * n * n_bests, room = size_t{2} * n * ((kVocab + 1) / 2) + 2;
        EXPECT_EQ(read<uint32_t>(bests, room - words, words), std::vector<uint32_t>(room - words, kPoison)) << "wrote past its rows";
        return read<gpu::VocabChoice>(choices, n);
    }

    // n_rows rows, with and without noise or, if so wanted, all without, entries that take no part among them.
    void expect_same(KernelLibrary& library, const Tensor& head, uint32_t n_rows, uint32_t rows_per_slot, bool greedy = false) {
        SCOPED_TRACE(std::to_string(n_rows) + " rows, " + std::to_string(rows_per_slot) + " per slot");
        Normed in = normed(random_floats(size_t{2} * n_rows * kCols, n_rows), kCols);
        in.rows.n_rows = n_rows;
        in.rows.row_step = 2;
        in.rows.first_row = 1;
        Entries entries;
        for (uint32_t i = 0; i < n_rows / rows_per_slot; ++i) entries.add(greedy || i % 3 == 0 ? 0.0f : 0.3f * float(i), i % 5 != 3);
        const auto expected = choose(library, head, in.rows, entries, rows_per_slot, true);
        const auto found = choose(library, head, in.rows, entries, rows_per_slot, false);
        for (uint32_t r = 0; r < n_rows; ++r) {
            if (!entries.round_slots[r / rows_per_slot].live) continue;
            EXPECT_EQ(found[r].best_id, expected[r].best_id) << "row " << r;
            EXPECT_EQ(std::bit_cast<uint32_t>(found[r].best), std::bit_cast<uint32_t>(expected[r].best)) << "row " << r;
        }
    }
};

class BestTokens : public BestTokensTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(BestTokens, are_what_logits_lead_to) {
    std::vector<float> values = random_floats(size_t{kVocab} * kCols, 1);
    const Tensor plain = tensor(values, kVocab, kCols, DType::bf16, kShard);
    for (const auto& [rows, per_slot] : {std::pair{1u, 1u}, {6u, 1u}, {6u, 3u}}) expect_same(kernels(GetParam()), plain, rows, per_slot);
    expect_same(kernels(GetParam()), plain, 6, 1, true);
    if (GetParam() != Variant::native) return; // compiling takes long
    for (const auto& [rows, per_slot] : {std::pair{10u, 5u}, {20u, 2u}})
        for (bool greedy : {false, true}) expect_same(kernels(GetParam()), plain, rows, per_slot, greedy);
    std::vector<float> decoded;
    expect_same(kernels(GetParam()), quantized_tensor(decoded, kVocab, kCols, DType::q4_0, 2, kShard), 6, 3);
}

TEST_F(BestTokensTest, of_rounded_x_are_what_logits_lead_to) {
    std::vector<float> decoded;
    const Tensor head = quantized_tensor(decoded, kVocab, kCols, DType::q4_0, 2, kShard);
    for (bool greedy : {false, true}) expect_same(kernels(Variant::int8), head, 6, 3, greedy);
}

// A row of the head that comes twice makes two equal logits, next to each other, workgroups apart, and in two shards.
TEST_P(BestTokens, give_ties_to_the_lowest_id) {
    for (const auto& [low, high] : {std::pair{0u, 1u}, {3u, 7u}, {40u, 300u}, {499u, 500u}, {12u, 1234u}}) {
        SCOPED_TRACE(std::to_string(low) + " and " + std::to_string(high));
        std::vector<float> values = random_floats(size_t{kVocab} * kCols, 1, 0.1f), x = random_floats(kCols, 9);
        Normed in = normed(x, kCols);
        for (uint32_t i = 0; i < kCols; ++i) // along x after its norm: far larger than the others
            values[size_t{low} * kCols + i] = values[size_t{high} * kCols + i] = x[i] * in.norm_weights[i];
        Entries entries;
        entries.add(0.0f);
        const auto found = choose(kernels(GetParam()), tensor(values, kVocab, kCols, DType::bf16, kShard), in.rows, entries, 1, false);
        EXPECT_EQ(found[0].best_id, low);
    }
}

// Workgroups have room for more outputs than a shard's end leaves them. With noise of its own a repeated last row would often win.
TEST_P(BestTokens, end_with_the_last_token) {
    constexpr uint32_t kRows = 12;
    std::vector<float> values = random_floats(size_t{kVocab} * kCols, 1, 0.001f), row = random_floats(kCols, 9), x;
    for (uint32_t r = 0; r < kRows; ++r) x.insert(x.end(), row.begin(), row.end());
    Normed in = normed(x, kCols);
    for (uint32_t i = 0; i < kCols; ++i) values[size_t{kVocab - 1} * kCols + i] = row[i] * in.norm_weights[i];
    Entries entries;
    for (uint32_t r = 0; r < kRows; ++r) entries.add(1.0f);
    for (const gpu::VocabChoice& choice : choose(kernels(GetParam()), tensor(values, kVocab, kCols, DType::bf16, kShard), in.rows, entries, 1, false))
        EXPECT_EQ(choice.best_id, kVocab - 1);
}

INSTANTIATE_TEST_SUITE_P(, BestTokens, ::testing::Values(Variant::native, Variant::shuffles, Variant::shared, Variant::lanes_32),
                         [](const auto& i) { return variant_name(i.param); });

// Several teams per workgroup, as GPUs have them; more outputs than lanes, and fewer.
TEST_F(BestTokensTest, do_not_depend_on_the_sizes) {
    std::vector<float> values = random_floats(size_t{kVocab} * kCols, 1);
    const Tensor head = tensor(values, kVocab, kCols, DType::bf16, kShard);
    for (const auto& [teams, outs, threads] : {std::tuple{4u, 2u, 64u}, {1u, 2u, 256u}, {2u, 16u, 8u}}) {
        SCOPED_TRACE(std::to_string(teams) + " teams");
        Tuning tuning = kernels().tuning();
        tuning.wide = false;
        tuning.matvec_teams = teams;
        tuning.matvec_outs = tuning.matvec_many_outs = outs;
        tuning.vocab_threads = std::min(threads, device().caps.max_workgroup_invocations);
        auto library = KernelLibrary::create(device(), tuning, "");
        ASSERT_TRUE(library.ok());
        for (uint32_t rows : {1u, 6u}) expect_same(*library.value(), head, rows, 1);
        tuning.subgroup = false;
        auto by_memory = KernelLibrary::create(device(), tuning, "");
        ASSERT_TRUE(by_memory.ok());
        expect_same(*by_memory.value(), head, 6, 2);
    }
}

// Nothing but NaN: the first token, as with logits.
TEST_F(BestTokensTest, of_a_row_without_numbers_is_the_first_token) {
    std::vector<float> values = random_floats(size_t{kVocab} * kCols, 1), x(kCols, NAN);
    Normed in = normed(x, kCols);
    Entries entries;
    entries.add(0.0f);
    EXPECT_EQ(choose(kernels(), tensor(values, kVocab, kCols, DType::bf16), in.rows, entries, 1, false)[0].best_id, 0u);
}

} // namespace
} // namespace auspex::best_tokens_test
