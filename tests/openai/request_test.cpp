// Bodies of OpenAI's requests: what every field may be, and what is said of what it may not. Without an engine.
#include "openai/fields.h"
#include "openai/json_text.h"
#include "openai/request.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace auspex::openai::request_test {
namespace {

constexpr Limits kLimits = {
    .vocab_size = 4096, .max_context = 512, .max_draft_len = 8, .max_choices = 16, .has_draft_model = true};

Request parse_with(const std::string& field, Endpoint endpoint = Endpoint::completions) {
    const char* asked =
        endpoint == Endpoint::chat ? R"("messages":[{"role":"user","content":"x"}])" : R"("prompt":"x")";
    return parse_request(endpoint, parse_json("{" + std::string(asked) + (field.empty() ? "" : ",") + field + "}"),
                         kLimits);
}

// The body's error; null: it is taken.
Json error_of(const std::string& body, Endpoint endpoint = Endpoint::completions) {
    try {
        parse_request(endpoint, parse_json(body), kLimits);
    } catch (const RequestError& error) {
        EXPECT_EQ(error.status(), 400);
        return error.body()["error"];
    }
    return nullptr;
}

struct Case {
    std::string field;
    const char* param = nullptr; // null: it is taken
};

void expect(const std::vector<Case>& cases, Endpoint endpoint = Endpoint::completions) {
    const std::string asked =
        endpoint == Endpoint::chat ? R"("messages":[{"role":"user","content":"x"}])" : R"("prompt":"x")";
    for (const Case& one : cases) {
        SCOPED_TRACE(one.field);
        const Json error = error_of("{" + asked + "," + one.field + "}", endpoint);
        if (one.param == nullptr) {
            EXPECT_TRUE(error.is_null()) << error;
            continue;
        }
        ASSERT_TRUE(error.is_object());
        EXPECT_EQ(error["type"], "invalid_request_error");
        EXPECT_EQ(error["param"], one.param) << error;
        EXPECT_EQ(error["message"].get<std::string>().find(one.param), 0u) << error;
    }
}

// Both ends are taken, what is beyond them is not, nor what is of another type; null is as good as absent.
void expect_range(const std::string& name, const std::string& lowest, const std::string& highest,
                  const std::string& below, const std::string& above, bool is_whole,
                  Endpoint endpoint = Endpoint::completions) {
    const std::string key = "\"" + name + "\":";
    std::vector<Case> cases = {{key + lowest}, {key + highest}, {key + "null"}};
    for (const std::string& wrong :
         {below, above, std::string("\"1\""), std::string("true"), std::string("[1]"), std::string("{}"),
          std::string("1e300"), std::string("-9223372036854775809"), std::string("18446744073709551616")})
        cases.push_back({key + wrong, name.c_str()});
    if (is_whole) cases.push_back({key + "1.5", name.c_str()});
    expect(cases, endpoint);
}

TEST(OpenAiRequest, NumbersAtAndBeyondTheirEnds) {
    for (const Endpoint endpoint : {Endpoint::completions, Endpoint::chat}) {
        expect_range("temperature", "0", "5", "-0.001", "5.001", false, endpoint);
        expect_range("top_p", "1e-9", "1", "0", "1.0001", false, endpoint);
        expect_range("min_p", "0", "1.0", "-1e-9", "1.5", false, endpoint);
        expect_range("top_k", "0", "4096", "-1", "4097", true, endpoint);
        expect_range("presence_penalty", "-2", "2", "-2.01", "2.01", false, endpoint);
        expect_range("frequency_penalty", "-2.0", "2", "-3", "3", false, endpoint);
        expect_range("repeat_penalty", "0.1", "10", "0.09", "10.1", false, endpoint);
        expect_range("n", "1", "16", "0", "17", true, endpoint);
        for (const char* name : {"max_tokens", "max_completion_tokens"})
            expect_range(name, "0", "512", "-1", "513", true, endpoint);
        expect_range("n_predict", "-1", "512", "-2", "513", true, endpoint);
        expect_range("draft_len", "0", "8", "-1", "9", true, endpoint);
        expect_range("priority", "-10", "10", "-11", "11", true, endpoint);
    }
    expect({{R"("seed":-9223372036854775808)"},
            {R"("seed":9223372036854775807)"},
            {R"("seed":9223372036854775808)", "seed"},
            {R"("seed":-9223372036854775809)", "seed"},
            {R"("seed":1.0)", "seed"},
            {R"("seed":"1")", "seed"}});
}

TEST(OpenAiRequest, DefaultsAreThoseOfTheCommandLine) {
    const Request request = parse_with("");
    EXPECT_EQ(request.temperature, 0.0);
    EXPECT_EQ(request.top_p, 1.0);
    EXPECT_EQ(request.min_p, 0.0);
    EXPECT_EQ(request.top_k, 0u);
    EXPECT_EQ(request.repeat_penalty, 1.0);
    EXPECT_EQ(request.n, 1u);
    EXPECT_FALSE(request.max_tokens || request.seed || request.draft_len || request.drafter || request.acceptance);
    EXPECT_TRUE(request.biases.empty() && request.stop_texts.empty());
    EXPECT_FALSE(request.ignore_eos);
}

TEST(OpenAiRequest, LaterNamesOfTheLengthCountFirst) {
    EXPECT_EQ(parse_with(R"("max_tokens":7)").max_tokens, 7u);
    EXPECT_EQ(parse_with(R"("n_predict":6)").max_tokens, 6u);
    EXPECT_EQ(parse_with(R"("max_tokens":7,"max_completion_tokens":8,"n_predict":6)").max_tokens, 8u);
    EXPECT_EQ(parse_with(R"("max_tokens":0)").max_tokens, 0u);
    expect({{R"("max_tokens":-7,"max_completion_tokens":8)", "max_tokens"}});
}

TEST(OpenAiRequest, StopTexts) {
    const std::string longest(256, 's'), longer(257, 's');
    std::string sixteen, seventeen = R"("z")";
    for (int i = 0; i < 16; ++i) {
        sixteen += std::string(i == 0 ? "" : ",") + "\"s" + std::to_string(i) + "\"";
        seventeen += ",\"s" + std::to_string(i) + "\"";
    }
    expect({{R"("stop":"x")"},
            {R"("stop":[])"},
            {R"("stop":null)"},
            {"\"stop\":\"" + longest + "\""},
            {"\"stop\":[" + sixteen + "]"},
            {R"("stop":"")", "stop"},
            {"\"stop\":\"" + longer + "\"", "stop"},
            {"\"stop\":[" + seventeen + "]", "stop"},
            {R"("stop":7)", "stop"},
            {R"("stop":["a",7])", "stop"},
            {R"("stop":["a",null])", "stop"},
            {R"("stop":"a\u0000b")", "stop"},
            {R"("stop":{})", "stop"},
            {R"("stop":[["a"]])", "stop"}});
    EXPECT_EQ(parse_with("\"stop\":[" + sixteen + "]").stop_texts.size(), 16u);
    EXPECT_EQ(parse_with(R"("stop":"é")").stop_texts.front(), "é");
}

TEST(OpenAiRequest, BiasesOfBothForms) {
    const auto biases = parse_with(R"("logit_bias":{"7":-100,"8":2.5,"9":100,"4095":-99.5})").biases;
    ASSERT_EQ(biases.size(), 4u);
    EXPECT_EQ(biases[0].token, 7u);
    EXPECT_EQ(biases[0].bias, -std::numeric_limits<float>::infinity()) << "-100 bans";
    EXPECT_EQ(biases[1].bias, 2.5f);
    EXPECT_EQ(biases[2].bias, 100.0f);
    EXPECT_EQ(biases[3].bias, -99.5f);
    const auto pairs = parse_with(R"("logit_bias":[[7,false],[8,-1]])").biases;
    ASSERT_EQ(pairs.size(), 2u);
    EXPECT_EQ(pairs[0].bias, -std::numeric_limits<float>::infinity());
    EXPECT_EQ(pairs[1].bias, -1.0f);
    std::string most, too_many;
    for (int i = 0; i < 1025; ++i) {
        const std::string pair = "[" + std::to_string(i) + ",1]";
        if (i < 1024) most += (i == 0 ? "" : ",") + pair;
        too_many += (i == 0 ? "" : ",") + pair;
    }
    EXPECT_EQ(parse_with("\"logit_bias\":[" + most + "]").biases.size(), 1024u);
    expect({{R"("logit_bias":{})"},
            {R"("logit_bias":null)"},
            {R"("logit_bias":[])"},
            {"\"logit_bias\":[" + too_many + "]", "logit_bias"},
            {R"("logit_bias":{"7":100.5})", "logit_bias"},
            {R"("logit_bias":{"7":-101})", "logit_bias"},
            {R"("logit_bias":{"4096":1})", "logit_bias"},
            {R"("logit_bias":{"-1":1})", "logit_bias"},
            {R"("logit_bias":{"x":1})", "logit_bias"},
            {R"("logit_bias":{"":1})", "logit_bias"},
            {R"("logit_bias":{"7":true})", "logit_bias"},
            {R"("logit_bias":{"7":"1"})", "logit_bias"},
            {R"("logit_bias":{"7":null})", "logit_bias"},
            {R"("logit_bias":{"7":1,"07":1})", "logit_bias"},
            {R"("logit_bias":{"99999999999999999999":1})", "logit_bias"},
            {R"("logit_bias":{"4294967303":1})", "logit_bias"},
            {R"("logit_bias":[[7,1],[7,2]])", "logit_bias"},
            {R"("logit_bias":[[7]])", "logit_bias"},
            {R"("logit_bias":[7,1])", "logit_bias"},
            {R"("logit_bias":[[7.0,1]])", "logit_bias"},
            {R"("logit_bias":"7")", "logit_bias"}});
}

TEST(OpenAiRequest, WordsOfOurOwn) {
    EXPECT_EQ(parse_with(R"("draft_len":"auto")").draft_len, AUSPEX_DRAFT_LEN_AUTO);
    EXPECT_EQ(parse_with(R"("draft_len":8)").draft_len, 8u);
    EXPECT_EQ(parse_with(R"("drafter":"model")").drafter, AUSPEX_DRAFTER_MODEL);
    EXPECT_EQ(parse_with(R"("drafter":"auto")").drafter, AUSPEX_DRAFTER_AUTO);
    EXPECT_EQ(parse_with(R"("acceptance":"rejection")").acceptance, AUSPEX_ACCEPT_REJECTION);
    EXPECT_TRUE(parse_with(R"("ignore_eos":true)").ignore_eos);
    expect({{R"("drafter":"self")", "drafter"},
            {R"("drafter":"host")", "drafter"},
            {R"("drafter":"Model")", "drafter"},
            {R"("drafter":1)", "drafter"},
            {R"("acceptance":"always")", "acceptance"},
            {R"("acceptance":true)", "acceptance"},
            {R"("draft_len":"often")", "draft_len"},
            {R"("ignore_eos":1)", "ignore_eos"},
            {R"("ignore_eos":"true")", "ignore_eos"}});
}

TEST(OpenAiRequest, DraftersNeedWhatDrafts) {
    const auto drafters_of = [](bool has_draft_model, bool has_self_draft) {
        Limits limits = kLimits;
        limits.has_draft_model = has_draft_model;
        limits.has_self_draft = has_self_draft;
        std::string taken;
        for (const std::string name : {"model", "self", "hybrid", "ngram", "lookup", "none", "auto"}) {
            try {
                parse_request(Endpoint::completions, parse_json(R"({"prompt":"x","drafter":")" + name + "\"}"), limits);
                taken += name + " ";
            } catch (const RequestError& error) {
                EXPECT_EQ(error.body()["error"]["param"], "drafter");
            }
        }
        return taken;
    };
    EXPECT_EQ(drafters_of(false, false), "ngram lookup none auto ");
    EXPECT_EQ(drafters_of(true, false), "model hybrid ngram lookup none auto ");
    EXPECT_EQ(drafters_of(false, true), "self hybrid ngram lookup none auto ");
}

