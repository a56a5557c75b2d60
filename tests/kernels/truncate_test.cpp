// Cuts of top_k, top_p and min_p against sorting in double, on random and hostile logits: the tokens kept are exactly the
// best so many, ties to the lowest id; how many may differ only where rounding moves a border.
#include "gpu_test.h"
#include "kernels/hard_rows.h"
#include "kernels/truncate.h"
#include "reference/transforms.h"

#include <cmath>

namespace auspex::truncate_test {
namespace {

struct Setting {
    uint32_t top_k = 0;
    float top_p = 1, min_p = 0, temperature = 0.8f;
};
Truncation truncation(const Setting& s) {
    return {s.top_k > 0, s.top_p < 1, s.min_p > 0};
}

// Rows of a batch with one slot each.
struct Rows {
    uint32_t vocab;
    std::vector<float> logits;
    std::vector<Setting> settings;
    std::vector<gpu::SlotState> state;
    std::vector<gpu::RoundSlot> round_slots;

    void add(const std::vector<float>& z, const Setting& s) {
        gpu::SlotState slot = neutral_state();
        slot.live = 1;
        slot.top_k = s.top_k;
        slot.top_p = s.top_p;
        slot.min_p = s.min_p;
        slot.temperature = s.temperature;
        round_slots.push_back({static_cast<uint32_t>(state.size()), 0, 3, 1, 0});
        state.push_back(slot);
        settings.push_back(s);
        logits.insert(logits.end(), z.begin(), z.end());
    }
    VocabShape shape() const {
        return {.vocab = vocab, .n_rows = static_cast<uint32_t>(state.size()), .rows = {}};
    }
    std::span<const float> row(size_t r) const { return {&logits[r * vocab], vocab}; }
};

class TruncateTest : public GpuTest {
  protected:
    // Of the rows that the shape has or, without any, one per entry.
    std::vector<gpu::Cut> cuts(KernelLibrary& library, const Rows& in, Truncation what, VocabShape shape) {
        const Buffer logits = upload(in.logits), state = upload(in.state), rows = upload(chain_rows(in.round_slots, 0));
        if (!shape.rows.buffer) shape.rows = rows.view();
        const Buffer scratch = output<uint32_t>(shape.n_rows * truncate_words(in.vocab) + 4), found = output<gpu::Cut>(shape.n_rows + 1);
        run(library, [&](Recorder& to) { record_truncate(to, {.logits = logits.view(), .state = state.view(), .scratch = scratch.view(),
                                                              .cuts = found.view()}, shape, what); });
        EXPECT_EQ(read<uint32_t>(found, 1, 2 * shape.n_rows)[0], kPoison) << "wrote past its rows";
        EXPECT_EQ(read<uint32_t>(scratch, 1, shape.n_rows * truncate_words(in.vocab))[0], kPoison) << "wrote past its scratch";
        EXPECT_TRUE(same_bits(floats(logits, in.logits.size()), in.logits));
        return read<gpu::Cut>(found, shape.n_rows);
    }
    std::vector<gpu::Cut> cuts(KernelLibrary& library, const Rows& in) { return cuts(library, in, {true, true, true}, in.shape()); }
};

bool keeps_all(const gpu::Cut& cut) {
    return std::isinf(cut.logit) && cut.logit < 0 && cut.last_id == ~0u;
}

// How many tokens of the ranking top_p and min_p keep: at least and at most.
struct Kept {
    size_t least, most;
};
Kept kept_tokens(const reference::Vector& z, const reference::Ranking& ranking, const Setting& s) {
    const double largest = z[ranking.tokens[0]];
    Kept kept = {ranking.tokens.size(), ranking.tokens.size()};
    if (s.top_p < 1) {
        double sum = 0, error = 0;
        for (uint32_t token : ranking.tokens) {
            const double distance = z[token] == largest ? 0 : z[token] - largest, mass = std::exp(distance);
            sum += mass;
            error += 0x1p-29 + (distance == 0 || mass == 0 ? 0 : mass * (exp_error(distance) + kUnit * std::abs(distance)));
        }
        const double border = 2 * error / sum + 0x1p-31;
        auto n_before = [&](double limit) {
            return static_cast<size_t>(std::count_if(ranking.before.begin(), ranking.before.end(), [&](double b) { return b < limit; }));
        };
        kept = {std::max<size_t>(n_before(double(s.top_p) - border), 1), std::max<size_t>(n_before(double(s.top_p) + border), 1)};
    }
    if (s.min_p > 0) {
        const double log_p = s.min_p < 1 ? std::log(double(s.min_p)) : 0, least = largest + log_p;
        const double border = s.min_p < 1 && std::isfinite(largest) ? 0x1p-20 + 6 * kUnit * std::abs(log_p) + 2 * kUnit * std::abs(least) : 0;
        auto n_above = [&](double limit) {
            return static_cast<size_t>(std::count_if(ranking.tokens.begin(), ranking.tokens.end(), [&](uint32_t t) { return z[t] >= limit; }));
        };
        kept = {std::min(kept.least, std::max<size_t>(n_above(least + border), 1)), std::min(kept.most, n_above(least - border))};
    }
    return kept;
}

void expect_cut(const gpu::Cut& cut, std::span<const float> row, const Setting& s) {
    const reference::Vector z(row.begin(), row.end());
    const reference::Ranking all = reference::rank(z, 0);
    if (all.tokens.empty() || s.temperature == 0 || !(s.top_k > 0 || s.top_p < 1 || s.min_p > 0)) {
        EXPECT_TRUE(keeps_all(cut)) << cut.logit << " up to " << cut.last_id;
        return;
    }
    std::vector<bool> kept(z.size());
    size_t n_drawable = 0;
    for (uint32_t i = 0; i < z.size(); ++i) {
        kept[i] = row[i] > cut.logit || (row[i] == cut.logit && i <= cut.last_id);
        if (!keeps_all(cut)) { ASSERT_FALSE(kept[i] && std::isinf(row[i]) && row[i] < 0) << "keeps the banned token " << i; }
    }
    for (uint32_t token : all.tokens) n_drawable += kept[token] ? 1 : 0;
    for (size_t i = 0; i < all.tokens.size(); ++i) ASSERT_EQ(kept[all.tokens[i]], i < n_drawable) << "rank " << i << " of " << n_drawable << " kept";
    const Kept expected = kept_tokens(z, s.top_k ? reference::rank(z, s.top_k) : all, s);
    EXPECT_GE(n_drawable, expected.least);
    EXPECT_LE(n_drawable, expected.most);
    if (s.top_p >= 1 && s.min_p == 0) { EXPECT_EQ(n_drawable, std::min<size_t>(s.top_k, all.tokens.size())); }
}

std::vector<Setting> settings_of(uint32_t vocab) {
    return {{.top_k = 1}, {.top_k = 5}, {.top_k = vocab - 1}, {.top_k = vocab}, {.top_k = vocab + 10}, {.top_k = 0xffffffffu}, {.top_p = 0}, {.top_p = 1e-6f},
            {.top_p = 0.5f}, {.top_p = 0.9f}, {.top_p = 0.99999994f}, {.min_p = 0.1f}, {.min_p = 1}, {.min_p = 1e-8f},
            {.top_k = 40, .top_p = 0.9f}, {.top_k = 3, .top_p = 0.6f, .min_p = 0.2f}, {.top_k = vocab - 1, .top_p = 0.95f, .min_p = 0.01f},
            {.top_k = 40, .min_p = 0.05f}, {.top_k = 2, .top_p = 0}, {.top_k = 2, .top_p = 0.99f}, {}, {.top_k = 1, .top_p = 0.1f, .min_p = 0.5f, .temperature = 0}};
}

class Truncate : public TruncateTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(Truncate, keeps_what_sorting_keeps) {
    for (uint32_t vocab : {3u, 7u, 97u, 1000u, 1025u, 5003u}) {
        if (GetParam() != Variant::native && (vocab == 97 || vocab == 1000)) continue;
        Rows in = {.vocab = vocab, .logits = {}, .settings = {}, .state = {}, .round_slots = {}};
        for (size_t kind = 0; kind < std::size(kKinds); ++kind)
            for (const Setting& s : settings_of(vocab)) in.add(logits_of(kind, vocab, static_cast<uint32_t>(1000 * kind + in.settings.size())), s);
        const std::vector<gpu::Cut> found = cuts(kernels(GetParam()), in);
        for (size_t r = 0; r < found.size(); ++r) {
            const Setting& s = in.settings[r];
            SCOPED_TRACE("vocab " + std::to_string(vocab) + ", " + kKinds[r / settings_of(vocab).size()] + ", top_k " + std::to_string(s.top_k) + ", top_p " +
                         std::to_string(s.top_p) + ", min_p " + std::to_string(s.min_p) + ", temperature " + std::to_string(s.temperature));
            expect_cut(found[r], in.row(r), s);
            if (HasFatalFailure()) return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, Truncate, ::testing::Values(Variant::native, Variant::lanes_16, Variant::lanes_32),
                         [](const auto& i) { return variant_name(i.param); });

class TruncateBits : public TruncateTest {};

TEST_F(TruncateBits, keep_what_sorting_keeps_of_a_full_vocabulary) {
    Rows in = {.vocab = 128256, .logits = {}, .settings = {}, .state = {}, .round_slots = {}};
    for (size_t kind : {0u, 1u, 3u})
        for (const Setting& s : {Setting{.top_k = 40, .top_p = 0.95f, .min_p = 0.05f}, Setting{.top_k = 100000}, Setting{.top_p = 0.9f}})
            in.add(logits_of(kind, in.vocab, static_cast<uint32_t>(kind)), s);
    const std::vector<gpu::Cut> found = cuts(kernels(), in);
    for (size_t r = 0; r < found.size(); ++r) {
        SCOPED_TRACE("row " + std::to_string(r));
        expect_cut(found[r], in.row(r), in.settings[r]);
    }
}

// Equal logits have equal masses: the border is exact, ⌈top_p · n⌉ tokens, the lowest ids.
TEST_F(TruncateBits, share_out_equal_logits_exactly) {
    for (uint32_t vocab : {3u, 1000u, 4096u, 5003u, 128256u}) {
        Rows in = {.vocab = vocab, .logits = {}, .settings = {}, .state = {}, .round_slots = {}};
        for (float top_p : {0.0f, 0.25f, 0.3f, 0.5f, 0.75f, 0.9f, 0.99f}) in.add(std::vector<float>(vocab, -3.25f), {.top_p = top_p});
        in.add(std::vector<float>(vocab, -3.25f), {.top_k = vocab - 1, .top_p = 0.5f});
        const std::vector<gpu::Cut> found = cuts(kernels(), in);
        for (size_t r = 0; r < found.size(); ++r) {
            const uint32_t n = in.settings[r].top_k ? vocab - 1 : vocab;
            const double kept = std::max(std::ceil(double(in.settings[r].top_p) * n), 1.0); // exact: 24 bits times 17
            EXPECT_EQ(found[r].logit, -3.25f);
            EXPECT_EQ(found[r].last_id, kept == vocab ? ~0u : static_cast<uint32_t>(kept) - 1) << "vocab " << vocab << ", top_p " << in.settings[r].top_p;
        }
    }
}

// All that can be drawn are kept, and the lowest of them share the lowest digit, with which the search ends.
TEST_F(TruncateBits, keep_the_lowest_logits) {
    for (const std::vector<float>& row : {std::vector<float>{1, -3e38f, 2, -INFINITY, 0}, {-INFINITY, -3.4028235e38f, -INFINITY, -2e38f, NAN}}) {
        const auto n_drawable = static_cast<uint32_t>(std::count_if(row.begin(), row.end(), [](float z) { return std::isfinite(z); }));
        Rows in = {.vocab = 5, .logits = {}, .settings = {}, .state = {}, .round_slots = {}};
        for (uint32_t top_k = 1; top_k <= 4; ++top_k)
            for (float top_p : {1.0f, 0.99f, 0.1f}) in.add(row, {.top_k = top_k, .top_p = top_p});
        const std::vector<gpu::Cut> found = cuts(kernels(), in);
        for (size_t r = 0; r < found.size(); ++r) {
            SCOPED_TRACE("top_k " + std::to_string(in.settings[r].top_k) + " of " + std::to_string(n_drawable) + ", top_p " + std::to_string(in.settings[r].top_p));
            expect_cut(found[r], in.row(r), in.settings[r]);
        }
    }
}

TEST_F(TruncateBits, do_not_depend_on_company_stages_or_threads) {
    constexpr uint32_t kVocab = 3001;
    Rows in = {.vocab = kVocab, .logits = {}, .settings = {}, .state = {}, .round_slots = {}};
    for (size_t kind : {0u, 3u, 4u, 7u})
        for (const Setting& s : settings_of(kVocab)) in.add(logits_of(kind, kVocab, static_cast<uint32_t>(in.settings.size())), s);
    const std::vector<gpu::Cut> together = cuts(kernels(), in), other = cuts(kernels(Variant::lanes_32), in);
    EXPECT_EQ(std::memcmp(together.data(), other.data(), together.size() * sizeof(gpu::Cut)), 0);
    for (size_t r = 0; r < together.size(); ++r) {
        Rows alone = {.vocab = kVocab, .logits = {}, .settings = {}, .state = {}, .round_slots = {}};
        alone.add({in.row(r).begin(), in.row(r).end()}, in.settings[r]);
        const gpu::Cut found = cuts(kernels(), alone, truncation(in.settings[r]), alone.shape())[0];
        EXPECT_EQ(std::memcmp(&found, &together[r], sizeof found), 0) << "row " << r << ": " << found.logit << ", " << together[r].logit;
    }
}

// Rows as rounds have them: K + 1 per slot, some of them not there; drafts strided by K, proposed ones left alone.
TEST_F(TruncateBits, rows_of_rounds) {
    constexpr uint32_t kVocab = 1030, kDraftLen = 3, kBatch = 5;
    Rows in = {.vocab = kVocab, .logits = {}, .settings = {}, .state = {}, .round_slots = {}};
    for (uint32_t b = 0; b < kBatch; ++b) in.add(logits_of(0, kVocab, b), {.top_k = 10 + b, .top_p = 0.8f});
    in.round_slots = {{4, kDraftLen, 9, 1, 0}, {3, 1, 9, 1, 0}, {2, kDraftLen, 9, 1, 1}, {gpu::kNoSlot, 0, 0, 0, 0}, {0, 0, 9, 1, 0}};
    for (uint32_t r = kBatch; r < kBatch * (kDraftLen + 1); ++r) {
        const auto row = logits_of(0, kVocab, r);
        in.logits.insert(in.logits.end(), row.begin(), row.end());
    }
    auto expect_row = [&](const gpu::Cut& cut, uint32_t b, uint32_t row, bool there) {
        SCOPED_TRACE("entry " + std::to_string(b) + ", row " + std::to_string(row));
        if (there) expect_cut(cut, in.row(row), in.settings[in.round_slots[b].slot]);
        else EXPECT_EQ(cut.last_id, kPoison);
    };
    const std::vector<gpu::Row> rows = chain_rows(in.round_slots, kDraftLen);
    const Buffer target_rows = upload(rows);
    const auto target = cuts(kernels(), in, {true, true, false}, {.vocab = kVocab, .n_rows = kBatch * (kDraftLen + 1), .rows = target_rows.view()});
    for (uint32_t r = 0; r < target.size(); ++r) {
        const uint32_t b = r / (kDraftLen + 1);
        expect_row(target[r], b, r, in.round_slots[b].live && r % (kDraftLen + 1) <= in.round_slots[b].draft_len);
    }
    for (uint32_t step = 0; step < kDraftLen; ++step) {
        const Buffer draft_rows = upload(draft_pass_rows(in.round_slots, kDraftLen, step, rows));
        const auto draft = cuts(kernels(), in, {true, true, false},
                                {.vocab = kVocab, .n_rows = kBatch, .rows = draft_rows.view(), .first_logits = step, .logits_step = kDraftLen, .of_draft = true});
        for (uint32_t b = 0; b < kBatch; ++b)
            expect_row(draft[b], b, b * kDraftLen + step, in.round_slots[b].live && !in.round_slots[b].one_hot && step < in.round_slots[b].draft_len);
    }
}

} // namespace
} // namespace auspex::truncate_test
