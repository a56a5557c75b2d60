// auspex batch: every line of the input has one line of results, equal to what auspex run says, however often and at
// whatever moment the command was stopped. Hostile lines are answered with what is wrong, and end nothing.
#include "cli/cli_process.h"
#include "model/file_fixtures.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace auspex::test {

namespace {

constexpr int kAgain = 75;

std::string request(const std::string& custom_id, const Json& body, const char* url = "/v1/completions") {
    return Json{{"custom_id", custom_id}, {"method", "POST"}, {"url", url}, {"body", body}}.dump() + "\n";
}
std::string chat_request(const std::string& custom_id, const Json& body) {
    return request(custom_id, body, "/v1/chat/completions");
}

std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Json> lines_of(const std::string& path) {
    std::vector<Json> lines;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(Json::parse(line, nullptr, false));
        EXPECT_FALSE(lines.back().is_discarded()) << line;
    }
    return lines;
}

// By custom_id, each of them once.
std::map<std::string, Json> results_of(const std::string& path) {
    std::map<std::string, Json> results;
    for (const Json& line : lines_of(path)) {
        EXPECT_TRUE(line["error"].is_null());
        EXPECT_TRUE(results.emplace(line["custom_id"].get<std::string>(), line["response"]).second)
            << line["custom_id"] << " came twice";
    }
    return results;
}

// What a request says, without what differs between two runs of it.
std::map<std::string, Json> texts_of(const std::string& path) {
    std::map<std::string, Json> texts;
    for (const auto& [id, response] : results_of(path)) {
        EXPECT_EQ(response["status_code"], 200) << id << " " << response;
        texts[id] = response["body"]["choices"];
    }
    return texts;
}

struct Files {
    TempFolder folder;
    std::string in = folder.file("in.jsonl"), out = folder.file("out.jsonl");