TEST(OpenAiRequest, EchoAndLogprobsExcludeEachOther) {
    expect({{R"("echo":true,"logprobs":1)", "echo"}, {R"("echo":false,"logprobs":1)"}});
}

TEST(OpenAiRequest, StreamsSayWhatComesWithThem) {
    const auto stream_of = [](const std::string& fields) {
        return parse_request(Endpoint::chat, parse_json(R"({"messages":[{"role":"user","content":"x"}])" + fields + "}"), kLimits).stream;
    };
    EXPECT_FALSE(stream_of(""));
    EXPECT_FALSE(stream_of(R"(,"stream":false)"));
    const auto plain = stream_of(R"(,"stream":true)"), full = stream_of(
        R"(,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"auspex":{"origins":true})");
    ASSERT_TRUE(plain && full);
    EXPECT_FALSE(plain->has_usage || plain->has_continuous_usage || plain->has_origins);
    EXPECT_TRUE(full->has_usage && full->has_continuous_usage && full->has_origins);
}

// llama.cpp's own: one prompt, one answer, -1 for no limit.
TEST(OpenAiRequest, LlamaCppsCompletion) {
    const auto parsed = [](const std::string& fields) {
        return parse_request(Endpoint::completion, parse_json(R"({"prompt":"x")" + fields + "}"), kLimits);
    };
    EXPECT_FALSE(parsed(R"(,"n_predict":-1)").max_tokens);
    EXPECT_EQ(parsed(R"(,"n_predict":7)").max_tokens, 7u);
    EXPECT_EQ(parsed(R"(,"n_predict":-1,"max_tokens":3)").max_tokens, 3u);
    EXPECT_THROW(parsed(R"(,"n_predict":-2)"), RequestError);
    EXPECT_FALSE(parsed(R"(,"seed":-1)").seed);
    EXPECT_EQ(parsed(R"(,"seed":-2)").seed, -2);
    EXPECT_THROW(parsed(R"(,"n":2)"), RequestError);
    EXPECT_THROW(parse_request(Endpoint::completion, parse_json(R"({"prompt":["x","y"]})"), kLimits), RequestError);
    EXPECT_NO_THROW(parse_request(Endpoint::completion, parse_json(R"({"prompt":[1,2]})"), kLimits));
    // It has n_probs instead, and no echo: who asks by the names of the other interface is told so.
    for (const char* fields : {R"("logprobs":1)", R"("logprobs":0)", R"("logprobs":true)", R"("echo":true)", R"("echo":1)"})
        EXPECT_THROW(parsed("," + std::string(fields)), RequestError) << fields;
    EXPECT_NO_THROW(parsed(R"(,"logprobs":false,"echo":false)"));
    EXPECT_NO_THROW(parsed(R"(,"logprobs":null,"echo":null)"));
}

