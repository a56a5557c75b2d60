// Penalties and biases against the double reference: contexts that grow by the drafts of the round, negative logits, bans,
// and rows that must keep every bit.
#include "gpu_test.h"
#include "kernels/edit_logits.h"
#include "reference/transforms.h"

#include <cmath>

namespace auspex::edit_logits_test {
namespace {

constexpr uint32_t kStride = 300;

// Slots of a batch, each with its own transforms, context and drafts. Entry b of the batch is slot n - 1 - b.
struct Batch {
    uint32_t vocab, draft_len;
    std::vector<gpu::SlotState> state;
    std::vector<gpu::RoundSlot> round_slots;
    std::vector<uint32_t> history;
    std::vector<uint32_t> tokens; // (entries, draft_len + 1): of the target's rows
    std::vector<gpu::TokenBias> biases;

    Batch(uint32_t n, uint32_t n_tokens, uint32_t k)
        : vocab(n_tokens), draft_len(k), state(n, neutral_state()), round_slots(n), history(size_t{n} * kStride, kPoison),
          tokens(size_t{n} * (k + 1)), biases(size_t{n} * gpu::kMaxBiases, {kPoison, NAN}) {}
    gpu::SlotState& slot_of(uint32_t b) { return state[state.size() - 1 - b]; }
    // A context of start + 1 tokens and draft_len drafts out of the first `variety` tokens.
    void fill(uint32_t b, uint32_t start, uint32_t slot_draft_len, uint32_t variety, uint32_t seed) {
        reference::DataStream data(seed);
        const auto slot = static_cast<uint32_t>(state.size() - 1 - b);
        round_slots[b] = {slot, slot_draft_len, start, 1, 0};
        for (uint32_t i = 0; i <= start; ++i) history[slot * kStride + i] = data.below(variety);
        for (uint32_t j = 0; j <= draft_len; ++j) // row 0 holds the last token, which is in the history too
            tokens[b * (draft_len + 1) + j] = j == 0 ? history[slot * kStride + start] : data.below(variety);
    }
    void bias(uint32_t b, const std::vector<gpu::TokenBias>& list) {
        const auto slot = static_cast<uint32_t>(state.size() - 1 - b);
        state[slot].n_biases = static_cast<uint32_t>(list.size());
        std::copy(list.begin(), list.end(), &biases[size_t{slot} * gpu::kMaxBiases]);
    }
    std::vector<uint32_t> context(uint32_t b, uint32_t n_drafts) const {
        const uint32_t* first = &history[round_slots[b].slot * kStride];
        std::vector<uint32_t> known(first, first + round_slots[b].start + 1);
        for (uint32_t j = 1; j <= n_drafts; ++j) known.push_back(tokens[b * (draft_len + 1) + j]);
        return known;
    }
    reference::Transforms transforms(uint32_t b) const {
        const gpu::SlotState& s = state[round_slots[b].slot];
        reference::Transforms t = {double(s.repeat_penalty), double(s.presence_penalty), double(s.frequency_penalty), {}};
        for (uint32_t i = 0; i < s.n_biases; ++i) {
            const gpu::TokenBias& one = biases[round_slots[b].slot * gpu::kMaxBiases + i];
            t.biases.emplace_back(one.token, double(one.bias));
        }
        return t;
    }
};

class EditLogitsTest : public GpuTest {
  protected:
    // Of the rows that the shape has or, without any, the target's.
    std::vector<float> edit(KernelLibrary& library, const Batch& in, const std::vector<float>& logits, VocabShape shape) {
        const Buffer values = upload(logits), state = upload(in.state), history = upload(in.history), biases = upload(in.biases);
        const Buffer rows = upload(chain_rows(in.round_slots, in.draft_len, in.tokens));
        if (!shape.rows.buffer) shape.rows = rows.view();
        run(library, [&](Recorder& to) {
            record_edit_logits(to, {.logits = values.view(), .state = state.view(), .history = history.view(), .target_rows = rows.view(),
                                    .biases = biases.view()}, shape, kStride);
        });
        return floats(values, logits.size());
    }
    // Row r of `found` is what the reference makes of row r of `given`; n_drafts come before it.
    static void expect_row(const Batch& in, uint32_t b, uint32_t n_drafts, std::span<const float> given, std::span<const float> found) {
        const std::vector<uint32_t> context = in.context(b, n_drafts);
        const reference::Transforms t = in.transforms(b);
        const reference::Vector expected = reference::edit_logits({given.begin(), given.end()}, t, context);
        std::vector<bool> touched(in.vocab);
        const bool penalises = t.repeat_penalty != 1 || t.presence_penalty != 0 || t.frequency_penalty != 0;
        for (uint32_t token : context) touched[token] = penalises;
        for (const auto& [token, bias] : t.biases) touched[token] = touched[token] || bias != 0;
        for (uint32_t i = 0; i < in.vocab; ++i) {
            if (!touched[i] || std::isinf(expected[i])) {
                ASSERT_TRUE(same_bits({&found[i], 1}, std::isinf(expected[i]) ? std::vector<float>{float(expected[i])} : std::vector<float>{given[i]}))
                    << "token " << i << " of entry " << b << " after " << n_drafts << " drafts";
                continue;
            }
            const double size = std::max(std::abs(double(given[i])) * t.repeat_penalty, 100.0); // of all terms
            ASSERT_NEAR(double(found[i]), expected[i], size * (kDivisionError + rounding(4)))
                << "token " << i << " of entry " << b << " after " << n_drafts << " drafts";
        }
    }
};

// Entries: all at once, none of it, each alone, and one that is not live.
Batch mixed_batch(uint32_t vocab, uint32_t draft_len) {
    Batch in(9, vocab, draft_len);
    const uint32_t variety = std::min(vocab, 40u);
    for (uint32_t b = 0; b < 9; ++b) in.fill(b, b == 3 ? 0 : 20 + 31 * b, b == 5 ? draft_len / 2 : draft_len, b == 6 ? vocab : variety, vocab + b);
    in.slot_of(0).repeat_penalty = 1.3f;
    in.slot_of(0).presence_penalty = 0.4f;
    in.slot_of(0).frequency_penalty = 0.11f;
    in.bias(0, {{0, -INFINITY}, {vocab - 1, 2.5f}, {vocab / 2, -1.0f}});
    in.slot_of(2).repeat_penalty = 0.8f;
    in.slot_of(3).presence_penalty = -1.5f;
    in.slot_of(4).frequency_penalty = 0.3f;
    std::vector<gpu::TokenBias> many;
    for (uint32_t i = 0; i < std::min(vocab, gpu::kMaxBiases); ++i) many.push_back({vocab - 1 - i, 0.01f * float(i % 7) - 0.02f});
    in.bias(5, many);
    in.slot_of(6).repeat_penalty = 1.1f;
    in.slot_of(6).frequency_penalty = -0.2f;
    in.slot_of(7).repeat_penalty = 2.0f;
    in.round_slots[7].live = 0;
    in.bias(8, {{1, -INFINITY}});
    return in;
}

std::vector<float> adversarial_logits(uint32_t n_rows, uint32_t vocab) {
    std::vector<float> logits = random_floats(size_t{n_rows} * vocab, vocab + n_rows, 5.0f);
    for (size_t i = 0; i < logits.size(); i += 13) logits[i] = i % 2 ? -0.0f : -INFINITY;
    return logits;
}

class EditLogits : public EditLogitsTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(EditLogits, rows_of_the_target_follow_the_reference) {
    for (uint32_t vocab : {3u, 7u, 97u, 1000u, 1025u, 5003u, 128256u})
        for (uint32_t draft_len : {0u, 1u, 8u}) {
            if (vocab > 5003 && (draft_len != 1 || GetParam() != Variant::native)) continue;
            SCOPED_TRACE("vocab " + std::to_string(vocab) + ", draft_len " + std::to_string(draft_len));
            const Batch in = mixed_batch(vocab, draft_len);
            const uint32_t n_rows = 9 * (draft_len + 1);
            const std::vector<float> given = adversarial_logits(n_rows, vocab);
            const std::vector<float> found = edit(kernels(GetParam()), in, given,
                                                  {.vocab = vocab, .n_rows = n_rows, .rows = {}});
            for (uint32_t r = 0; r < n_rows; ++r) {
                const uint32_t b = r / (draft_len + 1), j = r % (draft_len + 1);
                const std::span<const float> before(&given[size_t{r} * vocab], vocab), after(&found[size_t{r} * vocab], vocab);
                if (b == 1 || !in.round_slots[b].live || j > in.round_slots[b].draft_len) EXPECT_TRUE(same_bits(after, before)) << "row " << r;
                else expect_row(in, b, j, before, after);
                if (HasFatalFailure()) return;
            }
        }
}

TEST_P(EditLogits, draft_steps_see_the_drafts_before_them) {
    constexpr uint32_t kVocab = 1234, kDraftLen = 5;
    Batch in = mixed_batch(kVocab, kDraftLen);
    in.round_slots[4].one_hot = 1; // its drafts are proposed
    std::vector<float> given = adversarial_logits(9 * kDraftLen, kVocab), expected = given;
    for (uint32_t step = 0; step < kDraftLen; ++step) {
        const Buffer rows = upload(draft_pass_rows(in.round_slots, kDraftLen, step, chain_rows(in.round_slots, kDraftLen, in.tokens)));
        const std::vector<float> found = edit(kernels(GetParam()), in, given,
                                              {.vocab = kVocab, .n_rows = 9, .rows = rows.view(), .first_logits = step, .logits_step = kDraftLen, .of_draft = true});
        for (uint32_t r = 0; r < 9 * kDraftLen; ++r) {
            const uint32_t b = r / kDraftLen;
            const std::span<const float> before(&given[size_t{r} * kVocab], kVocab), after(&found[size_t{r} * kVocab], kVocab);
            if (r % kDraftLen == step && b != 1 && b != 4 && in.round_slots[b].live && step < in.round_slots[b].draft_len)
                expect_row(in, b, step, before, after);
            else EXPECT_TRUE(same_bits(after, before)) << "row " << r << " at step " << step;
            if (HasFatalFailure()) return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, EditLogits, ::testing::Values(Variant::native, Variant::lanes_32), [](const auto& i) { return variant_name(i.param); });

class EditLogitsBits : public EditLogitsTest {};

TEST_F(EditLogitsBits, do_not_depend_on_company) {
    constexpr uint32_t kVocab = 3001, kDraftLen = 3;
    const Batch in = mixed_batch(kVocab, kDraftLen);
    const std::vector<float> given = adversarial_logits(9 * (kDraftLen + 1), kVocab);
    const std::vector<float> together =
        edit(kernels(), in, given, {.vocab = kVocab, .n_rows = 9 * (kDraftLen + 1), .rows = {}});
    for (uint32_t b : {0u, 4u, 8u})
        for (uint32_t j = 0; j <= kDraftLen; ++j) {
            const uint32_t r = b * (kDraftLen + 1) + j;
            Batch alone = in; // the context as one of committed tokens: a plain round after the drafts were accepted
            alone.draft_len = 0;
            alone.round_slots = {in.round_slots[b]};
            alone.round_slots[0].draft_len = 0;
            const std::vector<uint32_t> context = in.context(b, j);
            alone.round_slots[0].start += j;
            std::copy(context.begin(), context.end(), &alone.history[alone.round_slots[0].slot * kStride]);
            const std::vector<float> row(&given[size_t{r} * kVocab], &given[size_t{r} * kVocab] + kVocab);
            EXPECT_TRUE(same_bits(edit(kernels(), alone, row, {.vocab = kVocab, .n_rows = 1, .rows = {}}),
                                  {&together[size_t{r} * kVocab], kVocab}))
                << "row " << r;
        }
}

} // namespace
} // namespace auspex::edit_logits_test
