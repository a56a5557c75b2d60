// The makers of rows against the rules of the design, written once more in C++.
#include "base/checked.h"
#include "gpu_test.h"
#include "kernels/attention.h"
#include "kernels/rows.h"
#include "shared/rows_args.h"

#include <algorithm>

namespace auspex::rows_test {
namespace {

constexpr uint32_t kStride = 400; // history tokens per slot
constexpr uint32_t kDraftRows = 300; // of the draft's context

uint32_t history_token(uint32_t slot, uint32_t position) {
    return 1000 * slot + position;
}

class RowsTest : public GpuTest {
  protected:
    Buffer make_history(uint32_t n_slots) {
        std::vector<uint32_t> tokens;
        for (uint32_t slot = 0; slot < n_slots; ++slot)
            for (uint32_t p = 0; p < kStride; ++p)
                tokens.push_back(history_token(slot, p));
        return upload(tokens);
    }
    void expect_chain_row(const gpu::Row& row, uint32_t slot, uint32_t position, uint32_t prefix_len) {
        EXPECT_EQ(row.live, 1u);
        EXPECT_EQ(row.slot, slot);
        EXPECT_EQ(row.position, position);
        EXPECT_EQ(row.kv_index, position);
        EXPECT_EQ(row.prefix_len, prefix_len);
        for (uint32_t i = 0; prefix_len + i <= position; ++i)
            EXPECT_EQ(row.path[i], prefix_len + i);
    }
};

struct Case {
    gpu::SlotState state;
    uint32_t expected_k; // for draft_len 5
    const char* name;
};

gpu::SlotState slot_state(uint32_t target_len, uint32_t draft_cache_len, uint32_t draft_len, uint32_t max_context,
                          uint32_t live = 1) {
    gpu::SlotState state = neutral_state();
    state.live = live;
    state.last_token = history_token(0, 0) + 77 + target_len;
    state.target_len = target_len;
    state.draft_cache_len = draft_cache_len;
    state.draft_len = draft_len;
    state.max_context = max_context;
    return state;
}

// K_s = min(K, draft_len, max_context - 1 - n_tokens, the draft's context - target_len) with n_tokens = target_len + 1, and 0 for a
// draft that lags further.
const Case kCases[] = {
    {slot_state(100, 100, 5, 400), 5, "in step"},
    {slot_state(100, 99, 5, 400), 5, "one row behind"},
    {slot_state(100, 98, 5, 400), 0, "two rows behind"},
    {slot_state(100, 0, 5, 400), 0, "draft has read nothing"},
    {slot_state(100, 100, 2, 400), 2, "asks for fewer"},
    {slot_state(100, 100, 9, 400), 5, "asks for more than the recording has"},
    {slot_state(100, 100, 0, 400), 0, "asks for none"},
    {slot_state(100, 99, 0, 400), 0, "asks for none and lags"},
    {slot_state(100, 100, 5, 103), 1, "room for one draft and a next token"},
    {slot_state(100, 100, 5, 102), 0, "room for the next token"},
    {slot_state(100, 100, 5, 101), 0, "no room"},
    {slot_state(100, 100, 5, 50), 0, "beyond its context"},
    {slot_state(0, 0, 5, 400), 5, "prompt of one token"},
    {slot_state(1, 0, 5, 400), 5, "prompt of two tokens, draft has read nothing"},
    {slot_state(255, 255, 3, 400), 3, "over the edge of a split"},
    {slot_state(200, 200, 5, 400, 0), 0, "finished"},
    {slot_state(295, 295, 5, 400), 5, "room for five in the draft's context"},
    {slot_state(297, 296, 5, 400), 3, "room for three in the draft's context"},
    {slot_state(299, 299, 5, 400), 1, "room for one in the draft's context"},
    {slot_state(300, 300, 5, 400), 0, "the draft's context is full"},
    {slot_state(350, 300, 5, 400), 0, "beyond the draft's context"},
};
constexpr uint32_t kCaseCount = sizeof kCases / sizeof *kCases;

class Rows : public RowsTest {
  protected:
    struct Made {
        std::vector<gpu::RoundSlot> round_slots;
        std::vector<gpu::Row> target, draft;
        std::vector<uint32_t> counts;
    };
    Made make(const std::vector<uint32_t>& batch, uint32_t draft_len, uint32_t lead = 1) {
        std::vector<gpu::SlotState> states;
        for (const Case& c : kCases)
            states.push_back(c.state);
        if (lead == 0) { // all draft into the target's cache
            for (gpu::SlotState& one : states) one.drafter = gpu::kDrafterSelf;
        }
        const auto n = static_cast<uint32_t>(batch.size());
        const uint32_t n_draft = gpu::draft_pass_first_row(n, draft_len + 1), n_target = n * (draft_len + 1);
        const Buffer batch_buffer = upload(batch), state = upload(states), history = make_history(kCaseCount);
        const Buffer round_slots = output<gpu::RoundSlot>(n), target = output<gpu::Row>(n_target);
        const Buffer draft = output<gpu::Row>(n_draft), counts = output<uint32_t>(gpu::counts_words(n));
        run([&](Recorder& to) {
            record_rows(to,
                        {.batch = batch_buffer.view(), .state = state.view(), .history = history.view(), .round_slots = round_slots.view(),
                         .target_rows = target.view(), .draft_rows = draft.view(), .counts = counts.view()},
                        {n, draft_len, kStride, 3, 2, true, lead, kDraftRows});
        });
        return {read<gpu::RoundSlot>(round_slots, n), read<gpu::Row>(target, n_target), read<gpu::Row>(draft, n_draft),
                read<uint32_t>(counts, 12)};
    }

