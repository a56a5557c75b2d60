// Answers as OpenAI's objects, and the lines of batch files. Without an engine.
#include "openai/answer.h"
#include "openai/batch_line.h"
#include "openai/json_text.h"

#include <gtest/gtest.h>

#include <set>

namespace auspex::openai::answer_test {
namespace {

std::vector<std::string> keys_of(const Json& object) {
    std::vector<std::string> keys;
    for (const auto& item : object.items())
        keys.push_back(item.key());
    return keys;
}

auspex_sequence_stats stats(uint32_t predicted_n) {
    auspex_sequence_stats stats;
    EXPECT_EQ(auspex_sequence_stats_init(&stats, sizeof stats), AUSPEX_OK);
    stats.prompt_n = 10;
    stats.prompt_ms = 5;
    stats.predicted_n = predicted_n;
    stats.predicted_ms = 20;
    stats.draft_n = 6;
    stats.draft_n_accepted = 3;
    stats.rounds = 4;
    stats.tested_n = 5;
    stats.overlap = 2.5;
    stats.accepted_histogram[0] = 2;
    stats.accepted_histogram[2] = 1;
    stats.c = 0.25;
    stats.v = -1;
    stats.predicted_speedup = 1.5;
    return stats;
}

Answer two_choices(Endpoint endpoint) {
    Answer answer{
        .endpoint = endpoint, .id = "an id", .created = 7, .model = "m", .fingerprint = "f", .seed = UINT64_MAX};
    answer.choices = {{"one", AUSPEX_STOP_EOS}, {"two", AUSPEX_STOP_LENGTH}};
    answer.totals.add_prompt(stats(0));
    answer.totals.add_choice(stats(8));
    answer.totals.add_choice(stats(4));
    return answer;
}

TEST(OpenAiAnswer, CompletionsAndChats) {
    using Keys = std::vector<std::string>;
    const Json text = to_json(two_choices(Endpoint::completions)), chat = to_json(two_choices(Endpoint::chat));
    for (const Json& json : {text, chat}) {
        EXPECT_EQ(keys_of(json), (Keys{"id", "object", "created", "model", "choices", "usage", "system_fingerprint",
                                       "timings", "auspex"}));
        EXPECT_EQ(
            json["usage"],
            Json::parse(
                R"({"prompt_tokens":10,"completion_tokens":12,"total_tokens":22,"prompt_tokens_details":{"cached_tokens":0}})"));
        const Json& timings = json["timings"];
        EXPECT_EQ(keys_of(timings), (Keys{"cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms",
                                          "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_token_ms",
                                          "predicted_per_second", "draft_n", "draft_n_accepted", "draft_rounds"}));
        EXPECT_EQ(timings["prompt_n"], 10);
        EXPECT_EQ(timings["prompt_per_second"], 2000);
        EXPECT_EQ(timings["predicted_n"], 12);
        EXPECT_EQ(timings["predicted_per_second"], 300) << "of one choice, on average";
        EXPECT_EQ(timings["draft_n"], 12);
        EXPECT_EQ(timings["draft_n_accepted"], 6);
        EXPECT_EQ(timings["draft_rounds"], 8);
        EXPECT_EQ(
            json["auspex"],
            Json::parse(
                R"({"seed":-1,"alpha":0.5,"c":0.25,"v":null,"predicted_speedup":1.5,"choice":null,"accepted_histogram":[4,0,2]})"));
    }
    EXPECT_EQ(text["object"], "text_completion");
    EXPECT_EQ(
        text["choices"],
        Json::parse(
            R"([{"index":0,"text":"one","logprobs":null,"finish_reason":"stop"},{"index":1,"text":"two","logprobs":null,"finish_reason":"length"}])"));
    EXPECT_EQ(chat["object"], "chat.completion");
    EXPECT_EQ(
        chat["choices"][1],
        Json::parse(
            R"({"index":1,"message":{"role":"assistant","content":"two"},"logprobs":null,"finish_reason":"length"})"));
}

TEST(OpenAiAnswer, WhatWasInTheCacheWasNotRead) {
    Answer answer{.choices = {{"", AUSPEX_STOP_EOS}}};
    auspex_sequence_stats first = stats(0), other = stats(0);
    first.cached_n = 6;
    answer.totals.add_prompt(first, 3); // of 5 ms it waited for 3
    other.cached_n = 12;                // began anew, and found 6 of its 10 tokens twice
    other.prompt_ms = 1;
    answer.totals.add_prompt(other, 2);
    const Json json = to_json(answer);
    EXPECT_EQ(json["usage"]["prompt_tokens"], 20);
    EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"], 16);
    EXPECT_EQ(json["timings"]["cache_n"], 16);
    EXPECT_EQ(json["timings"]["prompt_n"], 4);
    EXPECT_EQ(json["timings"]["prompt_ms"], 2);
    EXPECT_EQ(json["timings"]["prompt_per_second"], 2000);
}

TEST(OpenAiAnswer, WhatIsNotKnownIsNull) {
    Answer answer{.choices = {{"", AUSPEX_STOP_CONTEXT}}};
    auspex_sequence_stats nothing = stats(0);
    nothing.prompt_ms = nothing.predicted_ms = -1;
    nothing.draft_n = nothing.tested_n = 0;
    answer.totals.add_prompt(nothing);
    answer.totals.add_choice(nothing);
    const Json json = to_json(answer);
    for (const char* name : {"prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_ms",
                             "predicted_per_token_ms", "predicted_per_second"})
        EXPECT_TRUE(json["timings"][name].is_null()) << name;
    EXPECT_FALSE(json["timings"].contains("draft_n")) << "only where drafts were tested";
    EXPECT_TRUE(json["auspex"]["alpha"].is_null());
}

TEST(OpenAiAnswer, FinishReasons) {
    EXPECT_EQ(finish_reason(AUSPEX_STOP_EOS), "stop");
    EXPECT_EQ(finish_reason(AUSPEX_STOP_TEXT), "stop");
    EXPECT_EQ(finish_reason(AUSPEX_STOP_LENGTH), "length");
    EXPECT_EQ(finish_reason(AUSPEX_STOP_CONTEXT), "length");
    EXPECT_TRUE(finish_reason(AUSPEX_STOP_NONE).is_null());
    EXPECT_TRUE(finish_reason(AUSPEX_STOP_CANCELLED).is_null());
}

TEST(OpenAiAnswer, RandomIdsDiffer) {
    std::set<std::string> ids;
    for (int i = 0; i < 1000; ++i) {
        const std::string id = random_id("cmpl-");
        EXPECT_EQ(id.size(), 29u);
        EXPECT_EQ(id.find("cmpl-"), 0u);
        EXPECT_EQ(id.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 5),
                  std::string::npos);
        ids.insert(id);
    }
    EXPECT_EQ(ids.size(), 1000u);
}

TEST(OpenAiBatchLine, RequestsAreRead) {
    const BatchLine line =
        parse_batch_line(R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"x":1},"more":[]})");
    EXPECT_EQ(line.custom_id, "a");
    EXPECT_EQ(line.endpoint, Endpoint::chat);
    EXPECT_EQ(line.body, Json::parse(R"({"x":1})"));
    const auto refused = [](const std::string& text, const char* param) {
        SCOPED_TRACE(text.substr(0, 80));
        try {
            parse_batch_line(text);
            ADD_FAILURE() << "it was taken";
        } catch (const RequestError& error) {
            const Json named = error.body()["error"]["param"];
            EXPECT_EQ(named.is_null() ? "" : named.get<std::string>(), param);
        }
    };
    const std::string rest = R"("method":"POST","url":"/v1/completions","body":{}})";
    for (const char* id :
         {R"("custom_id":null,)", R"("custom_id":"",)", R"("custom_id":7,)", R"("custom_id":["a"],)", ""})
        refused("{" + std::string(id) + rest, "custom_id");
    EXPECT_NO_THROW(parse_batch_line("{\"custom_id\":\"" + std::string(512, 'x') + "\"," + rest));
    refused("{\"custom_id\":\"" + std::string(513, 'x') + "\"," + rest, "custom_id");
    refused(R"({"custom_id":"a","url":"/v1/completions","body":{}})", "method");
    refused(R"({"custom_id":"a","method":"GET","url":"/v1/completions","body":{}})", "method");
    refused(R"({"custom_id":"a","method":"POST","body":{}})", "url");
    refused(R"({"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{}})", "url");
    refused(R"({"custom_id":"a","method":"POST","url":["/v1/completions"],"body":{}})", "url");
    refused(R"({"custom_id":"a","method":"POST","url":"/completion","body":{}})", "url");
    refused(R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"stream":true}})", "stream");
    refused(R"({"custom_id":"a","method":"POST","url":"/v1/completions"})", "body");
    refused(R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":"{}"})", "body");
    for (const char* text : {"[]", "7", "\"x\"", "null", "{"})
        refused(text, "");
}

