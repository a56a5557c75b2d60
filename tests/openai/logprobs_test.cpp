// Log-probabilities in both of OpenAI's forms, of tokens that are parts of characters, of stops inside tokens and of
// numbers that JSON does not have. Without an engine.
#include "openai/answer.h"
#include "openai/json_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace auspex::openai::logprobs_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kEnd = 99;

const std::vector<std::string> kVocabulary = {"Hi", " é", "\xc3", "\xa9", "\xff", "a",
                                              "ab", "c",  "xa",   "\xe2", "",     "\xc2"};

Piece piece_of(uint32_t token) {
    return token == kEnd ? Piece{"</s>", true} : Piece{kVocabulary.at(token), false};
}

auspex_token_logprobs said(uint32_t token, float logprob, const std::vector<auspex_token_logprob>& best = {}) {
    auspex_token_logprobs of{};
    of.token = {token, logprob};
    of.best_count = static_cast<uint32_t>(best.size());
    std::copy(best.begin(), best.end(), of.best);
    return of;
}

std::vector<auspex_token_logprobs> each(const std::vector<uint32_t>& tokens) {
    std::vector<auspex_token_logprobs> all;
    for (const uint32_t token : tokens)
        all.push_back(said(token, -0.5f));
    return all;
}

// As it is written and read again.
Json written(Endpoint endpoint, const std::string& text, auspex_stop_reason reason,
             const std::vector<auspex_token_logprobs>& tokens) {
    return parse_json(to_text(logprobs_json(endpoint, {text, reason, tokens}, piece_of)));
}

size_t told(const std::string& text, auspex_stop_reason reason, const std::vector<uint32_t>& tokens) {
    const auto all = each(tokens);
    return count_told({text, reason, all}, piece_of);
}

TEST(OpenAiLogprobs, OfChats) {
    const Json json = written(Endpoint::chat, "Hi é", AUSPEX_STOP_EOS,
                              {said(0, -0.5f, {{0, -0.5f}, {kEnd, -1.25f}}), said(1, -2.0f, {{2, -0.25f}, {5, -1.0f}}),
                               said(kEnd, -0.125f, {{kEnd, -0.125f}})});
    EXPECT_EQ(json, Json::parse(R"({"content":[
        {"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[
            {"token":"Hi","logprob":-0.5,"bytes":[72,105]},{"token":"</s>","logprob":-1.25,"bytes":null}]},
        {"token":" é","logprob":-2.0,"bytes":[32,195,169],"top_logprobs":[
            {"token":"�","logprob":-0.25,"bytes":[195]},{"token":"a","logprob":-1.0,"bytes":[97]}]}]})"));
}

TEST(OpenAiLogprobs, OfCompletions) {
    const Json json = written(Endpoint::completions, "Hi é", AUSPEX_STOP_EOS,
                              {said(0, -0.5f, {{0, -0.5f}, {kEnd, -1.25f}}), said(1, -2.0f, {{2, -0.25f}, {5, -1.0f}}),
                               said(kEnd, -0.125f, {{kEnd, -0.125f}})});
    EXPECT_EQ(json, Json::parse(R"({"tokens":["Hi"," é"],"token_logprobs":[-0.5,-2.0],
        "top_logprobs":[{"Hi":-0.5,"</s>":-1.25},{"�":-0.25,"a":-1.0," é":-2.0}],"text_offset":[0,2]})"))
        << "the token that was said is always among the best";
    const Json none = written(Endpoint::completions, "", AUSPEX_STOP_LENGTH, {});
    EXPECT_EQ(none, Json::parse(R"({"tokens":[],"token_logprobs":[],"top_logprobs":[],"text_offset":[]})"));
}

TEST(OpenAiLogprobs, OfTokensThatLookAlikeTheMostProbableStands) {
    const Json json = written(Endpoint::completions, "\xef\xbf\xbd", AUSPEX_STOP_LENGTH,
                              {said(4, -3.0f, {{2, -0.5f}, {3, -1.0f}, {5, -2.0f}})});
    EXPECT_EQ(json["top_logprobs"], Json::parse(R"([{"�":-0.5,"a":-2.0}])"));
    EXPECT_EQ(json["token_logprobs"], Json::parse("[-3.0]"));
}

TEST(OpenAiLogprobs, OffsetsCountCharacters) {
    const auto offsets = [](const std::vector<uint32_t>& tokens) {
        return written(Endpoint::completions, "", AUSPEX_STOP_LENGTH, each(tokens))["text_offset"]
            .get<std::vector<size_t>>();
    };
    using Offsets = std::vector<size_t>;
    EXPECT_EQ(offsets({1, 1, 0, 5}), (Offsets{0, 2, 4, 6}));
    EXPECT_EQ(offsets({0, 2, 3, 5}), (Offsets{0, 2, 2, 3})) << "both halves of a character are where it is";
    EXPECT_EQ(offsets({0, 4, 5}), (Offsets{0, 2, 3})) << "a byte that is none is one: U+FFFD";
    EXPECT_EQ(offsets({2, 5, 5}), (Offsets{0, 1, 2})) << "a character that does not go on is one";
    EXPECT_EQ(offsets({9, 2, 3, 5}), (Offsets{0, 1, 1, 2}));
    EXPECT_EQ(offsets({2, kEnd, 3, 5}), (Offsets{0, 1, 1, 2})) << "a control token ends it";
    EXPECT_EQ(offsets({0, 10, 5}), (Offsets{0, 2, 2}));
}

