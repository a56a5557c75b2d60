// auspex batch: results are what auspex run says, also of conversations and of several choices. Hostile lines are
// answered with what is wrong, and end nothing.
#include "cli/batch_files.h"

#include <algorithm>

namespace auspex::test::batch_answers_test {

TEST(CliBatch, ResultsAreThoseOfRun) {
    const std::string story = "Once upon a time there was a curious fox named Ruby.";
    struct Case {
        Json body;
        std::vector<std::string> flags;
    };
    const std::vector<Case> cases = {
        {{{"max_tokens", 30}}, {"-n", "30"}},
        {{{"max_tokens", 30}, {"temperature", 0.8}, {"seed", 7}, {"acceptance", "coupled"}},
         {"-n", "30", "--temp", "0.8", "-s", "7", "--acceptance", "coupled"}},
        {{{"n_predict", 30},
          {"temperature", 1},
          {"seed", 11},
          {"draft_len", 3},
          {"top_k", 50},
          {"top_p", 0.9},
          {"min_p", 0.01}},
         {"-n", "30", "--temp", "1", "-s", "11", "--draft-len", "3", "--top-k", "50", "--top-p", "0.9", "--min-p",
          "0.01"}},
        {{{"max_completion_tokens", 40},
          {"repeat_penalty", 1.3},
          {"presence_penalty", 0.5},
          {"frequency_penalty", 0.25},
          {"drafter", "none"}},
         {"-n", "40", "--repeat-penalty", "1.3", "--presence-penalty", "0.5", "--frequency-penalty", "0.25",
          "--drafter", "none"}},
        {{{"max_tokens", 300}, {"stop", {"Ruby", "never"}}}, {"-n", "300", "--stop", "Ruby", "--stop", "never"}},
        {{{"max_tokens", 30}, {"logit_bias", {{"13", -100}, {"4040", 5}}}},
         {"-n", "30", "--ban", "13", "--logit-bias", "4040+5"}},
        {{{"max_tokens", 300}, {"ignore_eos", true}}, {"-n", "300", "--no-stop"}},
        {{{"max_tokens", 300}}, {"-n", "300"}}, // to its end token
        {{}, {"-n", "-1"}},                     // what is left of the context
    };
    std::string lines;
    for (size_t i = 0; i < cases.size(); ++i) {
        Json body = cases[i].body.is_null() ? Json::object() : cases[i].body;
        body["prompt"] = story;
        lines += request(std::to_string(i), body);
    }
    lines +=
        chat_request("chat", {{"messages", {{{"role", "user"}, {"content", "Tell me a story."}}}}, {"max_tokens", 30}});
    const Files files(lines);
    files.run();
    auto results = results_of(files.out);
    ASSERT_EQ(results.size(), cases.size() + 1);
    const auto expect = [&](const std::string& id, std::vector<std::string> flags) {
        flags.insert(flags.begin(), {"run", "-c", "512"});
        const Json run = run_cli_json(flags);
        const Json& completion = run["completions"][0];
        ASSERT_EQ(results[id]["status_code"], 200) << results[id];
        const Json& body = results[id]["body"];
        const Json& choice = body["choices"][0];
        EXPECT_EQ(id == "chat" ? choice["message"]["content"] : choice["text"], completion["text"]);
        const bool is_length = completion["stop_reason"] == "length" || completion["stop_reason"] == "context";
        EXPECT_EQ(choice["finish_reason"], is_length ? "length" : "stop") << completion["stop_reason"];
        EXPECT_EQ(body["usage"]["prompt_tokens"], run["prompt_tokens"].size());
        EXPECT_EQ(body["usage"]["completion_tokens"], completion["tokens"].size());
        EXPECT_EQ(body["timings"]["predicted_n"], completion["tokens"].size());
        EXPECT_EQ(body["model"], "target");
        if (std::find(flags.begin(), flags.end(), "-s") != flags.end()) {
            EXPECT_EQ(body["auspex"]["seed"], run["seed"]);
        }
    };
    for (size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(i);
        std::vector<std::string> flags = cases[i].flags;
        flags.insert(flags.end(), {"-p", story});
        expect(std::to_string(i), flags);
    }
    expect("chat", {"--chat", "-p", "Tell me a story.", "-n", "30"});
}

TEST(CliBatch, HostileLinesAreAnsweredAndEndNothing) {
    struct Case {
        std::string line;
        const char* param; // "": null
    };
    const auto body = [](const std::string& fields) {
        return R"({"custom_id":"ID","method":"POST","url":"/v1/completions","body":{"prompt":"Hi",)" + fields + "}}";
    };
    const auto chat = [](const std::string& fields) {
        return R"({"custom_id":"ID","method":"POST","url":"/v1/chat/completions","body":{)" + fields + "}}";
    };
    std::vector<Case> cases = {
        {"not JSON", ""},
        {"[]", ""},
        {"null", ""},
        {"{", ""},
        {"{}", "custom_id"},
        {std::string("\0\0", 2), ""},
        {"\xff\xfe", ""},
        {R"({"custom_id":"ID"})", "method"},
        {R"({"custom_id":"ID","method":"PUT","url":"/v1/completions","body":{}})", "method"},
        {R"({"custom_id":"ID","method":"POST","url":"/v1/embeddings","body":{}})", "url"},
        {R"({"custom_id":"ID","method":"POST","url":"/v1/completions","body":[]})", "body"},
        {R"({"custom_id":7,"method":"POST","url":"/v1/completions","body":{}})", "custom_id"},
        {R"({"custom_id":"","method":"POST","url":"/v1/completions","body":{}})", "custom_id"},
        {R"({"custom_id":"ID","method":"POST","url":"/v1/completions","body":{}})", "prompt"},
        {std::string(100000, '['), ""},
        {std::string(5 << 20, ' ') + "x", ""},
        {"{\"custom_id\":\"ID\",\"x\":\"" + std::string(5 << 20, 'x') + "\"}", ""},
        {"{\"custom_id\":\"ID\",\"x\":" + std::string(64, '[') + std::string(64, ']') + "}", ""},
        {body(R"("temperature":NaN)"), ""},
        {body(R"("temperature":1e999)"), ""},
        {body(R"("x":"\ud800")"), ""},
        {body("\"x\":\"\xc3\x28\""), ""},
        {body("\"x\":\"\xed\xa0\x80\""), ""},
        {body(R"("temperature":-0.1)"), "temperature"},
        {body(R"("temperature":5.1)"), "temperature"},
        {body(R"("temperature":"hot")"), "temperature"},
        {body(R"("top_p":0)"), "top_p"},
        {body(R"("top_k":4097)"), "top_k"},
        {body(R"("min_p":-1)"), "min_p"},
        {body(R"("n":0)"), "n"},
        {body(R"("n":17)"), "n"},
        {body(R"("max_tokens":-1)"), "max_tokens"},
        {body(R"("max_tokens":513)"), "max_tokens"},
        {body(R"("max_tokens":18446744073709551616)"), "max_tokens"},
        {body(R"("seed":9223372036854775808)"), "seed"},
        {body(R"("stop":"")"), "stop"},
        {body(R"("stop":[1])"), "stop"},
        {body(R"("logit_bias":{"4096":1})"), "logit_bias"},
        {body(R"("presence_penalty":2.1)"), "presence_penalty"},
        {body(R"("repeat_penalty":0)"), "repeat_penalty"},
        {body(R"("draft_len":9)"), "draft_len"},
        {body(R"("drafter":"self")"), "drafter"},
        {body(R"("stream":true)"), "stream"},
        {body(R"("tools":[{}])"), "tools"},
        {body(R"("logprobs":21)"), "logprobs"},
        {body(R"("logprobs":true)"), "logprobs"},
        {body(R"("logprobs":1,"echo":true)"), "echo"},
        {body(R"("priority":11)"), "priority"},
        {body(R"("response_format":{"type":"json_object"})"), "response_format"},
        {body(R"("prompt":[4096])"), "prompt"},
        {body(R"("prompt":[[1],[]])"), "prompt[1]"},
        {body(R"("prompt":[)" + std::string("1,1,1,1,1,1,1,1,") + std::string(1200, ' ') + "1" +
              [] {
                  std::string ids;
                  for (int i = 0; i < 600; ++i)
                      ids += ",1";
                  return ids;
              }() +
              "]"),
         "prompt"},
        {chat(R"("messages":[])"), "messages"},
        {chat(R"("messages":[{"role":"tool","content":"x"}])"), "messages[0].role"},
        {chat(R"("messages":[{"role":"user"}])"), "messages[0].content"},
        {chat(R"("messages":[{"role":"user","content":[{"type":"image_url"}]}])"), "messages[0].content[0].type"},
        {chat(R"("prompt":"x")"), "messages"},
        {chat(R"("messages":[{"role":"user","content":"x"}],"top_logprobs":1)"), "top_logprobs"},
    };
    std::string lines;
    for (size_t i = 0; i < cases.size(); ++i) {
        std::string& line = cases[i].line;
        if (const size_t at = line.find("\"ID\""); at != std::string::npos)
            line.replace(at, 4, "\"" + std::to_string(i) + "\"");
        lines += line + "\n";
        if (i % 10 == 0) lines += request("good " + std::to_string(i), {{"prompt", "Once"}, {"max_tokens", 2}});
    }
    const Files files(lines);
    const CliResult result = files.run();
    const size_t n_good = (cases.size() + 9) / 10;
    EXPECT_EQ(result.err.find("done " + std::to_string(n_good) + ", failed " + std::to_string(cases.size()) +
                              ", skipped 0; "),
              0u)
        << result.err;
    std::map<uint64_t, Json> by_line;
    for (const Json& line : lines_of(files.out))
        EXPECT_TRUE(by_line.emplace(std::stoull(line["id"].get<std::string>().substr(10)), line).second);
    ASSERT_EQ(by_line.size(), cases.size() + n_good);
    uint64_t number = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(cases[i].line.substr(0, 200));
        const Json& line = by_line[++number];
        EXPECT_EQ(line["response"]["status_code"], 400);
        const Json& error = line["response"]["body"]["error"];
        EXPECT_EQ(keys_of(error), (std::vector<std::string>{"message", "type", "param", "code"}));
        EXPECT_EQ(error["type"], "invalid_request_error");
        EXPECT_EQ(error["param"].is_null() ? "" : error["param"].get<std::string>(), cases[i].param) << error;
        EXPECT_LT(error["message"].get<std::string>().size(), 300u);
        if (cases[i].line.find("\"custom_id\":\"" + std::to_string(i) + "\"") != std::string::npos) {
            EXPECT_EQ(line["custom_id"], std::to_string(i)) << "named although it is refused";
        }
        if (i % 10 == 0) ++number;
    }
    // Refused lines are not refused again.
    const std::string before = text_of(files.out);
    files.run();
    EXPECT_EQ(text_of(files.out), before);
}