TEST(OpenAiBatchLine, ResultsAreWrittenAndReadAgain) {
    const std::string text = to_text(ResultLine{.line = 42, .custom_id = "a\nb", .body = {{"x", 1}}});
    EXPECT_EQ(text.find(kResultBegin), 0u);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    Json json = Json::parse(text);
    EXPECT_EQ(keys_of(json), (std::vector<std::string>{"id", "custom_id", "response", "error"}));
    EXPECT_EQ(json["id"], "batch_req_000000000042");
    EXPECT_EQ(json["custom_id"], "a\nb");
    EXPECT_EQ(json["response"]["status_code"], 200);
    EXPECT_EQ(json["response"]["request_id"].get<std::string>().find("req_"), 0u);
    EXPECT_EQ(json["response"]["body"], Json::parse(R"({"x":1})"));
    EXPECT_TRUE(json["error"].is_null());
    const auto key = parse_result_line(text);
    ASSERT_TRUE(key);
    EXPECT_EQ(key->line, 42u);
    EXPECT_EQ(key->custom_id, "a\nb");
    EXPECT_FALSE(key->is_duplicate);

    const auto nameless =
        parse_result_line(to_text(ResultLine{.line = 1, .status = 400, .body = RequestError("x", "y").body()}));
    ASSERT_TRUE(nameless);
    EXPECT_FALSE(nameless->custom_id || nameless->is_duplicate);
    const auto repeated = parse_result_line(to_text(
        ResultLine{.line = 9, .custom_id = "a", .status = 400, .body = RequestError("x", "y", kDuplicateId).body()}));
    ASSERT_TRUE(repeated);
    EXPECT_TRUE(repeated->is_duplicate);
    for (const char* other :
         {"", "{}", "x", R"({"id":"batch_req_1","custom_id":"a"})",
          R"({"id":"batch_req_x","custom_id":"a","response":{}})", R"({"id":1,"custom_id":"a","response":{}})",
          R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{}})",
          R"({"id":"batch_req_1","custom_id":"a","response":)"})
        EXPECT_FALSE(parse_result_line(other)) << other;
    EXPECT_EQ(to_text(ResultLine{.body = "\xff"}).find('\xff'), std::string::npos) << "always UTF-8";
}

TEST(OpenAiBatchLine, CustomIdsOfLinesThatAreBroken) {
    EXPECT_EQ(custom_id_of(R"({"custom_id":"a","body":{"temperature":NaN}})"), "a");
    EXPECT_EQ(custom_id_of(R"({"body":{"custom_id":"a"}})"), std::nullopt);
    EXPECT_EQ(custom_id_of(R"({"custom_id":""})"), std::nullopt);
    EXPECT_EQ(custom_id_of("{\"custom_id\":\"" + std::string(513, 'x') + "\"}"), std::nullopt);
    EXPECT_EQ(custom_id_of("not JSON"), std::nullopt);
}

} // namespace
} // namespace auspex::openai::answer_test