// Each prompt of it is alone with what it has read, within its request, too.
TEST(OpenAiRequest, WithoutCacheEachPromptHasASaltOfItsOwn) {
    auspex_sequence_desc usual;
    auspex_sequence_desc_init(&usual, sizeof usual);
    const auto salt_of = [&](const Request& request, uint32_t choice) { return std::string((*ChoiceDesc(request, usual, 7, choice)).cache_salt); };
    for (const std::string salt : {"", "mine"}) {
        const std::string fields = R"("cache_salt":")" + salt + "\"";
        for (const char* more : {"", R"(,"cache_prompt":true)", R"(,"cache_prompt":null)"})
            EXPECT_EQ(salt_of(parse_with(fields + more), 0), salt) << more;
        const Request request = parse_with(fields + R"(,"cache_prompt":false)");
        const std::string first = salt_of(request, 0), second = salt_of(request, 1), again = salt_of(request, 0);
        EXPECT_EQ((std::set<std::string>{salt, first, second, again}.size()), 4u);
    }
}

TEST(OpenAiRequest, WhatCannotBeDoneIsRefusedByName) {
    for (const Endpoint endpoint : {Endpoint::completions, Endpoint::chat})
        expect({{R"("stream":false)"},
                {R"("stream":null)"},
                {R"("stream":true)"},
                {R"("stream":1)", "stream"},
                {R"("stream_options":{})", "stream_options"}, // without a stream
                {R"("stream":true,"stream_options":{"include_usage":true,"more":1})"},
                {R"("stream":true,"stream_options":[])", "stream_options"},
                {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
                {R"("stream":true,"stream_options":{"continuous_usage_stats":"x"})", "stream_options.continuous_usage_stats"},
                {R"("stream":true,"auspex":{"origins":true})"},
                {R"("stream":true,"auspex":{"origins":1})", "auspex.origins"},
                {R"("stream":true,"auspex":1)", "auspex"},
                {R"("return_tokens":true)"},
                {R"("return_tokens":"x")", "return_tokens"},
                {R"("n_probs":0)"},
                {R"("n_probs":1)", "n_probs"},
                {R"("timings_per_token":false,"return_progress":false)"},
                {R"("timings_per_token":true)", "timings_per_token"},
                {R"("timings_per_token":1)", "timings_per_token"},
                {R"("return_progress":true)", "return_progress"},
                {R"("cache_prompt":0)", "cache_prompt"},
                {R"("tools":[])"},
                {R"("tools":[{}])", "tools"},
                {R"("tools":"x")", "tools"},
                {R"("tool_choice":"none")"},
                {R"("tool_choice":"required")", "tool_choice"},
                {R"("functions":[{}])", "functions"},
                {R"("response_format":{"type":"text"})"},
                {R"("response_format":{"type":"json_object"})", "response_format"},
                {R"("response_format":{})", "response_format.type"},
                {R"("response_format":"text")", "response_format"},
                {R"("echo":false)"},
                {R"("echo":true)"},
                {R"("echo":1)", "echo"},
                {R"("suffix":"")"},
                {R"("suffix":"x")", "suffix"},
                {R"("best_of":1)"},
                {R"("best_of":2)", "best_of"},
                {R"("model":"any")"},
                {R"("model":7)", "model"},
                {R"("user":"me")"},
                {R"("user":[])", "user"},
                {"\"user\":\"" + std::string(257, 'u') + "\"", "user"},
                {R"("no_such_field":[{"x":1}])"}},
               endpoint);
}

TEST(OpenAiRequest, LogProbabilitiesOfBothForms) {
    expect_range("logprobs", "0", "20", "-1", "21", true);
    expect({{R"("logprobs":false)"}, {R"("logprobs":3,"echo":true)", "echo"}, {R"("top_logprobs":99)"}});
    expect({{R"("logprobs":null)"},
            {R"("logprobs":false)"},
            {R"("logprobs":false,"top_logprobs":null)"},
            {R"("logprobs":true)"},
            {R"("logprobs":true,"top_logprobs":0)"},
            {R"("logprobs":true,"top_logprobs":20)"},
            {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
            {R"("logprobs":true,"top_logprobs":-1)", "top_logprobs"},
            {R"("logprobs":true,"top_logprobs":1.5)", "top_logprobs"},
            {R"("logprobs":true,"top_logprobs":true)", "top_logprobs"},
            {R"("logprobs":1)", "logprobs"},
            {R"("logprobs":"true")", "logprobs"},
            {R"("top_logprobs":0)", "top_logprobs"},
            {R"("top_logprobs":5)", "top_logprobs"},
            {R"("logprobs":false,"top_logprobs":5)", "top_logprobs"},
            {R"("logprobs":true,"echo":true)"}}, // chats have no echo
           Endpoint::chat);
    EXPECT_EQ(parse_with("").logprobs, std::nullopt);
    EXPECT_EQ(parse_with(R"("logprobs":false)").logprobs, std::nullopt);
    EXPECT_EQ(parse_with(R"("logprobs":0)").logprobs, 0u);
    EXPECT_EQ(parse_with(R"("logprobs":7)").logprobs, 7u);
    EXPECT_EQ(parse_with(R"("logprobs":true)", Endpoint::chat).logprobs, 0u);
    EXPECT_EQ(parse_with(R"("logprobs":true,"top_logprobs":7)", Endpoint::chat).logprobs, 7u);
    EXPECT_EQ(parse_with(R"("logprobs":false)", Endpoint::chat).logprobs, std::nullopt);
}

TEST(OpenAiRequest, Prompts) {
    const auto prompts = [](const std::string& prompt) {
        return parse_request(Endpoint::completions, parse_json("{\"prompt\":" + prompt + "}"), kLimits).prompts;
    };
    using Ids = std::vector<uint32_t>;
    EXPECT_EQ(prompts(R"("a")"), (std::vector<Prompt>{"a"}));
    EXPECT_EQ(prompts(R"(["a","b"])"), (std::vector<Prompt>{"a", "b"}));
    EXPECT_EQ(prompts("[0,4095]"), (std::vector<Prompt>{Ids{0, 4095}}));
    EXPECT_EQ(prompts("[[1,2],[3]]"), (std::vector<Prompt>{Ids{1, 2}, Ids{3}}));
    const auto refused = [](const std::string& prompt, const char* param) {
        SCOPED_TRACE(prompt);
        const Json error = error_of("{\"prompt\":" + prompt + "}");
        ASSERT_TRUE(error.is_object());
        EXPECT_EQ(error["param"], param) << error;
    };
    for (const char* prompt :
         {"null", "7", "{}", "[]", "true", "[4096]", "[-1]", "[1,\"a\"]", "[1,1.5]", "[1,[2]]", "[4294967297]"})
        refused(prompt, "prompt");
    for (const char* prompt :
         {"[\"a\",1]", "[\"a\",[1]]", "[[1],\"a\"]", "[[1],[]]", "[[1],[4096]]", "[[1],[[2]]]", "[[1],null]"})
        refused(prompt, "prompt[1]");
    for (const char* prompt : {"[null]", "[[]]", "[{}]", "[1.5]"})
        refused(prompt, "prompt[0]");
    std::string many = "[\"x\"";
    for (int i = 1; i < 1025; ++i)
        many += ",\"x\"";
    refused(many + "]", "prompt");
    EXPECT_EQ(error_of("{}")["param"], "prompt");
    EXPECT_TRUE(error_of("[]")["param"].is_null());
}

TEST(OpenAiRequest, Messages) {
    const auto parse = [](const std::string& messages) {
        return parse_request(Endpoint::chat, parse_json("{\"messages\":" + messages + "}"), kLimits).messages;
    };
    const auto messages = parse(
        R"([{"role":"developer","content":"S"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":"me"},
                                    {"role":"assistant","content":"","refusal":null},{"role":"system","content":"x\u0000y"}])");
    ASSERT_EQ(messages.size(), 4u);
    EXPECT_EQ(messages[0].role, "developer");
    EXPECT_EQ(messages[1].content, "a\nb");
    EXPECT_EQ(messages[2].content, "");
    EXPECT_EQ(messages[3].content, std::string("x\0y", 3));
    const auto refused = [](const std::string& list, const char* param) {
        SCOPED_TRACE(list);
        const Json error = error_of("{\"messages\":" + list + "}", Endpoint::chat);
        ASSERT_TRUE(error.is_object());
        EXPECT_EQ(error["param"], param) << error;
    };
    for (const char* list : {"null", "[]", "\"x\"", "{}", "7"})
        refused(list, "messages");
    refused("[7]", "messages[0]");
    refused(R"([{"role":"user","content":"x"},[]])", "messages[1]");
    for (const char* message :
         {R"({"content":"x"})", R"({"role":"tool","content":"x"})", R"({"role":"User","content":"x"})",
          R"({"role":null,"content":"x"})", R"({"role":["user"],"content":"x"})"})
        refused("[" + std::string(message) + "]", "messages[0].role");
    for (const char* message : {R"({"role":"user"})", R"({"role":"user","content":null})",
                                R"({"role":"user","content":7})", R"({"role":"user","content":{}})"})
        refused("[" + std::string(message) + "]", "messages[0].content");
    refused(R"([{"role":"user","content":["x"]}])", "messages[0].content[0]");
    refused(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
            "messages[0].content[0].type");
    refused(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text"}]}])",
            "messages[0].content[1].text");
    refused(R"([{"role":"assistant","content":"x","tool_calls":[]}])", "messages[0].tool_calls");
    EXPECT_EQ(error_of(R"({"prompt":"x"})", Endpoint::chat)["param"], "messages");
    const Json tool = error_of(R"({"messages":[{"role":"tool","content":"x"}]})", Endpoint::chat);
    EXPECT_EQ(tool["code"], "unsupported") << "known, and not taken yet: " << tool;
}

