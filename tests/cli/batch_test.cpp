// auspex batch as a command: every line of the input has one line of results, however often and at whatever moment it
// was stopped, and nobody else's file is touched. What the results say is in batch_answers_test.cpp.
#include "cli/batch_files.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace auspex::test::batch_test {

namespace {

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

// Until the file of results has this many lines.
void wait_for_lines(const std::string& path, std::ptrdiff_t n_lines) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
        const std::string text = text_of(path);
        if (std::count(text.begin(), text.end(), '\n') >= n_lines) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}
void signal_at(const CliTerminalSession& session, const std::string& path, std::ptrdiff_t n_lines, int signal) {
    wait_for_lines(path, n_lines);
    kill(session.process(), signal);
}

} // namespace

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
    for (const auto& [first, second] :
         {std::pair{SIGTERM, SIGTERM}, {SIGINT, SIGINT}, {SIGTERM, SIGINT}, {SIGINT, SIGTERM}}) {
        std::string lines = request("short", {{"prompt", "Hi"}, {"max_tokens", 1}});
        for (int i = 0; i < 20; ++i)
            lines += request(std::to_string(i), {{"prompt", "Once"}, {"ignore_eos", true}});
        const Files files(lines);
        CliTerminalSession session({"batch", "-i", files.in, "-o", files.out});
        signal_at(session, files.out, 1, first);
        ASSERT_TRUE(session.wait_for("a second signal ends at once")) << session.shown(); // so that two are two
        kill(session.process(), second);
        EXPECT_EQ(session.exit_code(), 128 + second);
        EXPECT_LT(results_of(files.out).size(), 20u);
    }
}

TEST(CliBatch, ASignalWhenNothingIsLeftIsNone) {
    const Files files(request("one", {{"prompt", "Once"}, {"max_tokens", 400}, {"ignore_eos", true}}) +
                      request("two", {{"prompt", "Twice"}, {"max_tokens", 1}}) + "\n\n");
    CliTerminalSession session(files.arguments());
    signal_at(session, files.out, 1, SIGTERM); // both have begun
    EXPECT_EQ(session.exit_code(), 0);
    EXPECT_EQ(texts_of(files.out).size(), 2u);
}

// Of as many as may run as many again wait in the engine: at a signal they are left, but none that runs.
TEST(CliBatch, WhatWaitsAtASignalIsLeft) {
    std::string lines = request("short", {{"prompt", "Hi"}, {"max_tokens", 1}});
    for (const char* id : {"runs", "waits", "too"})
        lines += request(id, {{"prompt", "Once"}, {"ignore_eos", true}});
    const Files files(lines);
    {
        CliTerminalSession session(files.arguments({"--parallel", "1"}));
        signal_at(session, files.out, 1, SIGTERM);
        EXPECT_EQ(session.exit_code(), kAgain);
    }
    EXPECT_EQ(texts_of(files.out).size(), 2u);
    EXPECT_TRUE(texts_of(files.out).contains("runs"));
    files.run();
    const auto texts = texts_of(files.out);
    EXPECT_EQ(texts.size(), 4u);
    EXPECT_EQ(texts.at("waits"), texts.at("runs"));
}

TEST(CliBatch, PrioritiesOrderWhatWaits) {
    const auto one = [](const char* id, int n_tokens, int priority) {
        return request(id,
                       {{"prompt", "Once"}, {"max_tokens", n_tokens}, {"ignore_eos", true}, {"priority", priority}});
    };
    const Files files(one("short", 4, 0) + one("long", 400, 10) + one("later", 4, 3) + one("sooner", 4, -3));
    files.run({"--parallel", "2"});
    std::vector<std::string> order;
    for (const Json& line : lines_of(files.out))
        order.push_back(line["custom_id"]);
    EXPECT_EQ(order, (std::vector<std::string>{"short", "sooner", "later", "long"}));
}

TEST(CliBatch, TimesAreWithoutWaiting) {
    const Files files(request("runs", {{"prompt", "Once"}, {"max_tokens", 400}, {"ignore_eos", true}}) +
                      request("waits", {{"prompt", "Once"}, {"max_tokens", 2}}) +
                      request("nothing", {{"prompt", "Once"}, {"max_tokens", 0}}));
    files.run({"--parallel", "1"});
    auto results = results_of(files.out);
    const double runs_ms = results["runs"]["body"]["timings"]["predicted_ms"];
    for (const char* id : {"waits", "nothing"})
        EXPECT_LT(results[id]["body"]["timings"]["prompt_ms"].get<double>(), runs_ms / 2) << id;
}

