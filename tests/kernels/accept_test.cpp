// What the acceptance does besides probabilities: greedy comparison, stops and limits, slot states, history, records.
// Its distributions are tested in tests/accept.
#include "gpu_test.h"
#include "kernels/accept.h"
#include "kernels/vocab.h"
#include "shared/accept_args.h"

#include <cmath>

namespace auspex {
namespace {

constexpr uint32_t kVocab = 50, kDraftLen = 4, kHistory = 64;

// One slot before a round, and what the models say about it.
struct Story {
    gpu::SlotState state = {};
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
    while (accepted < story.k && story.drafts[accepted] == story.target_tokens[accepted]) ++accepted;
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
    if (story.k > 0) s.draft_cache_len = std::min(story.state.target_len + story.k, s.target_len);
    out.record.start = story.state.target_len;
    out.record.draft_len = story.k;
    out.record.accepted_len = accepted;
    out.record.n_tokens = n;
    out.record.stop_reason = stop;
    out.record.draft_cache_len = s.draft_cache_len;
    out.record.live_before = 1;
    return out;
}

Story random_story(reference::DataStream& data, float temperature) {
    Story story;
    story.k = data.below(kDraftLen + 1);
    for (uint32_t i = 0; i <= story.k; ++i) story.target_tokens.push_back(data.below(kVocab));
    for (uint32_t i = 0; i < story.k; ++i) story.drafts.push_back(data.below(4) ? story.target_tokens[i] : data.below(kVocab));
    gpu::SlotState& s = story.state;
    s.live = 1;
    s.target_len = 10 + data.below(20);
    s.draft_cache_len = s.target_len - data.below(2);
    s.last_token = data.below(kVocab);
    s.draft_len = story.k;
    s.n_generated = data.below(10);
    s.max_generated = s.n_generated + 1 + data.below(8);
    s.max_context = s.target_len + 2 + data.below(8);
    s.temperature = temperature;
    s.seed_low = data.bits();
    s.n_stop = data.below(gpu::kMaxStopIds + 1);
    for (uint32_t i = 0; i < s.n_stop; ++i) s.stop_ids[i] = data.below(4) ? 1000 + i : data.below(kVocab);
    for (uint32_t i = s.n_stop; i < gpu::kMaxStopIds; ++i) s.stop_ids[i] = story.target_tokens[0]; // not in the list
    story.live = data.below(8) != 0;
    return story;
}

class Accept : public GpuTest {
  protected:
    struct Outcome {
        std::vector<gpu::SlotState> state;
        std::vector<gpu::RoundRecord> records;
        std::vector<uint32_t> history;
    };

    // Entry b of the batch is slot n - 1 - b. Logits are sharp: the target says target_tokens, the draft said drafts.
    Outcome accept(const std::vector<Story>& stories) {
        const auto n = static_cast<uint32_t>(stories.size());
        const uint32_t n_target = n * (kDraftLen + 1), n_draft = n * kDraftLen;
        std::vector<float> target(size_t{n_target} * kVocab, -INFINITY), draft(size_t{n_draft} * kVocab, NAN);
        std::vector<gpu::SlotState> states(n);
        std::vector<gpu::RoundSlot> round_slots(n);
        std::vector<gpu::Row> rows(n_target);
        for (uint32_t b = 0; b < n; ++b) {
            const Story& story = stories[b];
            const uint32_t slot = n - 1 - b;
            states[slot] = story.state;
            round_slots[b] = {story.live ? slot : gpu::kNoSlot, story.k, story.state.target_len, story.live ? 1u : 0u};
            for (uint32_t j = 0; j <= kDraftLen; ++j) {
                rows[b * (kDraftLen + 1) + j] = plain_row(story.state.last_token, slot, story.state.target_len + j);
                if (j > story.k)
                    std::fill_n(&target[(b * (kDraftLen + 1) + j) * kVocab], kVocab, NAN); // nobody computed this row
                else
                    target[(b * (kDraftLen + 1) + j) * kVocab + story.target_tokens[j]] = 3.0f;
            }
            for (uint32_t j = 0; j < story.k; ++j) {
                rows[b * (kDraftLen + 1) + j + 1].token = story.drafts[j];
                std::fill_n(&draft[(b * kDraftLen + j) * kVocab], kVocab, -INFINITY);
                draft[(b * kDraftLen + j) * kVocab + story.drafts[j]] = 5.0f;
            }
        }
        const Buffer target_logits = upload(target), draft_logits = upload(draft), state = upload(states), slots = upload(round_slots);
        const Buffer row_buffer = upload(rows), partials = output<gpu::VocabChoice>(n_target), draft_partials = output<gpu::VocabChoice>(n_draft);
        const Buffer target_choices = output<gpu::VocabChoice>(n_target), draft_choices = output<gpu::VocabChoice>(n_draft);
        const Buffer history = output<uint32_t>(size_t{n} * kHistory), plans = output<gpu::AcceptPlan>(n);
        const Buffer race = output<gpu::RacePartial>(n), records = output<gpu::RoundRecord>(n);
        run([&](Recorder& to) {
            record_vocab_partials(to, target_logits.view(), state.view(), slots.view(), partials.view(), {kVocab, n_target, kDraftLen + 1, 1, false});
            record_vocab_partials(to, draft_logits.view(), state.view(), slots.view(), draft_partials.view(), {kVocab, n_draft, kDraftLen, 1, false});
            to.cmd.barrier();
            record_pick(to, partials.view(), target_choices.view(), n_target, kVocab);
            record_pick(to, draft_partials.view(), draft_choices.view(), n_draft, kVocab);
            to.cmd.barrier();
            record_accept(to, {target_logits.view(), draft_logits.view(), target_choices.view(), draft_choices.view(), state.view(), history.view(),
                               slots.view(), row_buffer.view(), plans.view(), race.view(), records.view()},
                          {n, kDraftLen, kVocab, kHistory});
        });
        return {read<gpu::SlotState>(state, n), read<gpu::RoundRecord>(records, n), read<uint32_t>(history, size_t{n} * kHistory)};
    }