    void expect_entry(const Made& made, const std::vector<uint32_t>& batch, uint32_t b, uint32_t draft_len) {
        const auto n = static_cast<uint32_t>(batch.size());
        const uint32_t slot = batch[b];
        const bool live = slot != gpu::kNoSlot && kCases[slot].state.live;
        SCOPED_TRACE(slot == gpu::kNoSlot ? "padding" : kCases[slot].name);
        EXPECT_EQ(made.round_slots[b].slot, slot);
        EXPECT_EQ(made.round_slots[b].live, live ? 1u : 0u);
        const uint32_t k = live ? std::min(kCases[slot].expected_k, draft_len) : 0;
        const gpu::SlotState state = live ? kCases[slot].state : gpu::SlotState{};
        if (live) {
            EXPECT_EQ(made.round_slots[b].draft_len, k);
            EXPECT_EQ(made.round_slots[b].start, state.target_len);
        }
        for (uint32_t j = 0; j <= draft_len; ++j) {
            const gpu::Row& row = made.target[b * (draft_len + 1) + j];
            EXPECT_EQ(row.parent, j == 0 ? gpu::kNoRow : b * (draft_len + 1) + j - 1);
            if (live && j <= k)
                expect_chain_row(row, slot, state.target_len + j, state.target_len);
            else
                EXPECT_EQ(row.live, 0u) << "target row " << j;
            if (live && j == 0) {
                EXPECT_EQ(row.token, state.last_token);
            }
        }
        if (draft_len == 0) return;
        const gpu::Row &catch_up = made.draft[2 * b], &first = made.draft[2 * b + 1];
        if (k > 0 && state.draft_cache_len + 1 == state.target_len) {
            expect_chain_row(catch_up, slot, state.target_len - 1, state.target_len - 1);
            EXPECT_EQ(catch_up.token, history_token(slot, state.target_len - 1));
        } else {
            EXPECT_EQ(catch_up.live, 0u);
        }
        if (k > 0) {
            expect_chain_row(first, slot, state.target_len, state.target_len);
            EXPECT_EQ(first.token, state.last_token);
        } else {
            EXPECT_EQ(first.live, 0u);
        }
        for (uint32_t j = 1; j < draft_len; ++j) {
            const gpu::Row& row = made.draft[gpu::draft_pass_first_row(n, j) + b];
            EXPECT_EQ(row.parent, b * (draft_len + 1) + j - 1);
            if (j < k)
                expect_chain_row(row, slot, state.target_len + j, state.target_len);
            else
                EXPECT_EQ(row.live, 0u) << "draft row " << j;
        }
    }