TEST(CliBatch, PrioritiesChangeNoText) {
    std::istringstream in(many_requests());
    std::string lines;
    int i = 0;
    for (std::string text; std::getline(in, text); ++i) {
        Json line = Json::parse(text);
        line["body"]["priority"] = i * 7 % 21 - 10;
        lines += line.dump() + "\n";
    }
    EXPECT_EQ(i, kMany);
    const Files files(lines);
    files.run({"--parallel", "4"});
    EXPECT_EQ(texts_of(files.out), many_texts());
}

TEST(CliBatch, WhatWasReadBeforeIsNotReadAgain) {
    std::string story = "Once upon a time";
    for (int i = 0; i < 20; ++i)
        story += " there was a fox named Ruby, and she was curious.";
    const Files files(request("first", {{"prompt", story}, {"max_tokens", 4}}) +
                      request("again", {{"prompt", story}, {"max_tokens", 4}}) +
                      request("choices", {{"prompt", story}, {"max_tokens", 4}, {"n", 3}, {"temperature", 1}}) +
                      request("nothing", {{"prompt", story}, {"max_tokens", 0}, {"n", 3}}) +
                      request("other", {{"prompt", "Hugo" + story}, {"max_tokens", 4}}));
    files.run({"--parallel", "3"});
    auto results = results_of(files.out);
    const Json whole = results["first"]["body"]["usage"]["prompt_tokens"];
    for (const auto& [id, response] : results) {
        SCOPED_TRACE(id);
        const Json &usage = response["body"]["usage"], &timings = response["body"]["timings"];
        const uint64_t cached = usage["prompt_tokens_details"]["cached_tokens"];
        EXPECT_EQ(timings["cache_n"], cached);
        EXPECT_EQ(timings["prompt_n"].get<uint64_t>() + cached, usage["prompt_tokens"]);
        if (id != "other") {
            EXPECT_EQ(usage["prompt_tokens"], whole);
        }
        if (id == "choices" || id == "nothing") {
            EXPECT_GT(cached, whole.get<uint64_t>() / 2);
            EXPECT_LT(cached, whole.get<uint64_t>());
        }
        if (id == "other") {
            EXPECT_EQ(cached, 0u);
        }
    }
    // The first two begin at once, and read it turn about: both together hardly more than once.
    uint64_t n_read = 0;
    for (const char* id : {"first", "again"}) n_read += results[id]["body"]["timings"]["prompt_n"].get<uint64_t>();
    EXPECT_GE(n_read, whole.get<uint64_t>());
    EXPECT_LT(n_read, whole.get<uint64_t>() * 5 / 4);
    EXPECT_EQ(results["again"]["body"]["choices"], results["first"]["body"]["choices"]);
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

#if defined(__linux__)
// Once there is a result, files end 4000 bytes after it: drivers have their memory in files, too, and need it before.
TEST(CliBatch, AFullDiskLeavesWholeLines) {
    std::string lines;
    for (int i = 0; i < 40; ++i)
        lines += request("request " + std::to_string(i), {{"prompt", "Once"}, {"max_tokens", 16}, {"n", 4}});
    const Files files(lines);
    const std::string& out = files.out;
    {
        std::signal(SIGXFSZ, SIG_IGN); // which stays ignored in the program: it is told by write()
        CliTerminalSession session({"batch", "-i", files.in, "-o", out, "-c", "64"});
        std::signal(SIGXFSZ, SIG_DFL);
        wait_for_lines(out, 1);
        const rlimit limit = {text_of(out).size() + 4000, RLIM_INFINITY};
        ASSERT_EQ(prlimit(session.process(), RLIMIT_FSIZE, &limit, nullptr), 0);
        EXPECT_EQ(session.exit_code(), 1) << session.shown();
        EXPECT_NE(session.shown().find("-o " + out), std::string::npos) << session.shown();
    }
    EXPECT_TRUE(text_of(out).ends_with("}\n"));
    const size_t n_done = results_of(out).size();
    EXPECT_GT(n_done, 0u);
    EXPECT_LT(n_done, 40u);
    EXPECT_EQ(run_cli({"batch", "-i", files.in, "-o", out, "-c", "64"}).exit_code, 0);
    EXPECT_EQ(texts_of(out).size(), 40u);
}
#endif

TEST(CliBatch, ShowsHowFarItIsOnATerminal) {
    const Files files(many_requests(60));
    const CliResult result = run_cli_in_terminal(files.arguments(), {.environment = {{"TERM", "xterm"}}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.out.find("answering ["), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("done 40, failed 0, skipped 0; "), std::string::npos) << result.out;
}

} // namespace auspex::test::batch_test
