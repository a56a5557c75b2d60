// Answers piece by piece, as clients read them: put together again they are the whole answer. Without an engine.
#include "openai/chunks.h"
#include "openai/json_text.h"

#include <gtest/gtest.h>

namespace auspex::openai::chunks_test {
namespace {

// The chunks of some events; "[DONE]" is a string.
std::vector<Json> chunks_of(const std::string& events) {
    std::vector<Json> chunks;
    size_t at = 0;
    while (at < events.size()) {
        const size_t end = events.find("\n\n", at);
        if (end == std::string::npos || events.compare(at, 6, "data: ") != 0) {
            ADD_FAILURE() << "no event at " << at << ": " << events.substr(at, 40);
            break;
        }
        const std::string data = events.substr(at + 6, end - at - 6);
        EXPECT_EQ(data.find('\n'), std::string::npos);
        chunks.push_back(data == "[DONE]" ? Json("[DONE]") : parse_json(data));
        at = end + 2;
    }
    return chunks;
}

Piece piece_of(uint32_t token) {
    static const std::vector<std::string> vocabulary = {"Hi", " \xc3", "\xa9", "!", "</s>"};
    return {vocabulary.at(token), token == 4};
}

Answer answer_of(Endpoint endpoint, bool with_logprobs = false) {
    Answer answer{.endpoint = endpoint, .id = "an id", .created = 7, .model = "m", .fingerprint = "f", .seed = 3};
    answer.choices.resize(1);
    answer.totals.prompt_n = 5;
    answer.totals.cached_n = 2;
    answer.totals.predicted_n = 4;
    if (with_logprobs) answer.pieces = piece_of;
    return answer;
}

auspex_token token(uint32_t id, auspex_token_origin origin, uint32_t bytes) {
    return {id, origin, bytes};
}

auspex_token_logprobs logprobs(uint32_t id) {
    auspex_token_logprobs of{};
    of.token = {id, -0.5f};
    return of;
}

TEST(OpenAiChunks, OfAChat) {
    const Answer answer = answer_of(Endpoint::chat);
    Chunks chunks(answer, {}, 5);
    const std::vector<auspex_token> tokens = {token(0, AUSPEX_TOKEN_PLAIN, 2)};
    const auto first = chunks_of(chunks.news({.choice = 0, .text = "Hi", .tokens = tokens}));
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0], Json::parse(R"({"id":"an id","object":"chat.completion.chunk","created":7,"model":"m","system_fingerprint":"f",
        "choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}]})"));
    const auto next = chunks_of(chunks.news({.choice = 0, .text = " \"there\"\n", .tokens = tokens}));
    EXPECT_EQ(next.at(0)["choices"], Json::parse(R"([{"index":0,"delta":{"content":" \"there\"\n"},"logprobs":null,"finish_reason":null}])"));
    EXPECT_EQ(chunks.news({.choice = 0, .text = "", .tokens = tokens}), "") << "no text, nothing to tell";
    const auto end = chunks_of(chunks.end_of_choice(0, AUSPEX_STOP_EOS, &answer));
    EXPECT_EQ(end.at(0)["choices"], Json::parse(R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}])"));
    EXPECT_EQ(end.at(0)["timings"]["cache_n"], 2) << "what was counted rides on the last chunk";
    EXPECT_EQ(end.at(0)["auspex"]["seed"], 3);
    EXPECT_FALSE(end.at(0).contains("usage"));
    EXPECT_EQ(chunks_of(chunks.end(answer)), (std::vector<Json>{"[DONE]"}));
}

TEST(OpenAiChunks, AnAnswerWithoutTextHasARole) {
    const Answer answer = answer_of(Endpoint::chat);
    Chunks chunks(answer, {}, 5);
    EXPECT_EQ(chunks_of(chunks.end_of_choice(0, AUSPEX_STOP_LENGTH, &answer)).at(0)["choices"][0]["delta"],
              Json::parse(R"({"role":"assistant","content":""})"));
}

