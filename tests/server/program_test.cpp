// The program itself, with the bundled pair on whatever device there is: its answers are those of plain decoding, however
// they are asked for and whoever else asks.
#include "program.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace auspex::test::program_test {
namespace {

namespace fs = std::filesystem;

const std::string kStory = "Once upon a time there was a curious fox named Ruby.";

// One server for all tests of it.
class ServeProgram : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        program_ = std::make_unique<Program>(std::vector<std::string>{"serve", "--port", "0", "-c", "512", "--slots", "8", "--chat-template", "llama2"});
        port_ = program_->port();
    }
    static void TearDownTestSuite() { program_.reset(); }
    void SetUp() override { ASSERT_NE(port_, 0) << program_->shown(); }

    static std::string story(const std::string& members, const std::string& prompt = kStory) {
        return "{" + members + ",\"prompt\":\"" + prompt + "\"}";
    }
    static Json whole(const std::string& path, const std::string& body) {
        const Reply reply = ask(port_, post_json(path, body));
        EXPECT_EQ(reply.status, 200) << reply.body;
        return json_of(reply);
    }
    static Events stream(const std::string& path, const std::string& body) {
        const Reply reply = ask(port_, post_json(path, body));
        EXPECT_EQ(reply.status, 200) << reply.body;
        return Events(reply.body);
    }
    static std::string text_of(const Json& answer) { return answer["choices"][0]["text"].get<std::string>(); }
    static double metric(const std::string& sample) {
        const std::string text = ask(port_, get("/metrics")).body;
        const size_t at = text.find("\n" + sample + " ");
        return at == std::string::npos ? -1 : std::stod(text.substr(at + sample.size() + 2));
    }

    static inline std::unique_ptr<Program> program_;
    static inline uint16_t port_ = 0;
};

TEST_F(ServeProgram, SaysWhereItIs) {
    EXPECT_NE(program_->shown().find("answers as bundled-pair"), std::string::npos) << program_->shown();
    EXPECT_NE(program_->shown().find("8 answers at once"), std::string::npos);
    EXPECT_EQ(json_of(ask(port_, get("/v1/models")))["data"][0]["id"], "bundled-pair");
    const Json params = json_of(ask(port_, get("/props")))["default_generation_settings"]["params"];
    EXPECT_EQ((Json{params["draft_len"], params["drafter"], params["acceptance"]}), (Json{"auto", "auto", "rejection"}));
}

TEST_F(ServeProgram, TextsAreThoseOfPlainDecoding) {
    Program run({"run", "--chat", "--chat-template", "llama2", "-c", "512", "-p", "Tell me a story.", "-n", "40", "--no-draft", "--json"});
    ASSERT_EQ(run.exit_code(), 0) << run.shown();
    const std::string reference = Json::parse(run.shown())["completions"][0]["text"];
    EXPECT_GT(reference.size(), 40u);
    for (const char* draft_len : {"0", "3", "\"auto\""}) {
        const std::string ask_for = R"({"messages":[{"role":"user","content":"Tell me a story."}],"max_tokens":40,"draft_len":)" + std::string(draft_len);
        const Json answer = whole("/v1/chat/completions", ask_for + "}");
        EXPECT_EQ(answer["choices"][0]["message"]["content"], reference) << draft_len;
        EXPECT_EQ(answer["usage"]["completion_tokens"], 40);
        EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
        if (draft_len[0] != '"') {
            EXPECT_EQ(answer["timings"].contains("draft_n"), draft_len[0] == '3') << answer["timings"];
        }
        const Events events = stream("/v1/chat/completions", ask_for + R"(,"stream":true,"auspex":{"origins":true}})");
        EXPECT_EQ(events.text(), reference) << draft_len;
        EXPECT_TRUE(events.is_done);
        if (draft_len[0] != '3') continue;
        EXPECT_LT(events.data.size(), 35u) << "an event has several tokens";
        size_t accepted = 0, n = 0, bytes = 0;
        for (const Json& chunk : events.data)
            for (const Json& token : chunk.value("auspex", Json::object()).value("tokens", Json::array())) {
                accepted += token[1] == 1 ? 1 : 0;
                bytes += token[2].get<size_t>();
                ++n;
            }
        EXPECT_EQ(n, 40u);
        EXPECT_EQ(bytes, reference.size());
        EXPECT_EQ(events.data.back()["timings"]["draft_n_accepted"], accepted);
    }
    // As a conversation is laid out, so it is read.
    const std::string layout = json_of(ask(port_, post_json("/apply-template", R"({"messages":[{"role":"user","content":"Tell me a story."}]})")))["prompt"];
    EXPECT_EQ(layout, "<s>[INST] Tell me a story. [/INST]");
}

