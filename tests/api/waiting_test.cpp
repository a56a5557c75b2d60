// Waiting, parking and the prefix cache through the C interface: states and figures say what is, and everything wrong is refused.
#include <auspex/auspex.h>
#include <auspex/auspex_tools.h>

#include <gtest/gtest.h>
#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace waiting_test {
namespace {

const char* const kTarget = AUSPEX_PAIR_DIR "/target";

class WaitingApi : public ::testing::Test {
  protected:
    void SetUp() override {
        auspex_engine_desc desc;
        ASSERT_EQ(auspex_engine_desc_init(&desc, sizeof desc), AUSPEX_OK);
        EXPECT_EQ(desc.max_waiting, 0u);
        EXPECT_EQ(desc.prefix_cache, 1u);
        EXPECT_EQ(desc.max_gap_ms, 50u);
        desc.target_path = kTarget;
        desc.max_context = 128;
        desc.max_sequences = 1;
        desc.max_waiting = 2;
        desc.log = [](void* to, auspex_log_level level, const char* message) {
            if (level == AUSPEX_LOG_ERROR) static_cast<WaitingApi*>(to)->last_error_ = message;
        };
        desc.log_user_data = this;
        ASSERT_EQ(auspex_engine_create(&desc, &engine_), AUSPEX_OK);
        for (uint32_t i = 0; i < 40; ++i) prompt_.push_back(i + 1);
    }
    void TearDown() override { auspex_engine_destroy(engine_); }