    void expect_all(const std::vector<uint32_t>& batch, uint32_t draft_len) {
        SCOPED_TRACE("draft_len " + std::to_string(draft_len));
        const Made made = make(batch, draft_len);
        const uint32_t split = kernels().tuning().attention_split;
        uint32_t target_end = 0, draft_end = 0;
        for (uint32_t b = 0; b < batch.size(); ++b) {
            expect_entry(made, batch, b, draft_len);
            if (batch[b] == gpu::kNoSlot || !kCases[batch[b]].state.live) continue;
            const uint32_t k = std::min(kCases[batch[b]].expected_k, draft_len),
                           start = kCases[batch[b]].state.target_len;
            target_end = std::max(target_end, start + k + 1);
            if (k > 0) draft_end = std::max(draft_end, start + k);
        }
        const auto n = static_cast<uint32_t>(batch.size());
        auto tiles_of = [&](uint32_t slots, uint32_t rows_per_slot) {
            return ceil_div(slots * rows_per_slot, attention_tile_rows(kernels().tuning(), rows_per_slot));
        };
        const uint32_t target_splits = (target_end + split - 1) / split, draft_splits = (draft_end + split - 1) / split;
        EXPECT_EQ(made.counts, (std::vector<uint32_t>{target_splits, 3, tiles_of(n, draft_len + 1), draft_splits, 2, tiles_of(n, 2),
                                                      draft_splits, 2, n, 0, 1, 1}));
    }
};

TEST_F(Rows, follow_the_rules_for_every_state_of_a_slot) {
    std::vector<uint32_t> batch;
    for (uint32_t i = 0; i < kCaseCount; ++i)
        batch.push_back((i * 5) % kCaseCount); // 16 and 5 share no divisor
    batch.insert(batch.begin() + 3, gpu::kNoSlot);
    for (uint32_t draft_len : {0u, 1u, 5u})
        expect_all(batch, draft_len);
}

TEST_F(Rows, are_none_when_nobody_is_live) {
    for (uint32_t draft_len : {0u, 3u})
        expect_all({gpu::kNoSlot, kCaseCount - 1, gpu::kNoSlot}, draft_len);
    const Made made = make({gpu::kNoSlot}, 2);
    for (uint32_t first : {gpu::kCountsTarget, gpu::kCountsDraftFirst, gpu::kCountsDraftNext})
        EXPECT_EQ(made.counts[first], 0u);
}

// No cache of their own lags, so none is caught up: one row an entry in every pass, whatever draft_cache_len says.
TEST_F(Rows, of_drafts_into_the_targets_cache_begin_with_the_last_token) {
    constexpr uint32_t kDraftLen = 5;
    std::vector<uint32_t> batch;
    for (uint32_t i = 0; i < kCaseCount; ++i) batch.push_back(i);
    const Made made = make(batch, kDraftLen, 0);
    uint32_t n_lagging = 0;
    for (uint32_t b = 0; b < batch.size(); ++b) {
        const gpu::SlotState& state = kCases[b].state;
        SCOPED_TRACE(kCases[b].name);
        if (!state.live) continue;
        const uint32_t k = made.round_slots[b].draft_len, room = state.max_context - std::min(state.max_context, state.target_len + 2);
        EXPECT_EQ(k, std::min({kDraftLen, state.draft_len, room, kDraftRows - std::min(kDraftRows, state.target_len)}));
        EXPECT_EQ(made.round_slots[b].one_hot, 0u);
        n_lagging += k > 0 && state.draft_cache_len + 1 < state.target_len;
        for (uint32_t j = 0; j < kDraftLen; ++j) {
            const gpu::Row& row = made.draft[gpu::draft_pass_first_row(kCaseCount, j) + b];
            if (j < k) expect_chain_row(row, b, state.target_len + j, state.target_len);
            else EXPECT_EQ(row.live, 0u);
            if (j == 0 && k > 0) { EXPECT_EQ(row.token, state.last_token); }
        }
    }
    EXPECT_GT(n_lagging, 0u);
    EXPECT_EQ(made.counts[gpu::kCountsDraftFirst + 2], ceil_div(kCaseCount, attention_tile_rows(kernels().tuning(), 1)));
}

TEST_F(Rows, come_for_more_entries_than_a_workgroup_has) {
    std::vector<uint32_t> batch;
    for (uint32_t i = 0; i < 200; ++i)
        batch.push_back(i % 3 ? gpu::kNoSlot : 0);
    batch.back() = 14; // the largest position, in the last entry
    expect_all(batch, 15);
}

TEST_F(Rows, leave_the_drafts_out_when_the_draft_pass_has_no_work) {
    const Made made = make({2, 3}, 4); // both lag: the target has a row each, the draft none
    EXPECT_EQ(made.counts[gpu::kCountsTarget], 1u);
    EXPECT_EQ(made.counts[gpu::kCountsDraftFirst], 0u);
    EXPECT_EQ(made.counts[gpu::kCountsDraftNext], 0u);
}

class ReplayRows : public RowsTest {};

TEST_F(ReplayRows, name_the_tokens_of_the_history) {
    for (uint32_t n : {1u, 7u, 72u, 300u}) {
        std::vector<uint32_t> list;
        for (uint32_t r = 0; r < n; ++r) {
            list.push_back(r % 9 == 5 ? gpu::kNoSlot : r % 4);
            list.push_back(list.back() == gpu::kNoSlot ? 399 : (r * 7) % 300);
        }
        const Buffer list_buffer = upload(list), history = make_history(4), rows = output<gpu::Row>(n),
                     counts = output<uint32_t>(3);
        run([&](Recorder& to) {
            record_replay_rows(to, {.list = list_buffer.view(), .history = history.view(), .rows = rows.view(), .counts = counts.view()}, n, kStride, 5,
                               n % 2 ? 3 : 1);
        });
        uint32_t end = 0;
        const std::vector<gpu::Row> made = read<gpu::Row>(rows, n);
        for (uint32_t r = 0; r < n; ++r) {
            const uint32_t slot = list[2 * r], position = list[2 * r + 1];
            if (slot == gpu::kNoSlot) {
                EXPECT_EQ(made[r].live, 0u);
                continue;
            }
            expect_chain_row(made[r], slot, position, position);
            EXPECT_EQ(made[r].token, history_token(slot, position));
            end = std::max(end, position + 1);
        }
        const uint32_t split = kernels().tuning().attention_split;
        EXPECT_EQ(read<uint32_t>(counts, 3), (std::vector<uint32_t>{(end + split - 1) / split, 5, n % 2 ? (n + 2) / 3 : n}));
    }
}

TEST_F(ReplayRows, of_padding_alone_cost_nothing) {
    const Buffer list = upload(std::vector<uint32_t>{gpu::kNoSlot, 9, gpu::kNoSlot, 0}), history = make_history(1);
    const Buffer rows = output<gpu::Row>(2), counts = output<uint32_t>(3);
    run([&](Recorder& to) {
        record_replay_rows(to, {.list = list.view(), .history = history.view(), .rows = rows.view(), .counts = counts.view()}, 2, kStride, 5);
    });
    EXPECT_EQ(read<uint32_t>(counts, 1)[0], 0u);
    for (const gpu::Row& row : read<gpu::Row>(rows, 2))
        EXPECT_EQ(row.live, 0u);
}

} // namespace
} // namespace auspex::rows_test