TEST(CliBatch, SeveralChoicesAreThoseOfSamples) {
    const std::string story = "One day a fox";
    const Files files(
        request("rejection",
                {{"prompt", story}, {"n", 5}, {"max_tokens", 20}, {"temperature", 1}, {"seed", 7}, {"draft_len", 3}}) +
        request("coupled", {{"prompt", story},
                            {"n", 16},
                            {"max_tokens", 12},
                            {"temperature", 1},
                            {"seed", 3},
                            {"acceptance", "coupled"}}) +
        request("prompts", {{"prompt", {story, "Hugo the owl"}},
                            {"n", 2},
                            {"max_tokens", 10},
                            {"temperature", 1},
                            {"seed", 3},
                            {"acceptance", "coupled"}}) +
        request("none", {{"prompt", story}, {"n", 3}, {"max_tokens", 0}}) +
        request("one of none", {{"prompt", story}, {"max_tokens", 0}}));
    files.run();
    auto results = results_of(files.out);
    ASSERT_EQ(results.size(), 5u);
    const auto expect = [&](const std::string& id, size_t first, const std::vector<std::string>& flags) {
        std::vector<std::string> all = {"run", "-c", "512", "--temp", "1"};
        all.insert(all.end(), flags.begin(), flags.end());
        const Json run = run_cli_json(all);
        const Json& choices = results[id]["body"]["choices"];
        for (size_t i = 0; i < run["completions"].size(); ++i) {
            EXPECT_EQ(choices[first + i]["index"], first + i);
            EXPECT_EQ(choices[first + i]["text"], run["completions"][i]["text"]) << id << " " << i;
        }
        return run;
    };
    const Json run = expect("rejection", 0, {"-p", story, "--samples", "5", "-n", "20", "-s", "7", "--draft-len", "3"});
    EXPECT_EQ(results["rejection"]["body"]["usage"]["prompt_tokens"], run["prompt_tokens"].size())
        << "the prompt counts once";
    EXPECT_EQ(results["rejection"]["body"]["usage"]["completion_tokens"], run["timings"]["predicted_n"]);
    expect("coupled", 0, {"-p", story, "--samples", "16", "-n", "12", "-s", "3", "--acceptance", "coupled"});
    expect("prompts", 0, {"-p", story, "--samples", "2", "-n", "10", "-s", "3", "--acceptance", "coupled"});
    expect("prompts", 2, {"-p", "Hugo the owl", "--samples", "2", "-n", "10", "-s", "5", "--acceptance", "coupled"});
    EXPECT_EQ(results["prompts"]["body"]["choices"].size(), 4u);
    for (const char* id : {"none", "one of none"}) {
        const Json& body = results[id]["body"];
        EXPECT_EQ(body["choices"].size(), id[0] == 'n' ? 3u : 1u);
        EXPECT_EQ(body["choices"][0]["text"], "");
        EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
        EXPECT_EQ(body["usage"]["completion_tokens"], 0);
        EXPECT_EQ(body["usage"]["prompt_tokens"], run["prompt_tokens"].size());
    }
}