TEST_F(ServeProgram, LogprobsDoNotDependOnDrafts) {
    const auto logprobs = [&](const std::string& draft_len, bool is_stream) {
        const std::string members = R"("max_tokens":24,"logprobs":3,"draft_len":)" + draft_len;
        if (!is_stream) return whole("/v1/completions", story(members))["choices"][0]["logprobs"];
        Json all;
        for (const Json& chunk : stream("/v1/completions", story(members + R"(,"stream":true)")).data) {
            const Json& part = chunk["choices"][0]["logprobs"];
            for (const auto& [name, values] : part.items())
                for (const Json& value : values)
                    all[name].push_back(value);
        }
        return all;
    };
    const Json plain = logprobs("0", false);
    EXPECT_EQ(plain["token_logprobs"].size(), 24u);
    EXPECT_LT(plain["token_logprobs"][0].get<double>(), 0);
    EXPECT_EQ(logprobs("3", false).dump(), plain.dump()); // every digit
    EXPECT_EQ(logprobs("3", true).dump(), plain.dump());
}

TEST_F(ServeProgram, TheStopThatIsCompleteFirstWins) {
    const std::string text = text_of(whole("/v1/completions", story(R"("max_tokens":48,"draft_len":0)")));
    ASSERT_GT(text.size(), 60u);
    // Of texts that overlap: the one that begins later ends first, a token before the others.
    const size_t at = text.find(' ', 40);
    ASSERT_NE(at, std::string::npos);
    const std::string longer = text.substr(at, 16), inner = text.substr(at + 2, 2), begin = text.substr(at + 1, 14);
    const size_t cut = text.find(inner); // the others have it inside
    ASSERT_EQ(text.find(begin) + 1, cut);
    const Json stops = {longer, inner, begin};
    for (const char* draft_len : {"0", "2", "5"})
        for (const bool is_stream : {false, true}) {
            const std::string members = R"("max_tokens":48,"draft_len":)" + std::string(draft_len) + ",\"stop\":" + stops.dump();
            if (is_stream) {
                const Events events = stream("/v1/completions", story(members + R"(,"stream":true)"));
                EXPECT_EQ(events.text(), text.substr(0, cut)) << draft_len;
                EXPECT_EQ(events.data.back()["choices"][0]["finish_reason"], "stop");
            } else {
                const Json answer = whole("/v1/completions", story(members));
                EXPECT_EQ(text_of(answer), text.substr(0, cut)) << draft_len << stops;
                EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
            }
        }
}