TEST(OpenAiChunks, UsageComesLastOrWithAll) {
    const Answer answer = answer_of(Endpoint::completions);
    const std::vector<auspex_token> tokens = {token(0, AUSPEX_TOKEN_ACCEPTED, 1), token(1, AUSPEX_TOKEN_BONUS, 1)};
    Chunks last(answer, {.has_usage = true}, 5);
    const Json first = chunks_of(last.news({.choice = 0, .text = "ab", .tokens = tokens})).at(0);
    EXPECT_EQ(first["choices"], Json::parse(R"([{"index":0,"text":"ab","logprobs":null,"finish_reason":null}])"));
    EXPECT_TRUE(first.contains("usage") && first["usage"].is_null());
    EXPECT_FALSE(chunks_of(last.end_of_choice(0, AUSPEX_STOP_EOS, &answer)).at(0).contains("timings"));
    const auto end = chunks_of(last.end(answer));
    ASSERT_EQ(end.size(), 2u);
    EXPECT_EQ(end[0]["choices"], Json::array());
    EXPECT_EQ(end[0]["usage"], Json::parse(R"({"prompt_tokens":5,"completion_tokens":4,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":2}})"));
    EXPECT_TRUE(end[0].contains("timings"));
    EXPECT_EQ(end[1], "[DONE]");

    Chunks each(answer, {.has_continuous_usage = true}, 5);
    const Json unknown = chunks_of(each.news({.choice = 0, .text = "ab", .tokens = tokens})).at(0)["usage"];
    EXPECT_EQ(unknown, Json::parse(R"({"prompt_tokens":5,"completion_tokens":2,"total_tokens":7})")) << "how many were cached is not known yet";
    const Json known = chunks_of(each.news({.choice = 0, .text = "", .tokens = tokens, .cached_n = 3})).at(0)["usage"];
    EXPECT_EQ(known, Json::parse(R"({"prompt_tokens":5,"completion_tokens":4,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3}})"));
    EXPECT_EQ(chunks_of(each.news({.choice = 0, .text = "c"})).at(0)["usage"], known) << "and stays so";
    EXPECT_EQ(chunks_of(each.end_of_choice(0, AUSPEX_STOP_EOS, &answer)).at(0)["usage"], end[0]["usage"]);
}

// Whoever times the first event times the first text.
TEST(OpenAiChunks, TheFirstEventHasText) {
    const std::vector<auspex_token> tokens = {token(1, AUSPEX_TOKEN_PLAIN, 0)}, more = {token(2, AUSPEX_TOKEN_ACCEPTED, 3), token(3, AUSPEX_TOKEN_BONUS, 1)};
    const std::vector<auspex_token_logprobs> first = {logprobs(1)}, others = {logprobs(2), logprobs(3)};
    const Json all = Json::parse("[[1,0,0],[2,1,3],[3,3,1]]");
    for (const Endpoint endpoint : {Endpoint::chat, Endpoint::completions, Endpoint::completion}) {
        Answer answer = answer_of(endpoint, endpoint != Endpoint::completion);
        answer.has_tokens = true;
        const StreamOptions options = {.has_continuous_usage = true, .has_origins = true};
        Chunks chunks(answer, options, 5);
        EXPECT_EQ(chunks.news({.choice = 0, .tokens = tokens, .logprobs = first}), "");
        const Json chunk = chunks_of(chunks.news({.choice = 0, .text = " \xc3\xa9!", .tokens = more, .logprobs = others})).at(0);
        EXPECT_EQ(chunk["auspex"]["tokens"], all) << "what was not told before";
        EXPECT_EQ(chunk["tokens"], Json({1, 2, 3}));
        EXPECT_EQ(endpoint == Endpoint::completion ? chunk["tokens_predicted"] : chunk["usage"]["completion_tokens"], 3);
        if (endpoint == Endpoint::chat) {
            EXPECT_EQ(chunk["choices"][0]["delta"], Json::parse(R"({"role":"assistant","content":" é!"})"));
            EXPECT_EQ(chunk["choices"][0]["logprobs"]["content"].size(), 3u);
        }
        EXPECT_EQ(chunks_of(chunks.news({.choice = 0, .tokens = tokens, .logprobs = first})).size(), 1u) << "afterwards there may be none";
        // Of an answer that has no text at all nothing is lost.
        Chunks silent(answer, options, 5);
        EXPECT_EQ(silent.news({.choice = 0, .tokens = tokens, .logprobs = first}), "");
        const auto end = chunks_of(silent.end_of_choice(0, AUSPEX_STOP_EOS, &answer));
        ASSERT_EQ(end.size(), endpoint == Endpoint::completion ? 1u : 2u);
        EXPECT_EQ(end[0]["auspex"]["tokens"], Json::parse("[[1,0,0]]"));
        EXPECT_EQ(end[0]["tokens"], Json({1}));
        EXPECT_TRUE(endpoint == Endpoint::completion || end[1]["choices"][0]["finish_reason"] == "stop");
    }
}

TEST(OpenAiChunks, OriginsOfTokens) {
    Chunks chunks(answer_of(Endpoint::chat), {.has_origins = true}, 5);
    const std::vector<auspex_token> tokens = {token(7, AUSPEX_TOKEN_ACCEPTED, 3), token(9, AUSPEX_TOKEN_CORRECTION, 0)};
    EXPECT_EQ(chunks_of(chunks.news({.choice = 0, .text = "abc", .tokens = tokens})).at(0)["auspex"], Json::parse(R"({"tokens":[[7,1,3],[9,2,0]]})"));
    EXPECT_EQ(chunks_of(chunks.news({.choice = 0, .text = "", .tokens = tokens})).size(), 1u) << "tokens of no text are told, too";
}