TEST(OpenAiLogprobs, NothingBehindTheEndIsTold) {
    EXPECT_EQ(told("Hi", AUSPEX_STOP_EOS, {0, kEnd}), 1u);
    EXPECT_EQ(told("", AUSPEX_STOP_EOS, {kEnd}), 0u);
    EXPECT_EQ(told("Hia", AUSPEX_STOP_LENGTH, {0, kEnd, 5}), 3u) << "an end that was ignored is none";
    EXPECT_EQ(told("Hi", AUSPEX_STOP_CONTEXT, {0, kEnd}), 2u);
    EXPECT_EQ(told("Hi", AUSPEX_STOP_CANCELLED, {0}), 1u);
}

TEST(OpenAiLogprobs, AStopTextTrims) {
    EXPECT_EQ(told("Hi", AUSPEX_STOP_TEXT, {0, 6, 7}), 1u) << "before abc";
    EXPECT_EQ(told("x", AUSPEX_STOP_TEXT, {8, 6}), 1u) << "a stop that begins inside a token leaves its beginning";
    EXPECT_EQ(told("x", AUSPEX_STOP_TEXT, {8, 5, 7}), 1u);
    EXPECT_EQ(told("xa", AUSPEX_STOP_TEXT, {8, 6, 7}), 1u) << "abc again, of which a first a was held back";
    EXPECT_EQ(told("", AUSPEX_STOP_TEXT, {6, 7}), 0u);
    EXPECT_EQ(told("Hi", AUSPEX_STOP_TEXT, {0, kEnd, 6, 7}), 1u);
    EXPECT_EQ(told("Hia", AUSPEX_STOP_TEXT, {0, kEnd, 5, 6, 7}), 3u);
    // Where bytes are no characters the text is longer than the tokens.
    EXPECT_EQ(told("\xef\xbf\xbd", AUSPEX_STOP_TEXT, {4, 6, 7}), 1u);
    EXPECT_EQ(told("\xef\xbf\xbd", AUSPEX_STOP_TEXT, {2, 6, 7}), 1u);
    EXPECT_EQ(told("\xef\xbf\xbd\xef\xbf\xbd", AUSPEX_STOP_TEXT, {2, 11, 6, 7}), 2u);
    EXPECT_EQ(told("é", AUSPEX_STOP_TEXT, {2, 3, 6, 7}), 2u);
    EXPECT_EQ(told("", AUSPEX_STOP_TEXT, {2, 3}), 0u) << "the stop is the character";
}

TEST(OpenAiLogprobs, WhatJsonCannotSay) {
    const std::vector<auspex_token_logprobs> tokens = {
        said(0, -kInfinity, {{5, 0.0f}, {6, -kInfinity}, {7, std::numeric_limits<float>::quiet_NaN()}})};
    const Json text = written(Endpoint::completions, "Hi", AUSPEX_STOP_LENGTH, tokens);
    EXPECT_EQ(text["token_logprobs"], Json::parse("[-9999.0]"));
    EXPECT_EQ(text["top_logprobs"], Json::parse(R"([{"a":0.0,"ab":-9999.0,"c":null,"Hi":-9999.0}])"));
    const Json chat = written(Endpoint::chat, "Hi", AUSPEX_STOP_LENGTH, tokens)["content"][0];
    EXPECT_EQ(chat["logprob"], -9999.0);
    EXPECT_TRUE(chat["top_logprobs"][2]["logprob"].is_null());
    const auto tenth = logprobs_json(Endpoint::chat, {"Hi", AUSPEX_STOP_LENGTH, {said(0, -0.1f)}}, piece_of);
    EXPECT_NE(to_text(tenth).find("-0.1,"), std::string::npos) << tenth << ": the digits of a float are enough";
}

TEST(OpenAiLogprobs, AnswersHaveThemWhereTheyWereAskedFor) {
    for (const Endpoint endpoint : {Endpoint::completions, Endpoint::chat}) {
        Answer answer{.endpoint = endpoint};
        answer.choices = {{"Hi", AUSPEX_STOP_LENGTH, each({0})}, {"aa", AUSPEX_STOP_LENGTH, each({5, 5})}};
        EXPECT_TRUE(to_json(answer)["choices"][0]["logprobs"].is_null());
        answer.pieces = piece_of;
        const Json choices = to_json(answer)["choices"];
        const char* list = endpoint == Endpoint::chat ? "content" : "tokens";
        EXPECT_EQ(choices[0]["logprobs"][list].size(), 1u);
        EXPECT_EQ(choices[1]["logprobs"][list].size(), 2u);
    }
}

} // namespace
} // namespace auspex::openai::logprobs_test