// With every number of drafts, whole and streamed, an answer that a stop has cut is the same: text, ids, log-probabilities, counts.
TEST_F(ServeProgram, WhatAStopHasCutAgrees) {
    const std::string text = text_of(whole("/v1/completions", story(R"("max_tokens":48,"draft_len":0)")));
    const std::string asked = R"("max_tokens":48,"return_tokens":true,"logprobs":1,"stop":)" + Json(std::vector<std::string>{text.substr(text.find(' ', 30) + 1, 3), "abc"}).dump();
    const Json plain = whole("/v1/completions", story(asked + R"(,"draft_len":0)"));
    const auto n = plain["usage"]["completion_tokens"].get<size_t>();
    EXPECT_EQ(plain["choices"][0]["token_ids"].size(), n);
    EXPECT_GT(n, 6u);
    EXPECT_LT(n, 48u);
    const uint32_t most = json_of(ask(port_, get("/props")))["max_draft_len"];
    EXPECT_GE(most, 4u);
    for (uint32_t k = 0; k <= std::min(most, 8u); ++k) {
        const std::string members = asked + ",\"draft_len\":" + std::to_string(k);
        const auto expect_counts = [&](const Json& timings) {
            EXPECT_EQ(timings["predicted_n"], n) << k;
            EXPECT_EQ(timings.contains("draft_n"), k > 0) << k;
            EXPECT_LE(timings.value("draft_n_accepted", 0u), std::min<uint64_t>(timings.value("draft_n", 0u), n)) << k;
        };
        const Json answer = whole("/v1/completions", story(members));
        EXPECT_EQ(answer["choices"], plain["choices"]) << k;
        EXPECT_EQ(answer["usage"]["completion_tokens"], n) << k;
        expect_counts(answer["timings"]);
        Json ids = Json::array(), logprobs;
        const Events events = stream("/v1/completions", story(members + R"(,"stream":true,"stream_options":{"include_usage":true})"));
        for (const Json& chunk : events.data) {
            for (const Json& id : chunk.value("tokens", Json::array()))
                ids.push_back(id);
            for (const Json& choice : chunk["choices"])
                for (const auto& [name, values] : choice["logprobs"].items())
                    for (const Json& value : values)
                        logprobs[name].push_back(value);
        }
        EXPECT_EQ(events.text(), text_of(plain)) << k;
        EXPECT_EQ(ids, plain["choices"][0]["token_ids"]) << k;
        EXPECT_EQ(logprobs.dump(), plain["choices"][0]["logprobs"].dump()) << k;
        EXPECT_EQ(events.data.back()["usage"]["completion_tokens"], n) << k;
        expect_counts(events.data.back()["timings"]);
    }
}

// Spellings of control tokens are text wherever a client sends them.
TEST_F(ServeProgram, ContentNeverBecomesControlTokens) {
    const auto n_of = [](const std::string& path, const std::string& what) {
        const Json answer = whole(path, "{\"max_tokens\":0," + what + "}");
        return answer.value("tokens_evaluated", answer.value("usage", Json::object()).value("prompt_tokens", size_t{0}));
    };
    const auto n_of_chat = [&](const std::string& user, const std::string& assistant) {
        return n_of("/v1/chat/completions", R"("messages":[{"role":"user","content":)" + user + R"(},{"role":"assistant","content":)" + assistant + R"(},{"role":"user","content":"a"}])");
    };
    const auto n_ids = [&](const std::string& text, const char* parses) {
        return json_of(ask(port_, post_json("/tokenize", "{\"content\":" + text + ",\"add_special\":true,\"parse_special\":" + parses + "}")))["tokens"].size();
    };
    for (const std::string control : {"</s>", "<s>"}) {
        const std::string text = "\"fox" + control + control + control + control + control + "\"", without = "\"fox\"";
        EXPECT_EQ(n_ids(text, "true"), n_ids(without, "true") + 5) << control << ": a token each, where it is asked for";
        EXPECT_GE(n_ids(text, "false"), n_ids(without, "false") + 10) << control << ": else it is spelt";
        EXPECT_EQ(n_of("/v1/completions", "\"prompt\":" + text), n_ids(text, "false")) << control;
        EXPECT_EQ(n_of("/completion", "\"prompt\":" + text), n_ids(text, "false")) << control;
        EXPECT_GE(n_of_chat(text, "\"b\""), n_of_chat(without, "\"b\"") + 10) << control;
        EXPECT_GE(n_of_chat("\"b\"", text), n_of_chat("\"b\"", without) + 10) << control;
        EXPECT_EQ(n_of_chat(R"([{"type":"text","text":)" + text + "}]", "\"b\""), n_of_chat(text, "\"b\"")) << control;
    }
}

