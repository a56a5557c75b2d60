// What log-probabilities are made of, against a double reference: sums and the best tokens of hostile rows, logits of what was said as they
// were before penalties and biases, bits that know no company, and rows of slots that did not ask, which nobody writes.
#include "accept/acceptance.h"
#include "gpu_test.h"
#include "kernels/edit_logits.h"
#include "kernels/hard_rows.h"
#include "kernels/logprobs.h"
#include "reference/ops.h"
#include "test_shaders.h"

#include <bit>
#include <cmath>
#include <utility>

namespace auspex::logprobs_test {
namespace {

constexpr uint32_t kStride = 90; // tokens of a slot's history

// Entries of a batch, of slots in reverse; drafts, history and biases as a round has them.
struct Batch {
    uint32_t vocab, draft_len;
    std::vector<gpu::SlotState> state;
    std::vector<gpu::RoundSlot> round_slots;
    std::vector<uint32_t> history, tokens; // tokens: (entries, nodes) of the target's rows
    std::vector<gpu::TokenBias> biases;
    std::vector<float> logits;             // (entries, nodes, vocab)
    std::vector<uint32_t> n_said;          // by entry

    Batch(uint32_t n, uint32_t n_tokens, uint32_t k)
        : vocab(n_tokens), draft_len(k), state(n, neutral_state()), round_slots(n), history(size_t{n} * kStride, 0), tokens(size_t{n} * (k + 1)),
          biases(size_t{n} * gpu::kMaxBiases, {kPoison, NAN}), n_said(n, 1) {}
    uint32_t n_rows() const { return static_cast<uint32_t>(tokens.size()); }
    uint32_t row_of(uint32_t b, uint32_t node) const { return b * (draft_len + 1) + node; }
    gpu::SlotState& slot_of(uint32_t b) { return state[round_slots[b].slot]; }
    const gpu::SlotState& slot_of(uint32_t b) const { return state[round_slots[b].slot]; }
    uint32_t* text_of(uint32_t b) { return &history[round_slots[b].slot * kStride]; }
    const uint32_t* text_of(uint32_t b) const { return &history[round_slots[b].slot * kStride]; }
    bool has_said(uint32_t b, uint32_t node) const { return slot_of(b).logprobs != 0 && round_slots[b].live != 0 && node < n_said[b]; }
    void fill(uint32_t b, uint32_t start, uint32_t asked, uint32_t seed) {
        reference::DataStream data(seed);
        round_slots[b] = {static_cast<uint32_t>(state.size() - 1 - b), draft_len, start, 1, 0};
        slot_of(b).logprobs = asked;
        for (uint32_t i = 0; i <= start; ++i) text_of(b)[i] = data.below(vocab);
        for (uint32_t j = 0; j <= draft_len; ++j) tokens[row_of(b, j)] = j == 0 ? text_of(b)[start] : data.below(vocab);
    }
    // The round accepts drafts, then says `last`.
    void say(uint32_t b, uint32_t n_accepted, uint32_t last) {
        const uint32_t start = round_slots[b].start;
        for (uint32_t i = 1; i <= n_accepted; ++i) text_of(b)[start + i] = tokens[row_of(b, i)];
        text_of(b)[start + n_accepted + 1] = last;
        n_said[b] = n_accepted + 1;
    }
    void bias(uint32_t b, const std::vector<gpu::TokenBias>& list) {
        slot_of(b).n_biases = static_cast<uint32_t>(list.size());
        std::copy(list.begin(), list.end(), &biases[size_t{round_slots[b].slot} * gpu::kMaxBiases]);
    }
    std::span<const float> row(uint32_t r) const { return {&logits[size_t{r} * vocab], vocab}; }
};

// Every kind of row, with several numbers of best tokens.
Batch hostile_batch(uint32_t vocab) {
    constexpr uint32_t kCount = std::size(kKinds);
    Batch in(kCount, vocab, 0);
    for (uint32_t b = 0; b < kCount; ++b) {
        const uint32_t n_best = std::vector<uint32_t>{20, 1, 5, 0}[(b + vocab) % 4];
        in.fill(b, 3, 1 + n_best, b);
        in.say(b, 0, (b * 37 + 11) % vocab);
        const std::vector<float> row = logits_of(b, vocab, vocab + b);
        in.logits.insert(in.logits.end(), row.begin(), row.end());
    }
    return in;
}

// What was said is seen, drafted, biased, banned, several of these, or none of them.
Batch edited_batch() {
    constexpr uint32_t kVocab = 1500, kDrafts = 5, kEntries = 9;
    Batch in(kEntries, kVocab, kDrafts);
    in.logits = random_floats(uint64_t{in.n_rows()} * kVocab, 5, 4.0f);
    for (uint32_t b = 0; b < kEntries; ++b) {
        in.fill(b, 7 * b, b == 8 ? 0 : 3, b);
        in.slot_of(b).repeat_penalty = b % 2 ? 1.7f : 1.0f;
        in.slot_of(b).presence_penalty = b % 3 ? 0.9f : 0.0f;
        std::vector<gpu::TokenBias> list = {{in.text_of(b)[0], -2.0f}}; // no token twice
        for (const gpu::TokenBias& one : {gpu::TokenBias{1400, 3.0f}, {1401, -INFINITY}})
            if (one.token != list[0].token) list.push_back(one);
        for (uint32_t token = 1000; token < 1200; ++token)
            if (token != list[0].token) list.push_back({token, -0.5f});
        if (b != 2) in.bias(b, list);
        if (b == 3) in.round_slots[b].live = 0;
        if (b == 4) in.round_slots[b].draft_len = 2;
        const uint32_t n_accepted = std::min(b, in.round_slots[b].draft_len);
        const uint32_t last[] = {in.text_of(b)[0], 1401, 1400, 777, in.tokens[in.row_of(b, n_accepted)], in.tokens[in.row_of(b, 4)], 1199, in.text_of(b)[in.round_slots[b].start], 0};
        in.say(b, n_accepted, last[b]);
    }
    return in;
}

class LogprobsTest : public GpuTest {
  protected:
    // A round as it comes to them: rows before the accept, edits, then the texts that it said.
    std::vector<gpu::LogprobRow> tell(KernelLibrary& library, Batch in, bool edits = false) {
        const uint32_t n = in.n_rows(), nodes = in.draft_len + 1;
        const std::vector<uint32_t> after = std::exchange(in.history, before(in));
        const Buffer logits = upload(in.logits), state = upload(in.state), history = upload(in.history), biases = upload(in.biases);
        const Buffer rows = upload(chain_rows(in.round_slots, in.draft_len, in.tokens)), round_slots = upload(in.round_slots);
        const Buffer partials = output<gpu::LogprobPartial>(size_t{n} * vocab_chunks(in.vocab));
        const Buffer kept = output<float>(size_t{n} * gpu::kept_words_of(kStride)), found = output<gpu::LogprobRow>(n + 1);
        const LogprobBuffers buffers = {.logits = logits.view(), .state = state.view(), .history = history.view(), .target_rows = rows.view(),
                                        .round_slots = round_slots.view(), .biases = biases.view(), .partials = partials.view(), .kept = kept.view(),
                                        .logprobs = found.view()};
        const VocabShape shape = {.vocab = in.vocab, .n_rows = n, .rows = rows.view()};
        run(library, [&](Recorder& to) {
            record_logprob_rows(to, buffers, shape, edits, kStride);
            if (!edits) return;
            record_edit_logits(to, {.logits = buffers.logits, .state = buffers.state, .history = buffers.history, .target_rows = buffers.target_rows,
                                    .biases = buffers.biases}, shape, kStride);
        });
        for (uint32_t b = 0; b < in.round_slots.size(); ++b) in.slot_of(b).target_len = in.round_slots[b].start + in.n_said[b];
        std::memcpy(state.mapped(), in.state.data(), in.state.size() * sizeof in.state[0]);
        std::memcpy(history.mapped(), after.data(), after.size() * 4);
        run(library, [&](Recorder& to) {
            record_logprobs_chosen(to, buffers, {static_cast<uint32_t>(in.round_slots.size()), in.draft_len, in.vocab, kStride, edits});
        });
        EXPECT_EQ(read<uint32_t>(found, 1, n * sizeof(gpu::LogprobRow) / 4)[0], kPoison) << "wrote past its rows";
        EXPECT_EQ(nodes * in.round_slots.size(), n);
        return read<gpu::LogprobRow>(found, n);
    }
    // The texts without what the round says.
    static std::vector<uint32_t> before(const Batch& in) {
        std::vector<uint32_t> known = in.history;
        for (const gpu::RoundSlot& entry : in.round_slots) std::fill(known.data() + entry.slot * kStride + entry.start + 1, known.data() + (entry.slot + 1) * kStride, 0u);
        return known;
    }
    static void expect_row(std::span<const float> logits, const gpu::LogprobRow& found, uint32_t n_best, uint32_t token) {
        const reference::Vector row(logits.begin(), logits.end()), expected = reference::log_softmax(row);
        const std::vector<uint32_t> best = reference::largest(row, n_best);
        const TokenLogprobs read = read_logprobs(found, n_best);
        auto expect_near = [&](TokenLogprob one, uint32_t id) {
            EXPECT_EQ(one.id, id);
            const double wanted = expected[id] < -3.4e38 ? -INFINITY : expected[id];
            if (!std::isfinite(wanted)) EXPECT_TRUE(std::isnan(wanted) ? std::isnan(one.logprob) : one.logprob == -INFINITY) << one.logprob << " for " << wanted;
            else EXPECT_NEAR(one.logprob, wanted, 2e-6 + 2 * kUnit * std::abs(wanted)) << "token " << id;
        };
        ASSERT_EQ(read.n_best, best.size());
        for (uint32_t i = 0; i < best.size(); ++i) expect_near(read.best[i], best[i]);
        expect_near(read.token, token);
        EXPECT_TRUE(same_bits({&found.logit, 1}, {&logits[token], 1}));
    }
};

class Logprobs : public LogprobsTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(Logprobs, agree_with_the_reference) {
    for (uint32_t vocab : {3u, 7u, 33u, 1023u, 1024u, 1025u, 5000u, 70000u, 128256u}) { // a lane has several chunks of the last two
        if (GetParam() != Variant::native && vocab > 70000) continue;
        SCOPED_TRACE("vocab " + std::to_string(vocab));
        const Batch in = hostile_batch(vocab);
        const auto found = tell(kernels(GetParam()), in);
        for (uint32_t b = 0; b < std::size(kKinds); ++b) {
            SCOPED_TRACE(kKinds[b]);
            expect_row(in.row(b), found[b], in.slot_of(b).logprobs - 1, in.text_of(b)[4]);
        }
    }
}

// Ties wherever the lists change hands: within a quad, between lanes and between chunks, more of them than a list has places.
TEST_P(Logprobs, give_ties_to_the_lowest_id) {
    constexpr uint32_t kVocab = 4000;
    const std::vector<std::vector<uint32_t>> ties = {{3, 2, 1, 0}, {4, 40, 8, 33}, {1023, 1024, 2048, 3999}, {2047, 1000, 3072}, {}};
    Batch in(static_cast<uint32_t>(ties.size()), kVocab, 0);
    for (uint32_t b = 0; b < ties.size(); ++b) {
        in.fill(b, 5, 1 + gpu::kMaxLogprobs, b);
        in.say(b, 0, 17);
        std::vector<float> row = random_floats(kVocab, b);
        for (uint32_t id : ties[b]) row[id] = 9;
        if (ties[b].empty())
            for (uint32_t i = 0; i < kVocab; i += 3) row[i] = 9;
        in.logits.insert(in.logits.end(), row.begin(), row.end());
    }
    const auto found = tell(kernels(GetParam()), in);
    for (uint32_t b = 0; b < ties.size(); ++b) expect_row(in.row(b), found[b], gpu::kMaxLogprobs, 17);
}

// Whatever was done to the logit of what was said, it is the one from before.
TEST_P(Logprobs, are_of_the_logits_before_edits) {
    const Batch in = edited_batch();
    const auto found = tell(kernels(GetParam()), in, true);
    for (uint32_t b = 0; b < in.round_slots.size(); ++b)
        for (uint32_t node = 0; node <= in.draft_len; ++node) {
            SCOPED_TRACE("entry " + std::to_string(b) + ", node " + std::to_string(node));
            const uint32_t r = in.row_of(b, node);
            const bool is_asked = in.slot_of(b).logprobs != 0 && in.round_slots[b].live != 0;
            if (in.has_said(b, node)) {
                expect_row(in.row(r), found[r], 2, in.text_of(b)[in.round_slots[b].start + node + 1]);
                EXPECT_EQ(std::bit_cast<uint32_t>(found[r].best_logits[2]), kPoison) << "more than was asked";
                continue;
            }
            EXPECT_EQ(found[r].token, kPoison) << "nothing was said";
            if (!is_asked || node > in.round_slots[b].draft_len) { EXPECT_EQ(std::bit_cast<uint32_t>(found[r].max), kPoison) << "a row that takes no part"; }
        }
}

INSTANTIATE_TEST_SUITE_P(, Logprobs, ::testing::ValuesIn(all_variants()), [](const auto& i) { return variant_name(i.param); });

class LogprobBits : public LogprobsTest {};

TEST_F(LogprobBits, do_not_depend_on_company_or_exchange) {
    constexpr uint32_t kVocab = 3000, kEntries = 12, kDrafts = 3;
    Batch in(kEntries, kVocab, kDrafts);
    in.logits = random_floats(uint64_t{in.n_rows()} * kVocab, 2, 3.0f);
    for (uint32_t b = 0; b < kEntries; ++b) {
        in.fill(b, b, 1 + 20, b);
        in.slot_of(b).repeat_penalty = 1.2f;
        in.say(b, kDrafts, b);
    }
    const auto native = tell(kernels(), in, true), shared = tell(kernels(Variant::shared), in, true);
    EXPECT_EQ(std::memcmp(native.data(), shared.data(), native.size() * sizeof native[0]), 0);
    for (uint32_t b : {0u, 5u, 11u})
        for (uint32_t node = 0; node <= kDrafts; ++node) { // the same text as a plain round sees it
            Batch alone(1, kVocab, 0);
            alone.state[0] = in.slot_of(b);
            alone.round_slots[0] = {0, 0, in.round_slots[b].start + node, 1, 0};
            std::copy_n(in.text_of(b), kStride, alone.history.begin());
            alone.tokens[0] = in.tokens[in.row_of(b, node)];
            alone.logits.assign(in.row(in.row_of(b, node)).begin(), in.row(in.row_of(b, node)).end());
            const auto found = tell(kernels(), alone, true);
            EXPECT_EQ(std::memcmp(&found[0], &native[in.row_of(b, node)], sizeof found[0]), 0) << "entry " << b << ", node " << node;
        }
}

// What faults.cmake has of them changes what is told of these rows.
TEST_F(LogprobBits, planted_faults_are_found_out) {
    struct Fault {
        const char* shader;
        int number;
        const char* what;
    };
    for (const Fault& fault : {Fault{"logprobs_partials", 1, "NaN joins the sums"}, {"logprobs_partials", 2, "equal logits are taken twice"}, {"logprobs_rows", 1, "sums of chunks are not brought to one maximum"},
                               {"logprobs_rows", 2, "a token gets another's logit"}, {"logprobs_keep", 1, "drafts are not kept"}, {"logprobs_keep", 2, "biased tokens are not kept"},
                               {"logprobs_chosen", 1, "edited logits are told"}, {"logprobs_chosen", 2, "the token is looked for in the row before"}}) {
        const std::unique_ptr<KernelLibrary> library = new_library();
        for (const char* variant : {"", ".subgroup"}) {
            const std::string stem = std::string(fault.shader) + variant;
            const auto spirv = test_shader(stem + ".fault" + std::to_string(fault.number));
            if (!spirv.empty()) library->replace(stem, spirv);
        }
        size_t n_wrong = 0;
        for (const bool edits : {false, true}) {
            const Batch in = edits ? edited_batch() : hostile_batch(70000);
            const auto right = tell(kernels(), in, edits), found = tell(*library, in, edits);
            for (uint32_t b = 0; b < in.round_slots.size(); ++b)
                for (uint32_t node = 0; node <= in.draft_len; ++node) {
                    if (!in.has_said(b, node)) continue;
                    const uint32_t r = in.row_of(b, node), n_best = in.slot_of(b).logprobs - 1;
                    const TokenLogprobs x = read_logprobs(right[r], n_best), y = read_logprobs(found[r], n_best);
                    n_wrong += std::memcmp(&x, &y, sizeof x) != 0 ? 1 : 0;
                }
        }
        EXPECT_GT(n_wrong, 0u) << fault.shader << ": " << fault.what;
    }
}

} // namespace
} // namespace auspex::logprobs_test
