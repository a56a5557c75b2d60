// Stop texts: the answer ends before the first of them, whatever round or token completes it, and nothing of it or after
// it is ever visible.
#include "session/engine_fixture.h"

#include <numeric>

namespace auspex::stop_test {
namespace {

using namespace test;

class StopTexts : public ::testing::TestWithParam<uint32_t> { // draft_len
  protected:
    static constexpr uint32_t kTokens = 120;

    void SetUp() override {
        engine_ = make_engine(bundled_pair(2, 400));
        ASSERT_TRUE(engine_);
        prompt_ = engine_->tokenize("One day, Tom and Lily went to the park.", true).value();
    }

    struct Told {
        std::string text;
        std::vector<uint32_t> tokens;
        std::vector<uint32_t> text_bytes;
        StopReason stop;
        SequenceStats stats;
        uint64_t id;
    };
    // Reads as a host does: at every step. `whole`: what may become visible is a beginning of it.
    Told tell(const std::vector<std::string>& stops, const std::string* whole, uint32_t draft_len, float temperature) {
        SequenceRequest request = {prompt_, kTokens, {temperature, 7}, draft_len, true};
        request.sampling.acceptance = AcceptanceRule::coupled; // the same text whatever draft_len
        request.stop_texts = stops;
        const uint64_t id = engine_->create_sequence(request).value();
        drive(*engine_, [&] {
            const std::string& text = find_sequence(*engine_, id)->text;
            if (whole) { EXPECT_EQ(whole->compare(0, text.size(), text), 0) << "visible too early: " << text; }
            return false;
        });
        const LiveSequence& sequence = *find_sequence(*engine_, id);
        Told told = {sequence.text, {}, {}, sequence.stop, sequence.stats, id};
        for (const OutputToken& token : sequence.output) {
            told.tokens.push_back(token.id);
            told.text_bytes.push_back(token.text_bytes);
        }
        return told;
    }

    static size_t bytes_before(const Told& told, size_t n_tokens) {
        return std::accumulate(told.text_bytes.begin(), told.text_bytes.begin() + static_cast<std::ptrdiff_t>(n_tokens), size_t{0});
    }

    std::unique_ptr<Engine> engine_;
    std::vector<uint32_t> prompt_;
};

TEST_P(StopTexts, end_the_answer_before_them) {
    for (float temperature : {0.0f, 0.8f}) {
        const Told plain = tell({}, nullptr, 0, temperature);
        ASSERT_GT(plain.text.size(), 200u);
        const size_t token_end = bytes_before(plain, 20);
        // Pieces of the text of every length, inside tokens and across them; the last one's last byte alone is another token's.
        for (auto [at, n] : {std::pair<size_t, size_t>{31, 1}, {60, 3}, {87, 9}, {120, 24}, {5, 2}, {token_end - 6, 7}}) {
            const std::string stop = plain.text.substr(at, n);
            const size_t first = plain.text.find(stop);
            const std::string expected = plain.text.substr(0, first);
            const Told told = tell({"never said", stop, stop + "!"}, &expected, GetParam(), temperature);
            EXPECT_EQ(told.text, expected) << "stop text \"" << stop << "\"";
            EXPECT_EQ(told.stop, StopReason::text);
            // The tokens end with the one that completed the stop text.
            ASSERT_LE(told.tokens.size(), plain.tokens.size());
            EXPECT_TRUE(std::equal(told.tokens.begin(), told.tokens.end(), plain.tokens.begin()));
            size_t bytes = 0, completed = 0;
            while (bytes < first + n) bytes += plain.text_bytes[completed++];
            EXPECT_EQ(told.tokens.size(), completed);
            size_t visible = 0;
            for (uint32_t b : told.text_bytes) visible += b;
            EXPECT_EQ(visible, expected.size());
            // Drafts after the stop count neither as drafted nor as accepted.
            EXPECT_LE(told.stats.draft_n_accepted, told.tokens.size());
            EXPECT_LE(told.stats.draft_n_accepted, told.stats.draft_n);
            uint32_t rounds = 0, accepted = 0;
            for (uint32_t a = 0; a < told.stats.accepted_histogram.size(); ++a) {
                rounds += told.stats.accepted_histogram[a];
                accepted += a * told.stats.accepted_histogram[a];
            }
            EXPECT_EQ(rounds, told.stats.rounds);
            EXPECT_EQ(accepted, told.stats.draft_n_accepted);
            EXPECT_TRUE(destroy_sequence(*engine_, told.id).ok());
        }
        EXPECT_TRUE(destroy_sequence(*engine_, plain.id).ok());
    }
}

// Of two that one token completes, the one that begins first.
TEST_P(StopTexts, end_the_answer_before_the_first_of_them) {
    const Told plain = tell({}, nullptr, 0, 0);
    size_t token = 20;
    while (plain.text_bytes[token] < 3) token += 1;
    const size_t at = bytes_before(plain, token) - 5;
    const std::string expected = plain.text.substr(0, at);
    const Told told = tell({plain.text.substr(at + 1, 6), plain.text.substr(at, 6), plain.text.substr(at + 2, 6)}, &expected, GetParam(), 0);
    EXPECT_EQ(told.text, expected);
    EXPECT_EQ(told.tokens.size(), token + 1);
}

// What looked like the beginning of a stop text and was none comes after all.
TEST_P(StopTexts, that_do_not_come_take_nothing) {
    const Told plain = tell({}, nullptr, 0, 0);
    const Told told = tell({plain.text.substr(plain.text.size() - 6) + "?", plain.text.substr(40, 12) + "#"}, &plain.text, GetParam(), 0);
    EXPECT_EQ(told.text, plain.text);
    EXPECT_EQ(told.stop, StopReason::length);
    EXPECT_EQ(told.tokens, plain.tokens);
}

// The answer may go on after a stop, as if what was kept had been a prompt of its own. The stop text stays unsaid.
TEST_P(StopTexts, leave_a_sequence_that_goes_on) {
    const Told plain = tell({}, nullptr, 0, 0);
    const size_t at = bytes_before(plain, 15) - 3;
    const Told told = tell({plain.text.substr(at, 4)}, nullptr, GetParam(), 0);
    ASSERT_EQ(told.stop, StopReason::text);
    SequenceRequest more = {{}, 30, {0, 7}, GetParam(), true};
    ASSERT_TRUE(engine_->append_sequence(told.id, more).ok());
    drive(*engine_);
    std::vector<uint32_t> tokens = told.tokens;
    for (const OutputToken& token : find_sequence(*engine_, told.id)->output) tokens.push_back(token.id);
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(told.tokens.size())); // not taken yet
    ASSERT_EQ(tokens.size(), told.tokens.size() + 30);
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), plain.tokens.begin()));
    const size_t begin = bytes_before(plain, told.tokens.size()), end = bytes_before(plain, tokens.size());
    EXPECT_EQ(find_sequence(*engine_, told.id)->text, plain.text.substr(0, at) + plain.text.substr(begin, end - begin));
}

INSTANTIATE_TEST_SUITE_P(draft_len, StopTexts, ::testing::Values(0u, 1u, 8u));

TEST(StopTextsAlone, are_checked) {
    auto engine = make_engine(bundled_pair(1, 100));
    ASSERT_TRUE(engine);
    SequenceRequest request = {{1, 2}, 4, {0, 1}, 0, true};
    request.stop_texts = {"x", ""};
    EXPECT_EQ(engine->create_sequence(request).status().code(), Code::invalid_argument);
}

} // namespace
} // namespace auspex::stop_test