TEST_F(ServeProgram, WhatWasReadOnceIsInTheCache) {
    std::string prompt;
    for (int i = 0; i < 12; ++i)
        prompt += "The hen and the cow went to the old mill by the river. ";
    const Json first = whole("/v1/completions", story(R"("max_tokens":2)", prompt)), second = whole("/v1/completions", story(R"("max_tokens":2)", prompt));
    EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    EXPECT_GT(second["usage"]["prompt_tokens_details"]["cached_tokens"], 64);
    EXPECT_EQ(text_of(first), text_of(second));
    EXPECT_EQ(second["timings"]["cache_n"], second["usage"]["prompt_tokens_details"]["cached_tokens"]);
    for (const Json& chunk : stream("/v1/completions", story(R"("max_tokens":6,"stream":true,"stream_options":{"continuous_usage_stats":true})", prompt)).data)
        EXPECT_EQ(chunk["usage"]["prompt_tokens_details"], second["usage"]["prompt_tokens_details"]) << "from the first event on";
    // Who wants nothing of it gets nothing, not even what the other prompt of his own request has read.
    const std::string twice = R"({"max_tokens":2,"cache_prompt":false,"prompt":[")" + prompt + "\",\"" + prompt + "\"]}";
    for (int i = 0; i < 2; ++i) {
        const Json own = whole("/v1/completions", twice);
        EXPECT_EQ(own["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
        EXPECT_EQ(own["timings"]["prompt_n"], own["usage"]["prompt_tokens"]);
        EXPECT_EQ(text_of(own), text_of(first));
    }
    EXPECT_EQ(whole("/v1/completions", story(R"("max_tokens":2)", prompt))["timings"]["cache_n"], second["timings"]["cache_n"]) << "the others' is still there";
}

TEST_F(ServeProgram, ManyGetWhatEachWouldGetAlone) {
    std::vector<std::string> bodies, alone;
    const std::vector<std::string> prompts = {"One day a hen", "The fox named Ruby", "Tom had a red ball", "A big tree", "In the sea", "Lily liked", "Once there was a dog", "The sun"};
    for (size_t i = 0; i < prompts.size(); ++i) {
        bodies.push_back(story(R"("max_tokens":16,"seed":7,"acceptance":"coupled","temperature":)" + std::string(i % 2 ? "0.8" : "0") + (i % 3 ? "" : R"(,"draft_len":3)"), prompts[i]));
        alone.push_back(text_of(whole("/v1/completions", bodies.back())));
    }
    std::vector<std::unique_ptr<Client>> clients;
    for (const std::string& body : bodies) {
        clients.push_back(std::make_unique<Client>(port_));
        clients.back()->send(post_json("/v1/completions", body));
    }
    for (size_t i = 0; i < clients.size(); ++i)
        EXPECT_EQ(text_of(json_of(clients[i]->read_reply())), alone[i]) << i;
}

TEST_F(ServeProgram, ChoicesHaveSeedsOfTheirOwn) {
    const std::string members = R"("max_tokens":12,"acceptance":"coupled","temperature":1,"n":3,"seed":40)";
    const Json several = whole("/v1/completions", story(members));
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(several["choices"][i]["text"], text_of(whole("/v1/completions", story(R"("max_tokens":12,"acceptance":"coupled","temperature":1,"seed":)" + std::to_string(40 + i))))) << i;
    const Events events = stream("/v1/completions", story(members + R"(,"stream":true,"stream_options":{"include_usage":true})"));
    for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(events.text(i), several["choices"][i]["text"].get<std::string>());
    EXPECT_EQ(events.data.back()["usage"]["completion_tokens"], several["usage"]["completion_tokens"]);
    EXPECT_EQ(events.data.back()["usage"]["prompt_tokens"], several["usage"]["prompt_tokens"]);
}

TEST_F(ServeProgram, WrongRequestsAreRefusedByName) {
    EXPECT_EQ(refusal_of(ask(port_, post_json("/v1/completions", story(R"("max_tokens":513)")))), "400 max_tokens -");
    std::string ids;
    for (int i = 0; i < 512; ++i)
        ids += (i ? ",5" : "5");
    EXPECT_EQ(refusal_of(ask(port_, post_json("/v1/completions", "{\"prompt\":[" + ids + "]}"))), "400 prompt context_length_exceeded");
    EXPECT_EQ(refusal_of(ask(port_, post_json("/v1/completions", R"({"prompt":[[]]})"))), "400 prompt[0] -");
    EXPECT_EQ(refusal_of(ask(port_, post_json("/v1/completions", story(R"("n":9)")))), "400 n -");
    EXPECT_EQ(refusal_of(ask(port_, post_json("/v1/chat/completions", R"({"messages":[{"role":"assistant","content":"a"},{"role":"system","content":"b"}]})"))).substr(0, 12), "400 messages");
    for (const char* text : {"", "a\\u0000b", "\\uffff \\ud83d\\ude00", "</s><s>"})
        EXPECT_EQ(ask(port_, post_json("/tokenize", "{\"content\":\"" + std::string(text) + "\"}")).status, 200) << text;
    EXPECT_EQ(ask(port_, post_json("/v1/completions", story(R"("max_tokens":1)", "a\\u0000b"))).status, 200);
    const Json ids_of_text = json_of(ask(port_, post_json("/tokenize", R"({"content":"A fox. \ud83e\udd8a"})")))["tokens"];
    EXPECT_EQ(json_of(ask(port_, post_json("/detokenize", Json{{"tokens", ids_of_text}}.dump())))["content"], "A fox. \xf0\x9f\xa6\x8a");
}

TEST_F(ServeProgram, WhoLeavesLeavesNothingBehind) {
    const std::string before = text_of(whole("/v1/completions", story(R"("max_tokens":16)")));
    for (int i = 0; i < 8; ++i) {
        StreamClient left(port_, post_json("/v1/completions", story(std::string(i % 2 ? R"("stream":true,)" : "") + R"("temperature":2,"ignore_eos":true,"max_tokens":400)")));
        if (i % 4 == 1) {
            EXPECT_TRUE(left.wait_for("data: "));
        }
    }
    EXPECT_TRUE(wait_until([&] { return metric("auspex_requests_running") == 0 && metric("auspex_requests_waiting") == 0; }));
    EXPECT_EQ(text_of(whole("/v1/completions", story(R"("max_tokens":16)"))), before);
}

TEST_F(ServeProgram, FiguresAgree) {
    whole("/v1/completions", story(R"("max_tokens":24,"draft_len":4)"));
    EXPECT_TRUE(wait_until([&] { return metric("auspex_requests_running") == 0; }));
    std::this_thread::sleep_for(100ms);
    const std::string text = ask(port_, get("/metrics")).body;
    double positions = 0;
    for (int i = 0; i < 15; ++i)
        positions += metric("auspex_accepted_tokens_per_position_total{position=\"" + std::to_string(i) + "\"}");
    EXPECT_EQ(positions, metric("auspex_accepted_tokens_total"));
    EXPECT_LE(positions, metric("auspex_draft_tokens_total"));
    EXPECT_GT(positions, 0);
    EXPECT_GE(metric("auspex_generated_tokens_total"), positions);
}

// From one sample each: also while answers are written, cut and taken away.
TEST_F(ServeProgram, FiguresAgreeAtAnyMoment) {
    struct Figures {
        double generated, own, accepted, drafted, ended;
    };
    const auto sample = [] {
        const std::string text = ask(port_, get("/metrics")).body;
        const auto of = [&](const std::string& name) {
            double sum = 0;
            for (size_t at = text.find("\n" + name); at != std::string::npos; at = text.find("\n" + name, at + 1))
                sum += std::stod(text.substr(text.find(' ', at)));
            return sum;
        };
        const Figures now = {of("auspex_generated_tokens_total "), of("auspex_own_tokens_total "), of("auspex_accepted_tokens_total "), of("auspex_draft_tokens_total "), of("auspex_request_seconds_count ")};
        EXPECT_EQ(now.generated, now.accepted + now.own);
        EXPECT_EQ(now.accepted, of("auspex_accepted_tokens_per_position_total{"));
        EXPECT_LE(now.accepted, now.drafted);
        return now;
    };
    const auto quiet = [&] {
        EXPECT_TRUE(wait_until([&] { return metric("auspex_requests_running") == 0; }));
        std::this_thread::sleep_for(100ms);
        return sample();
    };
    Figures before = quiet();
    {
        StreamClient leaves(port_, post_json("/v1/completions", story(R"("stream":true,"draft_len":4,"ignore_eos":true,"max_tokens":440)")));
        Figures now = before;
        EXPECT_TRUE(wait_until([&] {
            now = sample();
            return now.accepted > before.accepted && now.own > before.own;
        }));
        EXPECT_EQ(now.ended, before.ended) << "it has not ended yet";
    }
    before = quiet();
    // A stop inside a block: what is behind it is nobody's.
    const std::string text = text_of(whole("/v1/completions", story(R"("max_tokens":48,"draft_len":0)")));
    const Figures plain = quiet();
    EXPECT_EQ(plain.generated - before.generated, 48);
    EXPECT_EQ(plain.own - before.own, 48);
    size_t n_inside = 0;
    for (size_t at = 20; at < 44; at += 4) {
        before = quiet();
        const Events events = stream("/v1/completions", story(R"("stream":true,"max_tokens":48,"draft_len":5,"auspex":{"origins":true},"stop":)" + Json(text.substr(at, 4)).dump()));
        const Json& timings = events.data.back()["timings"];
        double own = 0;
        bool is_inside = false;
        for (const Json& chunk : events.data)
            for (const Json& token : chunk.value("auspex", Json::object()).value("tokens", Json::array())) {
                is_inside = token[1] == AUSPEX_TOKEN_ACCEPTED; // the last: its round has no own token
                own += is_inside ? 0 : 1;
            }
        n_inside += is_inside ? 1 : 0;
        const Figures after = quiet();
        EXPECT_EQ(after.generated - before.generated, timings["predicted_n"].get<double>()) << at;
        EXPECT_EQ(after.accepted - before.accepted, timings["draft_n_accepted"].get<double>()) << at;
        EXPECT_EQ(after.drafted - before.drafted, timings["draft_n"].get<double>()) << at;
        EXPECT_EQ(after.own - before.own, own) << at;
    }
    EXPECT_GT(n_inside, 0u);
}

// The last: it ends the server.
TEST_F(ServeProgram, ZIsEndedByASignalAndFinishesFirst) {
    StreamClient running(port_, post_json("/v1/completions", story(R"("stream":true,"max_tokens":60,"temperature":1,"ignore_eos":true)")));
    ASSERT_TRUE(running.wait_for("data: "));
    Client asks(port_);
    program_->signal(SIGTERM);
    EXPECT_TRUE(wait_until([&] { return asks.ask(get("/health")).status != 200; }));
    const Events events(running.client.read_reply().body);
    EXPECT_TRUE(events.is_done);
    EXPECT_EQ(events.data.back()["timings"]["predicted_n"], 60);
    EXPECT_EQ(program_->exit_code(), 0) << program_->shown();
}

// ---- other ways to start
// -----------------------------------------------------------------------------------------------

// A line with the address and three to try, of which n begin with curl and work as they are.
testing::AssertionResult curl_lines_work(const std::string& shown, int n, const std::string& key) {
    std::istringstream lines(shown.substr(shown.rfind('\n', shown.find(" answers as ")) + 1));
    std::string line;
    int n_lines = -1; // besides the address
    for (; std::getline(lines, line); ++n_lines) {
        const size_t at = line.find("curl ");
        if (at == std::string::npos) continue;
        std::string command = "curl -sf -m 30 -o /dev/null " + line.substr(at + 5);
        if (const size_t place = command.find("KEY"); place != std::string::npos) command.replace(place, 3, key);
        if (std::system("command -v curl > /dev/null") == 0 && std::system(command.c_str()) != 0) return testing::AssertionFailure() << command;
        --n;
    }
    if (n == 0 && n_lines == 3) return testing::AssertionSuccess();
    return testing::AssertionFailure() << n_lines << " lines, " << n << " of them missing:\n" << shown;
}

TEST(ServeStart, SocketsAndKeyFiles) {
    const fs::path folder = fs::path(testing::TempDir()) / ("auspex_serve_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const std::string socket = (folder / "s").string(), keys = (folder / "keys").string();
    std::ofstream(keys) << "# who may ask\n\n  \nalpha\t\r\nbeta \n";
    Program program({"serve", "--unix", socket, "--api-key-file", keys, "--slots", "1", "-c", "64", "--no-page", "--draft-len", "2", "--drafter", "ngram", "--acceptance", "coupled"});
    ASSERT_TRUE(program.wait_for(" answers as ")) << program.shown();
    EXPECT_EQ(fs::status(socket).permissions() & fs::perms::mask, fs::perms::owner_read | fs::perms::owner_write);
    const auto asked = [&](const std::string& request) { return Client(socket).ask(request); };
    EXPECT_EQ(asked(get("/v1/models")).status, 401);
    EXPECT_EQ(asked(get("/v1/models", "x-api-key: # who may ask\r\n")).status, 401);
    for (const char* key : {"alpha", "beta"})
        EXPECT_EQ(asked(get("/v1/models", "Authorization: Bearer " + std::string(key) + "\r\n")).status, 200) << key;
    EXPECT_EQ(program.shown().find("alpha"), std::string::npos) << "keys are not shown";
    const Json params = json_of(asked(get("/props", "x-api-key: beta\r\n")))["default_generation_settings"]["params"];
    EXPECT_EQ((Json{params["draft_len"], params["drafter"], params["acceptance"]}), (Json{2, "ngram", "coupled"}));
    // Of what clients say nothing is shown, right or wrong.
    const std::string secret = "Xyzzyspoon";
    for (const char* body : {R"({"prompt":"Xyzzyspoon","max_tokens":2})", R"({"prompt":"Xyzzyspoon","max_tokens":2,"stream":true,"user":"Xyzzyspoon"})", R"({"prompt":"Xyzzyspoon)", R"({"prompt":"a","stop":["Xyzzyspoon",""]})"})
        EXPECT_NE(asked(post_json("/v1/completions", body, "x-api-key: alpha\r\n")).status, 0);
    EXPECT_EQ(asked(post_json("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Xyzzyspoon"}],"max_tokens":2})", "x-api-key: Xyzzyspoon\r\n")).status, 401);
    EXPECT_EQ(asked(get("/Xyzzyspoon", "x-api-key: alpha\r\n")).status, 404);
    Program second({"serve", "--unix", socket, "--slots", "1", "-c", "64"});
    EXPECT_EQ(second.exit_code(), cli::kExitUsage) << second.shown();
    EXPECT_TRUE(curl_lines_work(program.shown(), 3, "alpha")); // without a page, and by a socket
    program.signal(SIGINT);
    EXPECT_EQ(program.exit_code(), 0);
    EXPECT_EQ(program.shown().find(secret), std::string::npos) << program.shown();
    EXPECT_FALSE(fs::exists(socket));
    fs::remove_all(folder);
}

TEST(ServeStart, SaysWhatToTry) {
    for (const bool has_page : {true, false}) {
        std::vector<std::string> flags = {"serve", "--port", "0", "--slots", "1", "-c", "64"};
        if (!has_page) flags.push_back("--no-page");
        Program program(flags);
        ASSERT_NE(program.port(), 0) << program.shown();
        const std::string& shown = program.shown();
        EXPECT_TRUE(curl_lines_work(shown, has_page ? 1 : 2, "none"));
        const std::string url = "http://127.0.0.1:" + std::to_string(program.port());
        EXPECT_EQ(shown.find("open " + url + "/ in a browser") != std::string::npos, has_page) << shown;
        EXPECT_NE(shown.find("OPENAI_BASE_URL=" + url + "/v1 OPENAI_API_KEY=none"), std::string::npos) << shown;
    }
}

// Signals count from the moment at which it has its address, and a log that nobody reads any more is no reason to end.
TEST(ServeStart, EndsInOrderWhileItLoads) {
    const fs::path folder = fs::path(testing::TempDir()) / ("auspex_serve_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const std::string socket = (folder / "s").string();
    const auto health = [&] { return Client(socket).ask(get("/health")).status; };
    for (const int signal : {SIGTERM, SIGINT}) {
        bool was_loading = false;
        for (int attempt = 0; attempt < 10 && !was_loading; ++attempt) { // on a busy machine it may have loaded before it is told
            Program program({"serve", "--unix", socket, "--slots", "1", "-c", "64"});
            ASSERT_TRUE(wait_until([&] { return fs::exists(socket) && health() != 0; }));
            program.signal(signal);
            EXPECT_EQ(program.exit_code(), 0) << signal << program.shown();
            EXPECT_FALSE(fs::exists(socket));
            was_loading = program.shown().find(" answers as ") == std::string::npos;
        }
        EXPECT_TRUE(was_loading) << signal;
    }
    Program program({"serve", "--unix", socket, "--slots", "1", "-c", "64"});
    program.close_output(); // what it prints breaks the pipe
    ASSERT_TRUE(wait_until([&] { return fs::exists(socket) && health() == 200; }));
    program.signal(SIGPIPE);
    EXPECT_EQ(health(), 200);
    program.signal(SIGTERM);
    EXPECT_LT(program.exit_code(), 128);
    fs::remove_all(folder);
}

TEST(ServeStart, WrongFlagsAndTakenPorts) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listener, 1), 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    const std::string taken = std::to_string(ntohs(address.sin_port));
    const std::vector<std::tuple<std::vector<std::string>, int, std::string>> wrong = {
        {{"--port", taken}, cli::kExitUsage, taken},
        {{"--host", "256.1.1.1"}, cli::kExitUsage, "256.1.1.1"},
        {{"--port", "65536"}, cli::kExitUsage, "--port"},
        {{"--port", "x"}, cli::kExitUsage, "--port"},
        {{"--slots", "0"}, cli::kExitUsage, "--slots"},
        {{"--queue", "-1"}, cli::kExitUsage, "--queue"},
        {{"--overload-status", "500"}, cli::kExitUsage, "--overload-status"},
        {{"--max-gap-ms", "60001"}, cli::kExitUsage, "--max-gap-ms"},
        {{"--drain", "soon"}, cli::kExitUsage, "--drain"},
        {{"--cache-salt-by-key"}, cli::kExitUsage, "--cache-salt-by-key: expected keys"},
        {{"--api-key", ""}, cli::kExitUsage, "--api-key"},
        {{"--api-key-file", "/nowhere/keys"}, cli::kExitFile, "/nowhere/keys"},
        {{"--api-key-file", "/dev/null"}, cli::kExitFile, "/dev/null"},
        {{"--cors-origin", "example.org"}, cli::kExitUsage, "--cors-origin"},
        {{"--cors-origin", "https://example.org/"}, cli::kExitUsage, "--cors-origin"},
        {{"--unix", "/nowhere/socket"}, cli::kExitUsage, "/nowhere/socket"},
        {{"--unix", std::string(200, 'x')}, cli::kExitUsage, "xxx"},
        {{"--default-temp", "6"}, cli::kExitUsage, "--default-temp"},
        {{"-m", "/nowhere/model", "--port", "0"}, cli::kExitFile, "/nowhere/model"},
        {{"--nothing"}, cli::kExitUsage, "--nothing"}};
    for (const auto& [flags, exit_code, named] : wrong) {
        std::vector<std::string> arguments = {"serve"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        Program program(arguments);
        EXPECT_EQ(program.exit_code(), exit_code) << flags[0] << program.shown();
        EXPECT_NE(program.shown().find(named), std::string::npos) << program.shown();
        EXPECT_EQ(std::count(program.shown().begin(), program.shown().end(), '\n'), 1) << program.shown();
    }
    ::close(listener);
}

} // namespace
} // namespace auspex::test::program_test