TEST(OpenAiRequest, DescribesChoices) {
    auspex_sequence_desc usual;
    ASSERT_EQ(auspex_sequence_desc_init(&usual, sizeof usual), AUSPEX_OK);
    usual.draft_len = 3;
    usual.lenience = 0.5f;
    const Request plain = parse_with("");
    const ChoiceDesc whole(plain, usual, 5, 0);
    EXPECT_EQ((*whole).max_tokens, 0u) << "until the context is full";
    EXPECT_EQ((*whole).draft_len, 3u);
    EXPECT_EQ((*whole).lenience, 0.5f);
    EXPECT_EQ((*whole).seed, 5u);
    EXPECT_EQ((*whole).with_logprobs, 0u);
    EXPECT_EQ((*whole).priority, 0);
    const Request request = parse_with(
        R"("temperature":0.5,"top_p":0.75,"min_p":0.25,"top_k":40,"presence_penalty":1,"frequency_penalty":-1,"repeat_penalty":1.5,
        "max_tokens":7,"stop":["a","bc"],"ignore_eos":true,"draft_len":4,"drafter":"ngram","acceptance":"coupled","logit_bias":{"8":2.5},"logprobs":4,"priority":-7)");
    const ChoiceDesc desc(request, usual, UINT64_MAX, 2);
    EXPECT_EQ((*desc).seed, 1u) << "seeds go round";
    EXPECT_EQ((*desc).temperature, 0.5f);
    EXPECT_EQ((*desc).top_p, 0.75f);
    EXPECT_EQ((*desc).min_p, 0.25f);
    EXPECT_EQ((*desc).top_k, 40u);
    EXPECT_EQ((*desc).presence_penalty, 1.0f);
    EXPECT_EQ((*desc).frequency_penalty, -1.0f);
    EXPECT_EQ((*desc).repeat_penalty, 1.5f);
    EXPECT_EQ((*desc).max_tokens, 7u);
    EXPECT_EQ((*desc).ignore_eos, 1u);
    EXPECT_EQ((*desc).draft_len, 4u);
    EXPECT_EQ((*desc).drafter, AUSPEX_DRAFTER_NGRAM);
    EXPECT_EQ((*desc).acceptance, AUSPEX_ACCEPT_COUPLED);
    ASSERT_EQ((*desc).stop_text_count, 2u);
    EXPECT_STREQ((*desc).stop_texts[1], "bc");
    ASSERT_EQ((*desc).bias_count, 1u);
    EXPECT_EQ((*desc).biases[0].bias, 2.5f);
    EXPECT_EQ((*desc).with_logprobs, 1u);
    EXPECT_EQ((*desc).n_logprobs, 4u);
    EXPECT_EQ((*desc).priority, -7);
    const Request none = parse_with(R"("max_tokens":0)");
    EXPECT_EQ((*ChoiceDesc(none, usual, 0, 0)).max_tokens, AUSPEX_HOLD) << "reads, and says nothing";
}