    void expect_told(const std::vector<Story>& stories) {
        const Outcome outcome = accept(stories);
        const auto n = static_cast<uint32_t>(stories.size());
        for (uint32_t b = 0; b < n; ++b) {
            SCOPED_TRACE("entry " + std::to_string(b));
            const uint32_t slot = n - 1 - b;
            const uint32_t* history = &outcome.history[slot * kHistory];
            const gpu::RoundRecord& found = outcome.records[b];
            if (!stories[b].live) {
                EXPECT_EQ(std::memcmp(&outcome.state[slot], &stories[b].state, sizeof(gpu::SlotState)), 0);
                EXPECT_EQ(found.live_before, 0u);
                EXPECT_EQ(found.n_tokens, 0u);
                EXPECT_EQ(std::count(history, history + kHistory, kPoison), kHistory);
                continue;
            }
            const Expected expected = replay(stories[b]);
            EXPECT_EQ(std::memcmp(&outcome.state[slot], &expected.state, sizeof(gpu::SlotState)), 0);
            EXPECT_EQ(found.slot, slot);
            EXPECT_EQ(found.start, expected.record.start);
            EXPECT_EQ(found.draft_len, expected.record.draft_len);
            EXPECT_EQ(found.accepted_len, expected.record.accepted_len);
            EXPECT_EQ(found.stop_reason, expected.record.stop_reason);
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
    for (int i = 0; i < 500; ++i) stories.push_back(random_story(data, 0.0f));
    expect_told(stories);
}

// One-hot distributions leave nothing to chance, whatever the temperature.
TEST_F(Accept, sampling_keeps_what_the_target_must_say) {
    reference::DataStream data(2);
    std::vector<Story> stories;
    for (int i = 0; i < 500; ++i) stories.push_back(random_story(data, i % 2 ? 0.7f : 1.0f));
    expect_told(stories);
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
    stories[1].state.n_stop = 1, stories[1].state.stop_ids[0] = 1;         // the first draft
    stories[2].state.n_stop = 2, stories[2].state.stop_ids[1] = 4;         // the last draft
    stories[3].state.n_stop = 1, stories[3].state.stop_ids[0] = 5;         // the bonus
    stories[4].state.max_generated = 3;
    stories[5].state.max_context = 23;                                     // two more tokens fit
    stories[6].state.max_generated = 3, stories[6].state.n_stop = 1, stories[6].state.stop_ids[0] = 3; // both at once: the stop
    stories[7].state.max_generated = 2, stories[7].state.max_context = 23; // both at once: the length
    expect_told(stories);
    const std::vector<gpu::RoundRecord> records = accept(stories).records;
    const std::vector<std::pair<uint32_t, uint32_t>> expected{{gpu::kStopNone, 5},   {gpu::kStopEos, 1},    {gpu::kStopEos, 4},
                                                              {gpu::kStopEos, 5},    {gpu::kStopLength, 3}, {gpu::kStopContext, 2},
                                                              {gpu::kStopEos, 3},    {gpu::kStopLength, 2}};
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(std::make_pair(records[i].stop_reason, records[i].n_tokens), expected[i]) << i;
}

} // namespace
} // namespace auspex