    auspex_sequence_desc request(uint32_t max_tokens = 8) const {
        auspex_sequence_desc desc;
        EXPECT_EQ(auspex_sequence_desc_init(&desc, sizeof desc), AUSPEX_OK);
        desc.prompt_tokens = prompt_.data();
        desc.prompt_token_count = prompt_.size();
        desc.max_tokens = max_tokens;
        desc.ignore_eos = 1;
        return desc;
    }
    auspex_sequence create(const auspex_sequence_desc& desc) {
        auspex_sequence sequence = {};
        EXPECT_EQ(auspex_sequence_create(engine_, &desc, &sequence), AUSPEX_OK) << last_error_;
        return sequence;
    }
    auspex_sequence_state state_of(auspex_sequence sequence) {
        auspex_sequence_state state;
        EXPECT_EQ(auspex_sequence_state_init(&state, sizeof state), AUSPEX_OK);
        EXPECT_EQ(auspex_sequence_get_state(engine_, sequence, &state), AUSPEX_OK);
        return state;
    }
    auspex_engine_load load() {
        auspex_engine_load load;
        EXPECT_EQ(auspex_engine_load_init(&load, sizeof load), AUSPEX_OK);
        EXPECT_EQ(auspex_engine_get_load(engine_, &load), AUSPEX_OK);
        return load;
    }
    void finish() {
        for (;;) {
            const auspex_status status = auspex_engine_step(engine_, 0, nullptr);
            ASSERT_GE(status, 0) << last_error_;
            if (status == AUSPEX_FINISHED) return;
            ASSERT_EQ(auspex_engine_wait(engine_, 60'000), AUSPEX_OK);
        }
    }
    std::vector<uint32_t> tokens_of(auspex_sequence sequence) {
        std::vector<auspex_token> tokens(200);
        size_t count = 0;
        EXPECT_EQ(auspex_sequence_read_tokens(engine_, sequence, tokens.data(), tokens.size(), &count), AUSPEX_OK);
        std::vector<uint32_t> ids;
        for (size_t i = 0; i < count; ++i) ids.push_back(tokens[i].id);
        return ids;
    }

    auspex_engine* engine_ = nullptr;
    std::vector<uint32_t> prompt_;
    std::string last_error_;
};

TEST_F(WaitingApi, StatesAndFiguresSayWhatIs) {
    const auspex_sequence first = create(request()), second = create(request()), third = create(request(4));
    EXPECT_EQ(state_of(first).phase, AUSPEX_PHASE_PROMPT);
    EXPECT_EQ(state_of(first).rows_to_read, 39u);
    EXPECT_EQ(state_of(second).phase, AUSPEX_PHASE_WAITING);
    EXPECT_EQ(state_of(third).place, 1u);
    EXPECT_EQ(load().n_running, 1u);
    EXPECT_EQ(load().n_waiting, 2u);
    EXPECT_EQ(load().waiting_tokens, 80u);
    const auspex_sequence_desc more = request();
    auspex_sequence refused = {};
    EXPECT_EQ(auspex_sequence_create(engine_, &more, &refused), AUSPEX_ERROR_CAPACITY);
    EXPECT_NE(last_error_.find("2 sequences wait already"), std::string::npos) << last_error_;
    EXPECT_NE(last_error_.find("try again later"), std::string::npos) << "nothing is known yet: " << last_error_;
    finish();
    EXPECT_EQ(state_of(first).phase, AUSPEX_PHASE_FINISHED);
    EXPECT_EQ(state_of(third).phase, AUSPEX_PHASE_FINISHED);
    const std::vector<uint32_t> text = tokens_of(first);
    EXPECT_EQ(tokens_of(second), text);
    EXPECT_EQ(tokens_of(third), std::vector<uint32_t>(text.begin(), text.begin() + 4));
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    ASSERT_EQ(auspex_sequence_get_stats(engine_, second, &stats), AUSPEX_OK);
    EXPECT_EQ(stats.cached_n, 32u);
    EXPECT_EQ(stats.prefilled_n, 7u);
    EXPECT_EQ(load().prefix_queries, 3u);
    EXPECT_EQ(load().prefix_hit_tokens, 64u);
    EXPECT_EQ(load().prefix_tokens, 3 * 39u);
    EXPECT_GE(load().prefix_pages_inserted, 2u);
    EXPECT_EQ(load().parked_n, 2u) << "the one that was over made room";
    EXPECT_EQ(load().wait_ms, 0.0);
    EXPECT_LT(load().target_pages_free, load().target_pages) << "the third has its slot";
    for (auspex_sequence one : {first, second, third}) ASSERT_EQ(auspex_sequence_destroy(engine_, one), AUSPEX_OK);
    finish();
    const auspex_engine_load after = load();
    EXPECT_EQ(after.target_pages_free, after.target_pages);
    EXPECT_EQ(after.draft_pages_free, after.draft_pages);
    EXPECT_GE(after.target_pages_evictable, 2u);
    EXPECT_EQ(after.target_pages_evictable + after.draft_pages_evictable, after.prefix_pages_inserted - after.prefix_pages_evicted);
}

TEST_F(WaitingApi, APromptsProgressCanBeRead) {
    const auspex_sequence first = create(request());
    EXPECT_EQ(state_of(first).rows_read, 0u);
    std::set<uint32_t> seen; // while it is read
    for (auspex_status status = AUSPEX_OK; status != AUSPEX_FINISHED && state_of(first).phase == AUSPEX_PHASE_PROMPT;) {
        const auspex_sequence_state before = state_of(first);
        seen.insert(before.rows_read);
        EXPECT_EQ(before.rows_to_read, 39u);
        status = auspex_engine_step(engine_, 1, nullptr); // a microsecond: chunks are as small as they can be
        ASSERT_GE(status, 0) << last_error_;
        EXPECT_GE(state_of(first).rows_read, before.rows_read);
        ASSERT_EQ(auspex_engine_wait(engine_, 60'000), AUSPEX_OK);
    }
    EXPECT_GE(seen.size(), 3u);
    EXPECT_LT(*seen.rbegin(), 39u);
    EXPECT_GE(state_of(first).rows_read, 39u);
    finish();
    EXPECT_EQ(state_of(first).rows_read, 39u + 8) << "all but the last token, which nobody needed";
}

// Also of what the device has done and nobody has read.
TEST_F(WaitingApi, TheLoadSaysHowLongTheDeviceIsAtItsWork) {
    const auto nothing_is_under_way = [&] { return load().turn_ms == 0 && load().turn_expected_ms == 0; };
    EXPECT_TRUE(nothing_is_under_way());
    create(request(80));
    uint32_t n_seen = 0;
    for (auspex_status status = AUSPEX_OK; status != AUSPEX_FINISHED;) {
        status = auspex_engine_step(engine_, 0, nullptr);
        ASSERT_GE(status, 0) << last_error_;
        const auspex_engine_load at = load();
        EXPECT_EQ(at.turn_ms > 0, at.turn_expected_ms > 0);
        EXPECT_LT(at.turn_ms, 60e3);
        n_seen += at.turn_ms > 0 ? 1 : 0;
    }
    EXPECT_GE(n_seen, 5u);
    create(request(80));
    ASSERT_GE(auspex_engine_step(engine_, 0, nullptr), 0);
    for (int i = 0; i < 10'000 && !nothing_is_under_way(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(nothing_is_under_way()) << load().turn_ms;
    finish();
}

TEST_F(WaitingApi, SaltsShareNothing) {
    const struct {
        const char* salt;
        uint64_t cached_n;
    } asked[] = {{nullptr, 0}, {"a", 0}, {"b", 0}, {"", 32}, {"a", 32}};
    for (const auto& one : asked) {
        std::string salt = one.salt ? one.salt : "";
        auspex_sequence_desc desc = request(2);
        EXPECT_EQ(desc.cache_salt, nullptr);
        desc.cache_salt = one.salt ? salt.c_str() : nullptr;
        const auspex_sequence sequence = create(desc);
        salt.assign(salt.size(), 'x'); // it was copied
        finish();
        auspex_sequence_stats stats;
        auspex_sequence_stats_init(&stats, sizeof stats);
        ASSERT_EQ(auspex_sequence_get_stats(engine_, sequence, &stats), AUSPEX_OK);
        EXPECT_EQ(stats.cached_n, one.cached_n) << salt;
        EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
    }
}

TEST_F(WaitingApi, WaitsArePredictedOnceRoundsWereTimed) {
    create(request(60));
    finish();
    create(request(60));
    const auspex_sequence waits = create(request(60)), waits_longer = create(request(60));
    EXPECT_GT(state_of(waits).wait_ms, 0.0);
    EXPECT_GT(state_of(waits_longer).wait_ms, state_of(waits).wait_ms);
    EXPECT_GT(load().wait_ms, state_of(waits_longer).wait_ms);
    // Whoever is refused is told.
    const auspex_sequence_desc more = request();
    auspex_sequence refused = {};
    EXPECT_EQ(auspex_sequence_create(engine_, &more, &refused), AUSPEX_ERROR_CAPACITY);
    const std::string wait = "try again in about " + std::to_string(static_cast<int>(std::ceil(load().wait_ms))) + " ms";
    EXPECT_NE(last_error_.find(wait), std::string::npos) << last_error_ << ", expected " << wait;
}

TEST_F(WaitingApi, AParkedSequenceGoesOnAsIfNothingHadBeen) {
    const auspex_sequence alone = create(request(30));
    finish();
    const std::vector<uint32_t> text = tokens_of(alone);
    const auspex_sequence sequence = create(request(30));
    for (int i = 0; i < 6; ++i) {
        ASSERT_GE(auspex_engine_step(engine_, 0, nullptr), 0);
        ASSERT_EQ(auspex_engine_wait(engine_, 60'000), AUSPEX_OK);
    }
    ASSERT_EQ(auspex_sequence_park(engine_, sequence), AUSPEX_OK);
    ASSERT_EQ(auspex_sequence_park(engine_, sequence), AUSPEX_OK);
    EXPECT_EQ(state_of(sequence).phase, AUSPEX_PHASE_PARKED);
    EXPECT_EQ(state_of(sequence).parked_n, 1u);
    finish();
    std::vector<uint32_t> said = tokens_of(sequence);
    EXPECT_LT(said.size(), 30u);
    ASSERT_EQ(auspex_sequence_resume(engine_, sequence), AUSPEX_OK);
    ASSERT_EQ(auspex_sequence_resume(engine_, sequence), AUSPEX_OK);
    finish();
    for (uint32_t id : tokens_of(sequence)) said.push_back(id);
    EXPECT_EQ(said, text);
}

TEST_F(WaitingApi, WhatIsWrongIsRefused) {
    const auspex_sequence none = {77};
    EXPECT_EQ(auspex_sequence_park(engine_, none), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_sequence_resume(engine_, none), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_sequence_park(nullptr, none), AUSPEX_ERROR_INVALID_ARGUMENT);
    auspex_sequence_state state;
    auspex_sequence_state_init(&state, sizeof state);
    EXPECT_EQ(auspex_sequence_get_state(engine_, none, &state), AUSPEX_ERROR_INVALID_ARGUMENT);
    auspex_engine_load load = {};
    EXPECT_EQ(auspex_engine_get_load(engine_, &load), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_engine_get_load(engine_, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    auspex_sequence_desc desc = request();
    auspex_sequence sequence = {};
    for (int32_t priority : {-11, 11, INT32_MIN, INT32_MAX}) {
        desc.priority = priority;
        EXPECT_EQ(auspex_sequence_create(engine_, &desc, &sequence), AUSPEX_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(last_error_.find("priority is " + std::to_string(priority) + ", expected -10 to 10"), std::string::npos) << last_error_;
    }
    auspex_engine_desc engine_desc;
    auspex_engine_desc_init(&engine_desc, sizeof engine_desc);
    engine_desc.target_path = kTarget;
    engine_desc.max_context = 128;
    engine_desc.cache_tokens = 127;
    auspex_engine* engine = nullptr;
    EXPECT_EQ(auspex_engine_create(&engine_desc, &engine), AUSPEX_ERROR_INVALID_ARGUMENT);
}

} // namespace
} // namespace waiting_test