TEST(OpenAiJson, LimitsAndFaults) {
    const auto refused = [](const std::string& text) {
        SCOPED_TRACE(text.substr(0, 60));
        try {
            parse_json(text);
        } catch (const RequestError& error) {
            const std::string message = error.body()["error"]["message"];
            EXPECT_LT(message.size(), 200u) << message;
            EXPECT_EQ(message.find("json.exception"), std::string::npos) << message;
            return message;
        }
        ADD_FAILURE() << "it was taken";
        return std::string();
    };
    const std::string deepest = std::string(64, '[') + std::string(64, ']'), deeper = "[" + deepest + "]";
    EXPECT_NO_THROW(parse_json(deepest));
    EXPECT_NE(refused(deeper).find("more than 64"), std::string::npos);
    refused(std::string(4 << 20, '['));
    EXPECT_NO_THROW(parse_json("\"" + std::string((4 << 20) - 2, 'x') + "\""));
    EXPECT_NE(refused("\"" + std::string((4 << 20) - 1, 'x') + "\"").find("4 MiB"), std::string::npos);
    refused("\"" + std::string(1 << 20, 'x')); // what was read last is not repeated
    for (const char* text :
         {"", "{", "{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":1e999}", "{\"a\":-1e999}", "{\"a\":\"\\ud800\"}",
          "{\"a\":\"\\udc00x\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xc0\xaf\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":01}",
          "{\"a\":+1}", "{'a':1}", "{\"a\":1,}", "{\"a\":1}{}", "{\"a\":\"\t\"}", "nul"})
        refused(text);
    EXPECT_EQ(parse_json("{\"a\":1,\"a\":2}")["a"], 2) << "the last counts";
    EXPECT_EQ(parse_json("{\"a\":\"\\ud83e\\udd99\"}")["a"], "\xf0\x9f\xa6\x99");
}

