// What the acceptance does besides probabilities: greedy comparison, stops and limits, slot states, history, records.
// Its distributions are tested in tests/accept.
#include "accept/accept_fixture.h"
#include "shared/vocab_args.h"

#include <algorithm>
#include <cmath>

namespace auspex::accept_test {
namespace {

constexpr uint32_t kVocab = 50, kDraftLen = 4, kHistory = 64;

// One slot before a round, and what the models say about it.
struct Story {
    gpu::SlotState state = neutral_state();
    uint32_t k = kDraftLen;              // K_s
    std::vector<uint32_t> drafts;        // (k)
    std::vector<uint32_t> target_tokens; // (k + 1): what the target says at each row
    bool live = true;
};

struct Expected {
    gpu::SlotState state;
    gpu::RoundRecord record;
};

// The rules of the design, in the order in which a reader of text would apply them.
Expected replay(const Story& story) {
    Expected out{story.state, {}};
    uint32_t accepted = 0;
    while (accepted < story.k && story.drafts[accepted] == story.target_tokens[accepted])
        ++accepted;
    std::vector<uint32_t> said(story.drafts.begin(), story.drafts.begin() + accepted);
    said.push_back(story.target_tokens[accepted]);

    gpu::SlotState& s = out.state;
    uint32_t stop = gpu::kStopNone, n = 0;
    while (n < said.size() && stop == gpu::kStopNone) {
        const uint32_t token = said[n];
        out.record.tokens[n++] = token;
        ++s.n_generated;
        s.last_token = token;
        const bool is_stop = std::find(s.stop_ids, s.stop_ids + s.n_stop, token) != s.stop_ids + s.n_stop;
        const uint32_t n_tokens = story.state.target_len + 1 + n; // of the sequence
        if (is_stop)
            stop = gpu::kStopEos;
        else if (s.n_generated >= s.max_generated)
            stop = gpu::kStopLength;
        else if (n_tokens >= s.max_context)
            stop = gpu::kStopContext;
    }
    s.live = stop == gpu::kStopNone;
    s.target_len = story.state.target_len + n;
    // The draft was fed the last token and its drafts but the newest one.
    s.n_proposed = 0;
    out.record.drafter = story.k > 0 ? gpu::kDrafterModel : gpu::kDrafterNone;
    out.record.overlap = static_cast<float>(accepted);
    if (story.k > 0) s.draft_cache_len = std::min(story.state.target_len + story.k, s.target_len);
    out.record.start = story.state.target_len;
    out.record.draft_len = story.k;
    out.record.accepted_len = accepted;
    out.record.n_tokens = n;
    out.record.stop_reason = stop;
    out.record.draft_cache_len = s.draft_cache_len;
    out.record.live_before = 1;
    out.record.foretold = story.state.n_proposed == 0                             ? gpu::kForetoldNothing
                          : story.state.proposed[0] == out.record.tokens[0] ? gpu::kForetoldRight
                                                                            : gpu::kForetoldWrong;
    return out;
}

Story random_story(reference::DataStream& data, float temperature) {
    Story story;
    story.k = data.below(kDraftLen + 1);
    for (uint32_t i = 0; i <= story.k; ++i)
        story.target_tokens.push_back(data.below(kVocab));
    for (uint32_t i = 0; i < story.k; ++i)
        story.drafts.push_back(data.below(4) ? story.target_tokens[i] : data.below(kVocab));
    gpu::SlotState& s = story.state;
    s.live = 1;
    s.target_len = 10 + data.below(20);
    s.draft_cache_len = s.target_len - data.below(2);
    s.last_token = data.below(kVocab);
    s.draft_len = story.k;
    s.n_generated = data.below(10);
    s.max_generated = s.n_generated + 1 + data.below(8);
    s.max_context = s.target_len + 2 + data.below(8);
    s.n_proposed = data.below(3); // whoever drafted
    s.proposed[0] = data.below(2) ? story.target_tokens[0] : data.below(kVocab);
    s.temperature = temperature;
    s.seed_low = data.bits();
    s.n_stop = data.below(gpu::kMaxStopIds + 1);
    for (uint32_t i = 0; i < s.n_stop; ++i)
        s.stop_ids[i] = data.below(4) ? 1000 + i : data.below(kVocab);
    for (uint32_t i = s.n_stop; i < gpu::kMaxStopIds; ++i)
        s.stop_ids[i] = story.target_tokens[0]; // not in the list
    story.live = data.below(8) != 0;
    return story;
}

class Accept : public AcceptFixture {
  protected:
    // Logits are sharp: the target says target_tokens, the draft said drafts. Rows that nobody computed hold NaN.
    AcceptOutput accept_stories(const std::vector<Story>& stories, uint32_t vocab = kVocab) {
        const auto n = static_cast<uint32_t>(stories.size());
        AcceptInput in(n, kDraftLen, vocab, kHistory);
        for (uint32_t b = 0; b < n; ++b) {
            const Story& story = stories[b];
            const uint32_t slot = n - 1 - b;
            in.states[slot] = story.state;
            in.round_slots[b] = {story.live ? slot : gpu::kNoSlot, story.k, story.state.target_len,
                                 story.live ? 1u : 0u, 0};
            for (uint32_t j = 0; j <= kDraftLen; ++j) {
                std::ranges::fill(in.target_row(b, j), j <= story.k ? -INFINITY : NAN);
                if (j <= story.k) in.target_row(b, j)[story.target_tokens[j]] = 3.0f;
            }
            for (uint32_t j = 0; j < kDraftLen; ++j) {
                std::ranges::fill(in.draft_row(b, j), j < story.k ? -INFINITY : NAN);
                if (j >= story.k) continue;
                in.draft_row(b, j)[story.drafts[j]] = 5.0f;
                in.drafts[b * kDraftLen + j] = story.drafts[j];
            }
        }
        return accept(in);
    }