    explicit Files(const std::string& input) { folder.write("in.jsonl", input); }
    std::vector<std::string> arguments(std::vector<std::string> more = {}) const {
        std::vector<std::string> all = {"batch", "-i", in, "-o", out, "-c", "512"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    CliResult run(const std::vector<std::string>& more = {}, int exit_code = 0) const {
        const CliResult result = run_cli(arguments(more));
        EXPECT_EQ(result.exit_code, exit_code) << result.err;
        EXPECT_EQ(result.out, "");
        return result;
    }
};

constexpr int kMany = 40;
std::string many_requests(int n_tokens = 24) {
    std::string lines;
    const char* names[] = {"Ruby", "Hugo", "Maya", "Otto", "Nina"};
    for (int i = 0; i < kMany; ++i)
        lines += request("request " + std::to_string(i),
                         {{"prompt", "Once upon a time there was a fox named " + std::string(names[i % 5]) + "."},
                          {"max_tokens", n_tokens + i % 7},
                          {"temperature", i % 2},
                          {"acceptance", "coupled"},
                          {"seed", i}});
    return lines;
}

// What they give one after the other.
const std::map<std::string, Json>& many_texts() {
    static const std::map<std::string, Json> texts = [] {
        const Files files(many_requests());
        files.run({"--parallel", "1"});
        return texts_of(files.out);
    }();
    return texts;
}

// Sends signals once the file of results has this many lines.
void signal_at(const CliTerminalSession& session, const std::string& path, std::ptrdiff_t n_lines, int signal,
               int n_signals = 1) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
        const std::string text = text_of(path);
        if (std::count(text.begin(), text.end(), '\n') >= n_lines) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (int i = 0; i < n_signals; ++i) {
        kill(session.process(), signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

} // namespace

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

TEST(CliBatch, FortyAtOnceAreFortyOneByOne) {
    const Files files(many_requests());
    const CliResult result = files.run();
    EXPECT_EQ(result.err.find("done 40, failed 0, skipped 0; "), 0u)
        << "quiet where there is no terminal: " << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "one line";
    EXPECT_EQ(texts_of(files.out), many_texts());
    EXPECT_EQ(many_texts().size(), static_cast<size_t>(kMany));
    // Nothing is left: no model is asked, or even there.
    const std::string before = text_of(files.out);
    const CliResult again = files.run({"-m", "/no/such/model"});
    EXPECT_EQ(again.err.find("done 0, failed 0, skipped 40; "), 0u) << again.err;
    EXPECT_EQ(text_of(files.out), before);
}

TEST(CliBatch, GoesOnAfterAKillAndATornLine) {
    const Files files(many_requests());
    for (const int n_lines : {3, 17}) {
        CliTerminalSession session(files.arguments({"--parallel", "4"}));
        signal_at(session, files.out, n_lines, SIGKILL);
        EXPECT_EQ(session.exit_code(), 128 + SIGKILL);
        const std::string left = text_of(files.out);
        const std::string whole = left.substr(0, left.rfind('\n') + 1);
        const auto n_whole = std::count(whole.begin(), whole.end(), '\n');
        EXPECT_GE(n_whole, n_lines);
        EXPECT_LT(n_whole, kMany);
        files.folder.write("out.jsonl",
                           whole + (n_lines == 3
                                        ? "{\"id\":\"batch_req_000000000039\",\"custom_id\":\"request 38\",\"respo"
                                        : "{\"i"));
    }
    files.run();
    EXPECT_EQ(texts_of(files.out), many_texts());
}

TEST(CliBatch, FinishesWhatRunsAtASignalAndGoesOn) {
    for (const int signal : {SIGTERM, SIGINT}) {
        const Files files(many_requests());
        {
            CliTerminalSession session(files.arguments({"--parallel", "2"}));
            signal_at(session, files.out, 4, signal);
            EXPECT_EQ(session.exit_code(), kAgain);
            EXPECT_NE(session.shown().find("lines are left"), std::string::npos) << session.shown();
        }
        EXPECT_TRUE(text_of(files.out).ends_with("\n"));
        const size_t n_done = results_of(files.out).size();
        EXPECT_GE(n_done, 4u);
        EXPECT_LT(n_done, static_cast<size_t>(kMany));
        const CliResult rest = files.run();
        EXPECT_EQ(rest.err.find("done " + std::to_string(kMany - static_cast<int>(n_done)) + ", failed 0, skipped " +
                                std::to_string(n_done)),
                  0u)
            << rest.err;
        EXPECT_EQ(texts_of(files.out), many_texts());
    }
}

TEST(CliBatch, ASecondSignalEndsAtOnce) {
    std::string lines = request("short", {{"prompt", "Hi"}, {"max_tokens", 1}});
    for (int i = 0; i < 20; ++i)
        lines += request(std::to_string(i), {{"prompt", "Once"}, {"ignore_eos", true}});
    const Files files(lines);
    CliTerminalSession session({"batch", "-i", files.in, "-o", files.out});
    signal_at(session, files.out, 1, SIGTERM, 2);
    EXPECT_EQ(session.exit_code(), 128 + SIGTERM);
    EXPECT_LT(results_of(files.out).size(), 20u);
}

TEST(CliBatch, ASignalWhenNothingIsLeftIsNone) {
    const Files files(request("one", {{"prompt", "Once"}, {"max_tokens", 400}, {"ignore_eos", true}}) +
                      request("two", {{"prompt", "Twice"}, {"max_tokens", 1}}) + "\n\n");
    CliTerminalSession session(files.arguments());
    signal_at(session, files.out, 1, SIGTERM); // both have begun
    EXPECT_EQ(session.exit_code(), 0);
    EXPECT_EQ(texts_of(files.out).size(), 2u);
}

TEST(CliBatch, PartsCoverAllLinesOnce) {
    std::string lines = "\n";
    for (int i = 0; i < 10; ++i)
        lines += (i == 4 ? "\r\n  \n" : "") + request(std::to_string(i), {{"prompt", {1, 5, 6}}, {"max_tokens", 2}});
    lines += request("3", {{"prompt", "again"}}); // of another part than the first
    lines.pop_back();                             // a last line needs no end
    const Files files(lines);
    std::map<std::string, int> seen;
    int n_repeated = 0;
    for (const char* part : {"1/3", "2/3", "3/3"}) {
        const std::string out = files.folder.file("out." + std::string(part, 1));
        const CliResult result = run_cli({"batch", "-i", files.in, "-o", out, "-c", "64", "--part", part});
        EXPECT_EQ(result.exit_code, 0) << result.err;
        for (const Json& line : lines_of(out)) {
            if (line["response"]["status_code"] == 200)
                ++seen[line["custom_id"]];
            else {
                ++n_repeated;
                EXPECT_EQ(line["response"]["body"]["error"]["code"], "duplicate_custom_id");
                EXPECT_EQ(line["custom_id"], "3");
            }
            EXPECT_EQ((std::stoi(line["id"].get<std::string>().substr(10)) - 1) % 3, part[0] - '1') << line["id"];
        }
    }
    EXPECT_EQ(n_repeated, 1);
    ASSERT_EQ(seen.size(), 10u);
    for (const auto& [id, n] : seen)
        EXPECT_EQ(n, 1) << id;
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
        {body(R"("logprobs":1)"), "logprobs"},
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

TEST(CliBatch, RepeatedIdsAreRefusedOnceAndForAll) {
    const std::string one = request("a", {{"prompt", "Once"}, {"max_tokens", 200}, {"ignore_eos", true}}),
                      other = request("b", {{"prompt", "Once"}, {"max_tokens", 2}});
    const Files files(one + one + other + "\n" + one);
    files.run();
    const std::string all = text_of(files.out);
    auto lines = lines_of(files.out);
    ASSERT_EQ(lines.size(), 4u);
    std::map<std::string, int> n_of_status;
    for (const Json& line : lines)
        ++n_of_status[line["custom_id"].get<std::string>() + line["response"]["status_code"].dump()];
    EXPECT_EQ(n_of_status, (std::map<std::string, int>{{"a200", 1}, {"a400", 2}, {"b200", 1}}));
    EXPECT_EQ(lines.back()["custom_id"], "a") << "refusals come at once";
    EXPECT_EQ(lines.back()["response"]["status_code"], 200);
    // A crash before the first had its answer: the refusal of the second does not stand for it.
    files.folder.write("out.jsonl", all.substr(0, all.rfind('\n', all.size() - 2) + 1));
    const CliResult rest = files.run();
    EXPECT_EQ(rest.err.find("done 1, failed 0, skipped 3; "), 0u) << rest.err;
    EXPECT_EQ(lines_of(files.out).size(), 4u);
    EXPECT_EQ(lines_of(files.out).back()["custom_id"], "a");
}

TEST(CliBatch, OneProcessHasTheFileOfResults) {
    const Files files(request("a", {{"prompt", "Once"}, {"max_tokens", 1}}));
    const int held = open(files.out.c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(flock(held, LOCK_EX), 0);
    expect_error(files.arguments(), kFile, "another process");
    EXPECT_EQ(text_of(files.out), "");
    close(held);
    files.run();
    EXPECT_EQ(results_of(files.out).size(), 1u);
}

TEST(CliBatch, FilesOfOthersAreLeftAlone) {
    const Files files(request("a", {{"prompt", "Once"}, {"max_tokens", 1}}));
    for (const std::string& foreign : {std::string("some text\n"), std::string("no line end"), std::string("{}\n"),
                                       text_of(files.in), std::string("\n")}) {
        files.folder.write("out.jsonl", foreign);
        expect_error(files.arguments(), kFile, "line 1 is no result");
        EXPECT_EQ(text_of(files.out), foreign);
    }
    expect_error({"batch", "-i", files.in, "-o", files.in}, kUsage, "the same file");
    expect_error({"batch", "-i", files.in}, kUsage, "-o: expected");
    expect_error({"batch", "-o", files.out}, kUsage, "-i: expected");
    expect_error({"batch", "-i", files.folder.file("none"), "-o", files.folder.file("new")}, kFile, "-i ");
    EXPECT_FALSE(std::filesystem::exists(files.folder.file("new"))) << "nothing was made of a mistyped name";
    expect_error({"batch", "-i", files.folder.path(), "-o", files.folder.file("new")}, kFile, "found a folder");
    expect_error({"batch", "-i", files.in, "-o", files.folder.path()}, kFile, "-o ");
    for (const char* part : {"0/3", "4/3", "1", "1/0", "/", "a/b", "-1/3", "1/3/5"})
        expect_error({"batch", "-i", files.in, "-o", files.folder.file("new"), "--part", part}, kUsage, "--part");
    for (const char* parallel : {"0", "257", "x"})
        expect_error({"batch", "-i", files.in, "-o", files.folder.file("new"), "--parallel", parallel}, kUsage,
                     "--parallel");
}

TEST(CliBatch, AFullDiskLeavesWholeLines) {
    std::string lines;
    for (int i = 0; i < 40; ++i)
        lines += request("request " + std::to_string(i), {{"prompt", "Once"}, {"max_tokens", 16}, {"n", 4}});
    const TempFolder disk;
    const Files files(lines);
    const std::string out = disk.file("out.jsonl");
    // A folder in which nothing may be mounted keeps files below 16 KiB.
    const std::string no_folder = files.folder.file("none");
    const CliResult result =
        run_cli({"batch", "-i", files.in, "-o", out, "-c", "64"}, {.full_disk = no_folder.c_str()});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("-o " + out), std::string::npos) << result.err;
    EXPECT_TRUE(text_of(out).ends_with("}\n"));
    const size_t n_done = results_of(out).size();
    EXPECT_GT(n_done, 0u);
    EXPECT_LT(n_done, 40u);
    EXPECT_EQ(run_cli({"batch", "-i", files.in, "-o", out, "-c", "64"}).exit_code, 0);
    EXPECT_EQ(texts_of(out).size(), 40u);
}

TEST(CliBatch, ShowsHowFarItIsOnATerminal) {
    const Files files(many_requests(60));
    const CliResult result = run_cli_in_terminal(files.arguments(), {.environment = {{"TERM", "xterm"}}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.out.find("answering ["), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("done 40, failed 0, skipped 0; "), std::string::npos) << result.out;
}

} // namespace auspex::test