TEST(OpenAiChunks, SeveralChoices) {
    Answer answer = answer_of(Endpoint::completions);
    answer.choices.resize(2);
    Chunks chunks(answer, {}, 5);
    EXPECT_EQ(chunks_of(chunks.first_text(1, "prompt")).at(0)["choices"][0], Json::parse(R"({"index":1,"text":"prompt","logprobs":null,"finish_reason":null})"));
    EXPECT_EQ(chunks.first_text(0, ""), "");
    EXPECT_FALSE(chunks_of(chunks.end_of_choice(1, AUSPEX_STOP_LENGTH, nullptr)).at(0).contains("timings"));
    const Json end = chunks_of(chunks.end_of_choice(0, AUSPEX_STOP_TEXT, &answer)).at(0);
    EXPECT_EQ(end["choices"], Json::parse(R"([{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}])"));
}

// What came piece by piece is what comes whole, wherever the text is cut.
TEST(OpenAiChunks, LogprobsComeWithTheTextOfTheirTokens) {
    const std::string text = "Hi \xc3\xa9!";
    const std::vector<uint32_t> ids = {0, 1, 2, 3, 4};
    std::vector<auspex_token_logprobs> all;
    for (const uint32_t id : ids)
        all.push_back(logprobs(id));
    for (const Endpoint endpoint : {Endpoint::chat, Endpoint::completions}) {
        const Json whole = logprobs_json(endpoint, {text, AUSPEX_STOP_EOS, all}, piece_of);
        const Answer answer = answer_of(endpoint, true);
        Chunks chunks(answer, {}, 5);
        std::string events;
        // The engine holds " \xc3" back: "Hi" and " " come with two tokens, "\xc3\xa9!" with the rest.
        const std::span<const auspex_token_logprobs> of(all);
        events += chunks.news({.choice = 0, .text = text.substr(0, 3), .logprobs = of.subspan(0, 2)});
        events += chunks.news({.choice = 0, .text = text.substr(3), .logprobs = of.subspan(2)});
        events += chunks.end_of_choice(0, AUSPEX_STOP_EOS, &answer);
        Json joined;
        for (const Json& chunk : chunks_of(events)) {
            const Json& some = chunk["choices"][0]["logprobs"];
            ASSERT_TRUE(some.is_object());
            for (const auto& [key, list] : some.items())
                for (const Json& one : list)
                    joined[key].push_back(one);
        }
        EXPECT_EQ(joined, whole);
    }
}

TEST(OpenAiChunks, OfLlamaCpp) {
    Answer answer = answer_of(Endpoint::completion);
    answer.has_tokens = true;
    Chunks chunks(answer, {}, 5);
    const std::vector<auspex_token> tokens = {token(3, AUSPEX_TOKEN_PLAIN, 1)};
    EXPECT_EQ(chunks_of(chunks.news({.choice = 0, .text = "!", .tokens = tokens})).at(0),
              Json::parse(R"({"index":0,"content":"!","stop":false,"tokens_predicted":1,"tokens_evaluated":5,"tokens":[3]})"));
    EXPECT_EQ(chunks.end_of_choice(0, AUSPEX_STOP_EOS, &answer), "");
    answer.choices[0] = {.text = "!", .stop_reason = AUSPEX_STOP_TEXT};
    const auto end = chunks_of(chunks.end(answer));
    ASSERT_EQ(end.size(), 1u) << "no [DONE]";
    EXPECT_EQ(end[0]["content"], "");
    EXPECT_EQ(end[0]["stop"], true);
    EXPECT_EQ(end[0]["stop_type"], "word");
    EXPECT_EQ(end[0]["tokens_predicted"], 4);
}

TEST(OpenAiChunks, HostileTextStaysInItsEvent) {
    Chunks chunks(answer_of(Endpoint::chat), {}, 5);
    const std::string text = "a\n\ndata: [DONE]\n\n\xff\xe2\x80\xa8";
    const auto all = chunks_of(chunks.news({.choice = 0, .text = text}));
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0]["choices"][0]["delta"]["content"], "a\n\ndata: [DONE]\n\n\xef\xbf\xbd\xe2\x80\xa8");
}

TEST(OpenAiChunks, ErrorsAndComments) {
    EXPECT_EQ(chunks_of(error_event(RequestError("", "it broke", "", 500))).at(0)["error"]["type"], "server_error");
    EXPECT_EQ(comment("queued 3"), ": queued 3\n\n");
}

} // namespace
} // namespace auspex::openai::chunks_test
