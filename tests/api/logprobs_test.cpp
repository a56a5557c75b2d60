// Log-probabilities through the C interface: in step with the tokens, in small pieces, and refused where they cannot be had.
#include <auspex/auspex.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace logprobs_test {
namespace {

class CApiLogprobs : public ::testing::Test {
  protected:
    static void write(void* user_data, auspex_log_level level, const char* message) {
        if (level == AUSPEX_LOG_ERROR) static_cast<std::vector<std::string>*>(user_data)->push_back(message);
    }
    void SetUp() override {
        auspex_engine_desc desc;
        ASSERT_EQ(auspex_engine_desc_init(&desc, sizeof desc), AUSPEX_OK);
        desc.target_path = AUSPEX_PAIR_DIR "/target";
        desc.draft_path = AUSPEX_PAIR_DIR "/draft";
        desc.max_context = 128;
        desc.max_sequences = 2;
        desc.log = write;
        desc.log_user_data = &errors_;
        ASSERT_EQ(auspex_engine_create(&desc, &engine_), AUSPEX_OK);
    }
    void TearDown() override { auspex_engine_destroy(engine_); }

    static auspex_sequence_desc prompt(uint32_t with_logprobs, uint32_t n_logprobs) {
        auspex_sequence_desc desc;
        EXPECT_EQ(auspex_sequence_desc_init(&desc, sizeof desc), AUSPEX_OK);
        EXPECT_EQ(desc.with_logprobs, 0u);
        EXPECT_EQ(desc.n_logprobs, 0u);
        desc.prompt_text = "One day, Tom";
        desc.prompt_text_bytes = std::strlen(desc.prompt_text);
        desc.max_tokens = 24;
        desc.ignore_eos = 1;
        desc.draft_len = 4;
        desc.with_logprobs = with_logprobs;
        desc.n_logprobs = n_logprobs;
        return desc;
    }
    auspex_sequence run(const auspex_sequence_desc& desc) {
        auspex_sequence sequence = {0};
        EXPECT_EQ(auspex_sequence_create(engine_, &desc, &sequence), AUSPEX_OK);
        finish();
        return sequence;
    }
    void finish() {
        for (;;) {
            const auspex_status status = auspex_engine_step(engine_, 0, nullptr);
            ASSERT_GE(status, 0);
            if (status == AUSPEX_FINISHED) return;
            ASSERT_GE(auspex_engine_wait(engine_, 10'000), 0);
        }
    }
    std::vector<auspex_token> tokens_of(auspex_sequence sequence) {
        std::vector<auspex_token> tokens(200);
        size_t count = 0;
        EXPECT_EQ(auspex_sequence_read_tokens(engine_, sequence, tokens.data(), tokens.size(), &count), AUSPEX_OK);
        tokens.resize(count);
        return tokens;
    }
    std::vector<auspex_token_logprobs> logprobs_of(auspex_sequence sequence, size_t piece = 200) {
        std::vector<auspex_token_logprobs> all, some(piece);
        for (size_t count = 1; count > 0;) {
            std::memset(some.data(), 0x5a, piece * sizeof some[0]);
            EXPECT_EQ(auspex_sequence_read_logprobs(engine_, sequence, some.data(), piece, &count), AUSPEX_OK);
            EXPECT_LE(count, piece);
            all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
            if (count < piece) { EXPECT_EQ(some[count].best_count, 0x5a5a5a5au) << "wrote past its count"; }
        }
        return all;
    }
    void expect_refused(auspex_status status, const std::string& message = {}) {
        EXPECT_EQ(status, AUSPEX_ERROR_INVALID_ARGUMENT);
        ASSERT_EQ(errors_.size(), 1u);
        if (!message.empty()) { EXPECT_EQ(errors_[0], message); }
        errors_.clear();
    }

    std::vector<std::string> errors_;
    auspex_engine* engine_ = nullptr;
};

TEST_F(CApiLogprobs, AreInStepWithTheTokens) {
    const auspex_sequence sequence = run(prompt(1, 3));
    const auto logprobs = logprobs_of(sequence, 7);
    const auto tokens = tokens_of(sequence);
    ASSERT_EQ(logprobs.size(), 24u);
    ASSERT_EQ(tokens.size(), 24u);
    const auspex_token_logprob none = {0, 0};
    for (size_t i = 0; i < tokens.size(); ++i) {
        const auspex_token_logprobs& of = logprobs[i];
        EXPECT_EQ(of.token.id, tokens[i].id);
        ASSERT_EQ(of.best_count, 3u);
        EXPECT_EQ(std::memcmp(&of.token, &of.best[0], sizeof of.token), 0) << "greedy text is the most probable token each time";
        EXPECT_TRUE(of.best[0].logprob >= of.best[1].logprob && of.best[1].logprob >= of.best[2].logprob);
        EXPECT_LE(of.token.logprob, 0);
        EXPECT_GE(of.token.logprob, -std::log(4096.0f)) << "no token can be the best with less";
        for (uint32_t at = of.best_count; at < AUSPEX_MAX_LOGPROBS; ++at) EXPECT_EQ(std::memcmp(&of.best[at], &none, sizeof none), 0);
    }
    EXPECT_TRUE(logprobs_of(sequence).empty()) << "each is given once";

    // Those of what follows come after those that were not taken.
    auspex_sequence_desc more = prompt(1, 0);
    more.prompt_text = nullptr;
    more.max_tokens = 3;
    ASSERT_EQ(auspex_sequence_append(engine_, sequence, &more), AUSPEX_OK);
    finish();
    more.n_logprobs = 20;
    ASSERT_EQ(auspex_sequence_append(engine_, sequence, &more), AUSPEX_OK);
    finish();
    const auto following = logprobs_of(sequence);
    const auto said = tokens_of(sequence);
    ASSERT_EQ(following.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(following[i].token.id, said[i].id);
        EXPECT_EQ(following[i].best_count, i < 3 ? 0u : 20u);
    }
}

TEST_F(CApiLogprobs, AreNoneWhereNobodyAsked) {
    auspex_sequence_desc desc = prompt(0, 0);
    EXPECT_TRUE(logprobs_of(run(desc)).empty());
    // As an older caller has it: what lies behind its struct does not count.
    auspex_sequence_desc older = prompt(77, 99);
    older.header.size = offsetof(auspex_sequence_desc, with_logprobs);
    const auspex_sequence sequence = run(older);
    EXPECT_TRUE(logprobs_of(sequence).empty());
    EXPECT_EQ(tokens_of(sequence).size(), 24u);
    EXPECT_TRUE(errors_.empty());
}

TEST_F(CApiLogprobs, RefuseWhatTheyCannotDo) {
    auspex_sequence sequence = {0};
    auspex_sequence_desc desc = prompt(1, AUSPEX_MAX_LOGPROBS + 1);
    expect_refused(auspex_sequence_create(engine_, &desc, &sequence), "n_logprobs is 21, expected at most 20");
    expect_refused(auspex_engine_prepare(engine_, &desc), "n_logprobs is 21, expected at most 20");
    desc = prompt(2, 0);
    expect_refused(auspex_sequence_create(engine_, &desc, &sequence), "with_logprobs is 2, expected 0 or 1");
    desc = prompt(0, 4);
    expect_refused(auspex_sequence_create(engine_, &desc, &sequence), "n_logprobs is 4 and with_logprobs 0, expected with_logprobs to be 1");
    EXPECT_EQ(sequence.id, 0u);

    sequence = run(prompt(1, AUSPEX_MAX_LOGPROBS));
    auspex_token_logprobs one;
    size_t count = 77;
    EXPECT_EQ(auspex_sequence_read_logprobs(nullptr, sequence, &one, 1, &count), AUSPEX_ERROR_INVALID_ARGUMENT);
    expect_refused(auspex_sequence_read_logprobs(engine_, {sequence.id + 1}, &one, 1, &count));
    expect_refused(auspex_sequence_read_logprobs(engine_, sequence, nullptr, 1, &count));
    expect_refused(auspex_sequence_read_logprobs(engine_, sequence, &one, 1, nullptr));
    EXPECT_EQ(count, 77u);
    EXPECT_EQ(auspex_sequence_read_logprobs(engine_, sequence, nullptr, 0, &count), AUSPEX_OK);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(logprobs_of(sequence, 1).size(), 24u) << "what is refused takes nothing";
}

} // namespace
} // namespace logprobs_test