    void expect_told(const std::vector<Story>& stories, uint32_t vocab = kVocab) {
        const AcceptOutput outcome = accept_stories(stories, vocab);
        const auto n = static_cast<uint32_t>(stories.size());
        for (uint32_t b = 0; b < n; ++b) {
            SCOPED_TRACE("entry " + std::to_string(b));
            const uint32_t slot = n - 1 - b;
            const uint32_t* history = &outcome.history[slot * kHistory];
            const gpu::RoundRecord& found = outcome.records[b];
            if (!stories[b].live) {
                EXPECT_EQ(std::memcmp(&outcome.states[slot], &stories[b].state, sizeof(gpu::SlotState)), 0);
                EXPECT_EQ(found.live_before, 0u);
                EXPECT_EQ(found.n_tokens, 0u);
                EXPECT_EQ(std::count(history, history + kHistory, kPoison), kHistory);
                continue;
            }
            const Expected expected = replay(stories[b]);
            EXPECT_EQ(std::memcmp(&outcome.states[slot], &expected.state, sizeof(gpu::SlotState)), 0);
            EXPECT_EQ(found.slot, slot);
            EXPECT_EQ(found.start, expected.record.start);
            EXPECT_EQ(found.draft_len, expected.record.draft_len);
            EXPECT_EQ(found.accepted_len, expected.record.accepted_len);
            EXPECT_EQ(found.stop_reason, expected.record.stop_reason);
            EXPECT_EQ(found.foretold, expected.record.foretold);
            EXPECT_EQ(found.draft_cache_len, expected.record.draft_cache_len);
            EXPECT_EQ(found.live_before, 1u);
            ASSERT_EQ(found.n_tokens, expected.record.n_tokens);
            for (uint32_t i = 0; i < found.n_tokens; ++i) {
                EXPECT_EQ(found.tokens[i], expected.record.tokens[i]);
                EXPECT_EQ(history[found.start + 1 + i], expected.record.tokens[i]);
            }
            EXPECT_EQ(std::count(history, history + kHistory, kPoison), kHistory - found.n_tokens);
        }
    }
};

TEST_F(Accept, greedy_keeps_what_the_target_says) {
    reference::DataStream data(1);
    std::vector<Story> stories;
    for (int i = 0; i < 500; ++i)
        stories.push_back(random_story(data, 0.0f));
    expect_told(stories);
}

// One-hot distributions leave nothing to chance, whatever the temperature.
TEST_F(Accept, sampling_keeps_what_the_target_must_say) {
    reference::DataStream data(2);
    std::vector<Story> stories;
    for (int i = 0; i < 500; ++i)
        stories.push_back(random_story(data, i % 2 ? 0.7f : 1.0f));
    expect_told(stories);
}

// The token that must be said lies in one chunk after the other, first and last in it; it is drawn from the target's row, and from what a
// rejected draft leaves.
TEST_F(Accept, sampling_looks_into_every_chunk) {
    constexpr uint32_t kChunks = 18, vocab = kChunks * gpu::kVocabChunk + 3;
    std::vector<Story> stories;
    for (uint32_t chunk = 0; chunk <= kChunks; ++chunk)
        for (const uint32_t token : {chunk * gpu::kVocabChunk, std::min((chunk + 1) * gpu::kVocabChunk, vocab) - 1})
            for (const bool rejects : {false, true}) {
                Story story;
                story.k = rejects ? 1 : 0;
                story.target_tokens.assign(story.k + 1, token);
                story.drafts.assign(story.k, (token + 1) % vocab);
                story.state.live = 1;
                story.state.target_len = story.state.draft_cache_len = 20;
                story.state.max_generated = 100;
                story.state.max_context = 60;
                story.state.temperature = 1.0f;
                story.state.seed_low = token;
                stories.push_back(story);
            }
    expect_told(stories, vocab);
}

TEST_F(Accept, the_first_reason_to_stop_counts) {
    Story story;
    story.drafts = {1, 2, 3, 4};
    story.target_tokens = {1, 2, 3, 4, 5};
    story.state.live = 1;
    story.state.target_len = story.state.draft_cache_len = 20;
    story.state.max_generated = 100;
    story.state.max_context = 60;
    std::vector<Story> stories(8, story);
    stories[1].state.n_stop = 1, stories[1].state.stop_ids[0] = 1; // the first draft
    stories[2].state.n_stop = 2, stories[2].state.stop_ids[1] = 4; // the last draft
    stories[3].state.n_stop = 1, stories[3].state.stop_ids[0] = 5; // the bonus
    stories[4].state.max_generated = 3;
    stories[5].state.max_context = 23; // two more tokens fit
    stories[6].state.max_generated = 3, stories[6].state.n_stop = 1,
    stories[6].state.stop_ids[0] = 3;                                      // both at once: the stop
    stories[7].state.max_generated = 2, stories[7].state.max_context = 23; // both at once: the length
    expect_told(stories);
    const std::vector<gpu::RoundRecord> records = accept_stories(stories).records;
    const std::vector<std::pair<uint32_t, uint32_t>> expected{
        {gpu::kStopNone, 5},   {gpu::kStopEos, 1},     {gpu::kStopEos, 4}, {gpu::kStopEos, 5},
        {gpu::kStopLength, 3}, {gpu::kStopContext, 2}, {gpu::kStopEos, 3}, {gpu::kStopLength, 2}};
    for (size_t i = 0; i < 8; ++i)
        EXPECT_EQ(std::make_pair(records[i].stop_reason, records[i].n_tokens), expected[i]) << i;
}

} // namespace
} // namespace auspex::accept_test