TEST(CliBatch, ConversationsHaveTheTokensOfTheirTraining) {
    std::ifstream in(AUSPEX_TEST_DATA "/goldens.json");
    const Json goldens = Json::parse(in);
    std::string lines;
    std::map<std::string, Json> expected;
    for (size_t i = 0; i < goldens.size(); ++i) {
        if (!goldens[i].contains("conversation")) continue;
        Json messages = Json::array();
        for (const Json& turn : goldens[i]["conversation"])
            for (size_t k = 0; k < 2; ++k)
                if (turn[k].is_string())
                    messages.push_back({{"role", k == 0 ? "user" : "assistant"}, {"content", turn[k]}});
        const std::string id = std::to_string(i);
        lines += chat_request("chat " + id, {{"messages", messages}, {"max_tokens", 16}});
        lines += request("ids " + id, {{"prompt", goldens[i]["ids"]}, {"max_tokens", 16}});
        expected[id] = goldens[i]["ids"];
    }
    const Files files(lines);
    files.run();
    auto results = results_of(files.out);
    ASSERT_EQ(expected.size(), 6u);
    for (const auto& [id, ids] : expected) {
        EXPECT_EQ(results["chat " + id]["body"]["usage"]["prompt_tokens"], ids.size());
        EXPECT_EQ(results["chat " + id]["body"]["choices"][0]["message"]["content"],
                  results["ids " + id]["body"]["choices"][0]["text"]);
        EXPECT_EQ(results["chat " + id]["body"]["object"], "chat.completion");
    }
}

TEST(CliBatch, TheContextEndsAnswersAndRefusesPrompts) {
    const Files files(
        request("full", {{"prompt", "Once"}, {"ignore_eos", true}}) +
        request("long", {{"prompt", std::string(400, 'x')}}) +
        chat_request("long chat", {{"messages", {{{"role", "user"}, {"content", std::string(400, 'x')}}}}}));
    files.run({"-c", "64"});
    auto results = results_of(files.out);
    EXPECT_EQ(results["full"]["body"]["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(results["full"]["body"]["usage"]["total_tokens"], 64);
    for (const char* id : {"long", "long chat"}) {
        const Json& error = results[id]["body"]["error"];
        EXPECT_EQ(results[id]["status_code"], 400);
        EXPECT_EQ(error["code"], "context_length_exceeded");
        EXPECT_NE(error["message"].get<std::string>().find("64"), std::string::npos) << error;
        EXPECT_EQ(error["param"], id == std::string("long") ? "prompt" : "messages");
    }
}

} // namespace auspex::test::batch_answers_test