TEST(OpenAiJson, FindsAStringOfBrokenText) {
    EXPECT_EQ(find_string("{\"x\":{\"id\":\"no\"},\"id\":\"yes\",\"y\":NaN}", "id"), "yes");
    EXPECT_EQ(find_string("{\"id\":\"a\",\"id\":\"b\"}", "id"), "b");
    EXPECT_EQ(find_string("{\"id\":\"\xff\"}", "id"), std::nullopt);
    EXPECT_EQ(find_string("{\"id\":7}", "id"), std::nullopt);
    EXPECT_EQ(find_string("[\"id\",\"x\"]", "id"), std::nullopt);
    EXPECT_EQ(find_string("{\"id\":[\"x\"],\"b\":\"y\"}", "id"), std::nullopt);
}

TEST(OpenAiJson, ValuesInMessagesAreShort) {
    EXPECT_EQ(found(Json(7)), "found 7");
    EXPECT_EQ(found(Json("x")), "found \"x\"");
    EXPECT_EQ(found(Json(std::string(1000, 'x'))), "found a long string");
    EXPECT_EQ(found(Json::array()), "found an empty array");
    EXPECT_EQ(found(Json::array({1})), "found an array");
    EXPECT_EQ(found(Json::object()), "found an object");
    EXPECT_EQ(found(Json()), "found null");
    EXPECT_EQ(found(Json("\xff")), "found \"\xef\xbf\xbd\"");
}

} // namespace
} // namespace auspex::openai::request_test
