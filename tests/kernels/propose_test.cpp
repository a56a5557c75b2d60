// Drafts by search against maps, on texts of few different tokens, where matches are many.
#include "gpu_test.h"
#include "kernels/propose.h"
#include "reference/ngram.h"
#include "shared/propose_args.h"

#include <algorithm>

namespace auspex::propose_test {
namespace {

using Tokens = std::vector<uint32_t>;
using reference::Proposal;

struct Search {
    Tokens text;
    uint32_t search = gpu::kDrafterNgram;
    uint32_t ngram_max = 4;
    uint32_t draft_len = 8;
    bool live = true;

    bool works() const { return live && search != gpu::kDrafterNone; }
    Proposal expected() const {
        const uint32_t n = std::min(draft_len, gpu::kMaxDraftLen);
        if (!works()) return {};
        return search == gpu::kDrafterNgram ? reference::propose_ngram(text, ngram_max, n) : reference::propose_lookup(text, ngram_max, n);
    }
};

Tokens random_text(size_t n, uint32_t alphabet, uint32_t seed) {
    reference::DataStream random(seed);
    Tokens text(n);
    for (uint32_t& token : text) token = 1000 + random.below(alphabet);
    return text;
}

class Propose : public GpuTest {
  protected:
    // Each search in a slot of its own; `order` names the slots by batch position. Checks all that is written, and that
    // nothing else is.
    std::vector<Proposal> run_all(const std::vector<Search>& searches, const std::vector<uint32_t>& order) {
        size_t stride = 0;
        for (const Search& s : searches) stride = std::max(stride, s.text.size() + 3);
        std::vector<uint32_t> history;
        std::vector<gpu::SlotState> states;
        for (const Search& s : searches) {
            history.insert(history.end(), s.text.begin(), s.text.end());
            // What an earlier text left behind must not be found.
            while (history.size() % stride != 0) history.push_back(s.text[history.size() % s.text.size()]);
            gpu::SlotState state;
            std::fill_n(reinterpret_cast<uint32_t*>(&state), gpu::kSlotStateWords, kPoison);
            state.live = s.live;
            state.target_len = static_cast<uint32_t>(s.text.size()) - 1;
            state.last_token = s.text.back();
            state.search_len = s.draft_len;
            state.search = s.search;
            state.ngram_max = s.ngram_max;
            states.push_back(state);
        }
        const Buffer batch = upload(order), state = upload(states), tokens = upload(history);
        const Buffer records = output<gpu::RoundRecord>(order.size());
        const auto n = static_cast<uint32_t>(order.size());
        std::vector<uint32_t> asked(gpu::counts_words(n), kPoison); // for all of them
        asked[gpu::kCountsSearch] = n;
        asked[gpu::kCountsSearch + 1] = asked[gpu::kCountsSearch + 2] = 1;
        for (uint32_t b = 0; b < n; ++b) asked[gpu::kSearchEntries + b] = b;
        const Buffer counts = upload(asked);
        const Buffer index = output<uint32_t>(searches.size() * (1 + gpu::index_words_for(static_cast<uint32_t>(stride))));
        run([&](Recorder& to) {
            record_propose(to, {.batch = batch.view(), .state = state.view(), .history = tokens.view(), .records = records.view(),
                                .counts = counts.view(), .index = index.view()}, static_cast<uint32_t>(stride));
        });

        EXPECT_EQ(read<uint32_t>(tokens, history.size()), history);
        const auto after = read<gpu::SlotState>(state, states.size());
        const auto written = read<gpu::RoundRecord>(records, order.size());
        std::vector<Proposal> found(searches.size());
        std::vector<gpu::RoundRecord> expected_records(order.size());
        std::fill_n(reinterpret_cast<uint32_t*>(expected_records.data()), order.size() * sizeof(gpu::RoundRecord) / 4, kPoison);
        for (size_t b = 0; b < order.size(); ++b) {
            if (order[b] == gpu::kNoSlot || !searches[order[b]].works()) continue;
            gpu::SlotState& expected = states[order[b]];
            const gpu::SlotState& was = after[order[b]];
            EXPECT_LE(was.n_proposed, gpu::kMaxDraftLen);
            Proposal& proposal = found[order[b]];
            proposal.drafts.assign(was.proposed, was.proposed + std::min(was.n_proposed, gpu::kMaxDraftLen));
            proposal.match_len = was.match_len;
            expected.n_proposed = expected_records[b].n_proposed = was.n_proposed;
            expected.indexed_len = was.target_len + 1;
            expected.match_len = expected_records[b].match_len = was.match_len;
            std::copy(proposal.drafts.begin(), proposal.drafts.end(), expected.proposed);
            std::copy(proposal.drafts.begin(), proposal.drafts.end(), expected_records[b].proposed);
        }
        EXPECT_EQ(std::memcmp(after.data(), states.data(), states.size() * sizeof(gpu::SlotState)), 0) << "a word that is not propose's changed";
        EXPECT_EQ(std::memcmp(written.data(), expected_records.data(), order.size() * sizeof(gpu::RoundRecord)), 0) << "records";
        return found;
    }
    std::vector<Proposal> run_all(const std::vector<Search>& searches) {
        std::vector<uint32_t> order(searches.size());
        for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        return run_all(searches, order);
    }
    Proposal run_one(const Search& search) { return run_all({search}).front(); }
    // Against the reference; returns how many proposed something.
    size_t expect_all(const std::vector<Search>& searches) {
        const auto found = run_all(searches);
        size_t n = 0;
        for (size_t i = 0; i < searches.size(); ++i) {
            const Proposal expected = searches[i].expected();
            EXPECT_EQ(found[i].match_len, expected.match_len) << "search " << i;
            EXPECT_EQ(found[i].drafts, expected.drafts) << "search " << i;
            n += found[i].drafts.empty() ? 0 : 1;
        }
        return n;
    }
};

TEST_F(Propose, ngram_takes_the_most_frequent_continuation) {
    // 1 2 is followed by 3, 4, 4, 3, 4; then 2 4 by 1, 1.
    EXPECT_EQ(run_one({{1, 2, 3, 1, 2, 4, 1, 2, 4, 9, 1, 2, 3, 8, 1, 2, 4, 1, 2}, gpu::kDrafterNgram, 3, 3}), (Proposal{{4, 1, 2}, 2}));
}

TEST_F(Propose, ngram_takes_the_later_of_equals) {
    EXPECT_EQ(run_one({{1, 2, 7, 1, 2, 5, 1, 2}, gpu::kDrafterNgram, 3, 1}), (Proposal{{5}, 2}));
    EXPECT_EQ(run_one({{1, 2, 5, 1, 2, 7, 1, 2}, gpu::kDrafterNgram, 3, 1}), (Proposal{{7}, 2}));
    // 7 was seen last, but 5 twice; then both twice.
    EXPECT_EQ(run_one({{1, 2, 5, 1, 2, 5, 1, 2, 7, 1, 2}, gpu::kDrafterNgram, 3, 1}), (Proposal{{5}, 2}));
    EXPECT_EQ(run_one({{1, 2, 7, 1, 2, 5, 1, 2, 5, 1, 2, 7, 1, 2}, gpu::kDrafterNgram, 3, 1}), (Proposal{{7}, 2}));
}

TEST_F(Propose, ngram_backs_off_to_shorter_contexts) {
    const Tokens text = {6, 1, 2, 3, 5, 1, 2, 4, 9, 1, 2, 4, 6, 1, 2};
    EXPECT_EQ(run_one({text, gpu::kDrafterNgram, 4, 1}), (Proposal{{3}, 3}));  // 6 1 2
    EXPECT_EQ(run_one({text, gpu::kDrafterNgram, 16, 1}), (Proposal{{3}, 3})); // nothing longer occurs
    EXPECT_EQ(run_one({text, gpu::kDrafterNgram, 3, 1}), (Proposal{{4}, 2}));  // 1 2
    // Few tokens of context begin nothing unless no more was asked for, but go on what began.
    EXPECT_EQ(run_one({{2, 4, 2, 4, 1, 2}, gpu::kDrafterNgram, 3, 2}), Proposal{});
    EXPECT_EQ(run_one({{1, 2, 4, 2, 4, 1, 2}, gpu::kDrafterNgram, 4, 2}), Proposal{});
    EXPECT_EQ(run_one({{2, 4, 2, 4, 1, 2}, gpu::kDrafterNgram, 2, 2}), (Proposal{{4, 1}, 1}));
    EXPECT_EQ(run_one({{3, 8, 3, 8, 1, 2, 3, 5, 1, 2}, gpu::kDrafterNgram, 3, 4}), (Proposal{{3, 5, 1, 2}, 2}));
    EXPECT_EQ(run_one({{1, 2, 3, 7, 1, 2, 5, 6, 3, 9, 1, 2, 5, 3, 9, 1, 2}, gpu::kDrafterNgram, 3, 4}), (Proposal{{5, 3, 9, 1}, 2}));
}

TEST_F(Propose, lookup_copies_what_follows_the_longest_match) {
    const Tokens text = {6, 1, 2, 3, 5, 1, 2, 4, 9, 1, 2, 8, 6, 1, 2};
    EXPECT_EQ(run_one({text, gpu::kDrafterLookup, 3, 4}), (Proposal{{3, 5, 1, 2}, 3}));
    EXPECT_EQ(run_one({text, gpu::kDrafterLookup, 2, 4}), (Proposal{{8, 6, 1, 2}, 2})); // the latest
    EXPECT_EQ(run_one({text, gpu::kDrafterLookup, 2, 6}), (Proposal{{8, 6, 1, 2, 8, 6}, 2}));
    EXPECT_EQ(run_one({{7, 1, 8, 1}, gpu::kDrafterLookup, 2, 4}), Proposal{}); // too short a match
    EXPECT_EQ(run_one({{7, 3, 1, 8, 3, 1}, gpu::kDrafterLookup, 4, 4}), Proposal{});
    EXPECT_EQ(run_one({{5, 1, 2, 1, 2}, gpu::kDrafterLookup, 2, 5}), (Proposal{{1, 2, 1, 2, 1}, 2}));
    EXPECT_EQ(run_one({{4, 4, 4, 4}, gpu::kDrafterLookup, 16, 15}), (Proposal{Tokens(15, 4), 3}));
}

TEST_F(Propose, agrees_with_maps_on_random_texts) {
    size_t begun = 0, n = 0;
    for (uint32_t seed = 0; seed < 12; ++seed) {
        std::vector<Search> searches;
        for (uint32_t i = 0; i < 64; ++i) {
            reference::DataStream random(1000 * seed + i);
            const uint32_t alphabet = 1 + random.below(i % 3 ? 4 : 40);
            searches.push_back({.text = random_text(1 + random.below(i % 2 ? 30 : 700), alphabet, seed * 64 + i),
                                .search = i % 5 == 4 ? gpu::kDrafterLookup : gpu::kDrafterNgram,
                                .ngram_max = 2 + random.below(15),
                                .draft_len = random.below(17),
                                .live = true});
            if (random.below(3) == 0) searches.back().draft_len = ~0u;
        }
        begun += expect_all(searches);
        n += searches.size();
        ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(begun, n / 2);
    EXPECT_LT(begun, n);
}

TEST_F(Propose, texts_shorter_than_the_order_are_searched) {
    std::vector<Search> searches;
    for (uint32_t search : {gpu::kDrafterNgram, gpu::kDrafterLookup})
        for (uint32_t n = 1; n < 20; ++n)
            for (uint32_t alphabet : {1u, 2u}) searches.push_back({random_text(n, alphabet, n), search, 16, 15});
    expect_all(searches);
}

TEST_F(Propose, the_window_ends_where_it_should) {
    // The only match lies at the window's edge: all of it inside, or its first token outside.
    for (uint32_t search : {gpu::kDrafterNgram, gpu::kDrafterLookup}) {
        const uint32_t window = search == gpu::kDrafterNgram ? gpu::kNgramWindow : gpu::kLookupWindow;
        for (uint32_t shift : {0u, 1u, 2u, 500u}) {
            Tokens text(window + shift);
            for (uint32_t i = 0; i < text.size(); ++i) text[i] = 10 + i; // all different
            text[0] = text[text.size() - 2] = 1;
            text[1] = text[text.size() - 1] = 2;
            const Search s = {text, search, search == gpu::kDrafterNgram ? 3u : 2u, 3}; // two tokens of context
            const Proposal found = run_one(s);
            EXPECT_EQ(found, s.expected()) << "shift " << shift;
            EXPECT_EQ(found, shift == 0 ? (Proposal{{12, 13, 14}, 2}) : Proposal{}) << "shift " << shift;
        }
    }
}

// The table of continuations is as full as it can be, its entries hash anywhere, and counts reach the window's length.
TEST_F(Propose, as_many_continuations_as_the_window_has_are_counted) {
    std::vector<Search> searches;
    for (uint32_t kind = 0; kind < 4; ++kind) {
        Tokens text;
        for (uint32_t i = 0; text.size() + 1 < gpu::kNgramWindow + 300; ++i) {
            text.push_back(7);
            if (kind == 0) continue;                                             // one token over and over
            text.push_back(kind == 1 ? 100 + i : kind == 2 ? (100 + i) * 3072 : 100 + i % 500); // all different; the same twice
        }
        text.push_back(7);
        searches.push_back({text, gpu::kDrafterNgram, kind == 0 ? 16u : 2u, 15});
    }
    EXPECT_EQ(expect_all(searches), searches.size());
}

// 500 random tokens are sure to meet in the table; two that were counted as one would win.
TEST_F(Propose, continuations_that_meet_in_the_table_are_counted_apart) {
    Tokens text = {7, 9, 7, 9, 7, 9};
    for (uint32_t twice = 0; twice < 2; ++twice) {
        reference::DataStream random(1);
        for (uint32_t i = 0; i < 500; ++i) text.insert(text.end(), {7, 10 + random.below(128000)});
    }
    text.push_back(7);
    const Search s = {text, gpu::kDrafterNgram, 2, 1};
    EXPECT_EQ(s.expected().match_len, 1u);
    EXPECT_EQ(run_one(s), s.expected());
}

TEST_F(Propose, long_contexts_are_searched_to_the_windows_begin) {
    constexpr uint32_t kLength = 131072;
    for (uint32_t search : {gpu::kDrafterNgram, gpu::kDrafterLookup})
        for (uint32_t alphabet : {2u, 300u, 120000u})
            expect_all({{random_text(kLength, alphabet, alphabet), search, 5, 15}, {random_text(kLength - 77, alphabet, 1 + alphabet), search, 5, 15}});
}

TEST_F(Propose, only_live_slots_that_search_are_touched) {
    std::vector<Search> searches;
    for (uint32_t i = 0; i < 97; ++i)
        searches.push_back({.text = random_text(50 + i, 3, i),
                            .search = i % 3 == 0 ? gpu::kDrafterNone : i % 3 == 1 ? gpu::kDrafterNgram : gpu::kDrafterLookup,
                            .ngram_max = 2 + i % 15,
                            .draft_len = i % 16,
                            .live = i % 7 != 0});
    // No slot twice; padding in between, and more entries than a workgroup has threads.
    std::vector<uint32_t> order;
    for (uint32_t b = 0; b < 200; ++b) order.push_back(b % 3 == 0 || b / 3 * 2 + b % 3 > 96 ? gpu::kNoSlot : (b / 3 * 2 + b % 3) * 5 % 97);
    const auto found = run_all(searches, order);
    size_t n = 0;
    for (uint32_t slot = 0; slot < 97; ++slot) {
        if (std::find(order.begin(), order.end(), slot) == order.end()) continue;
        EXPECT_EQ(found[slot], searches[slot].expected()) << "slot " << slot;
        n += found[slot].drafts.empty() ? 0 : 1;
    }
    EXPECT_GT(n, 40u);
}

} // namespace
} // namespace auspex::propose_test
