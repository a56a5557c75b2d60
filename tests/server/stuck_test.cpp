// An engine, or a device, that does not come back: /health says so, everybody else is answered, and the server still ends.
#include "program.h"

#include <filesystem>
#include <fstream>
#include <sys/ptrace.h>

namespace auspex::test::stuck_test {
namespace {

const std::string kForever = completion(R"("stream":true,"max_tokens":4000)");

TEST(ServerStuck, HealthSaysSoAndAnswersAtOnce) {
    Settings settings = quick_settings();
    settings.stuck = 700ms; // 5 s in the program
    ServedStandIn served(settings);
    std::promise<void> release;
    Client asks(served.port());
    EXPECT_EQ(asks.ask(get("/health")).status, 200);
    served.server.engine().call([&](server::Backend&) { release.get_future().wait(); });
    const auto begin = Clock::now();
    auto longest = 0ms;
    int status = 200;
    while (status == 200 && Clock::now() < begin + 10s) {
        const auto asked = Clock::now();
        status = asks.ask(get("/health")).status;
        longest = std::max(longest, std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - asked));
        std::this_thread::sleep_for(5ms);
    }
    EXPECT_EQ(status, 503);
    EXPECT_GE(Clock::now() - begin, 600ms);
    EXPECT_LE(Clock::now() - begin, 1700ms);
    EXPECT_LE(longest, 300ms); // 50 on a machine with nothing else to do
    std::printf("/health beside an engine that hangs: 503 after %.2f s, longest answer %d ms\n",
                std::chrono::duration<double>(Clock::now() - begin).count(), static_cast<int>(longest.count()));
    EXPECT_EQ(asks.ask(get("/health/live")).status, 503);
    for (const char* path : {"/metrics", "/slots", "/v1/models", "/props"})
        EXPECT_EQ(asks.ask(get(path)).status, 200) << path;
    EXPECT_EQ(refusal_of(asks.ask(post_json("/v1/completions", completion(R"("n":1)")))), "503 - -");
    release.set_value();
    EXPECT_TRUE(wait_until([&] { return asks.ask(get("/health")).status == 200; }));
    EXPECT_EQ(asks.ask(post_json("/v1/completions", completion(R"("n":1)"))).status, 200);
}

TEST(ServerStuck, DoesNotKeepTheServerFromEnding) {
    Settings settings = quick_settings();
    settings.stuck = 300ms;
    ServedStandIn served(settings);
    served.backend.event_us = 1000;
    StreamClient stream(served.port(), post_json("/v1/completions", kForever));
    ASSERT_TRUE(stream.wait_for("w0"));
    served.backend.hold(true);
    ASSERT_TRUE(wait_until([&] { return served.backend.is_held.load(); }));
    EXPECT_EQ(served.stop(), cli::kExitDevice);
    EXPECT_TRUE(served.server.is_hanging());
    served.backend.hold(false);
}

TEST(ServerStuck, WhoeverIsServedIsToldAtTheEnd) {
    Settings settings = quick_settings();
    settings.stuck = 300ms;
    settings.drain = 100ms;
    ServedStandIn served(settings);
    served.backend.event_us = 1000;
    StreamClient stream(served.port(), post_json("/v1/completions", kForever)), whole(served.port(), post_json("/v1/completions", completion(R"("max_tokens":4000)")));
    ASSERT_TRUE(stream.wait_for("w0"));
    ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 2; }));
    served.backend.hold(true);
    ASSERT_TRUE(wait_until([&] { return served.backend.is_held.load(); }));
    served.server.drain();
    EXPECT_EQ(Events(stream.client.read_reply().body).data.back()["error"]["message"], "the server is shutting down");
    EXPECT_EQ(refusal_of(whole.client.read_reply()), "503 - -");
    EXPECT_EQ(served.wait(), cli::kExitDevice);
    served.backend.hold(false);
}

TEST(ServerStuck, AnIdleServerIsNot) {
    Settings settings = quick_settings();
    settings.stuck = 1ms;
    ServedStandIn served(settings);
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(ask(served.port(), get("/health")).status, 200);
        std::this_thread::sleep_for(2ms);
    }
}

// A round that takes long is no sign of it where rounds take long.
TEST(ServerStuck, ADeviceThatDoesNotComeBackIsSeen) {
    Settings settings = quick_settings();
    settings.stuck = 300ms;
    ServedStandIn served(settings);
    served.backend.event_us = 1000;
    Client asks(served.port());
    StreamClient stream(served.port(), post_json("/v1/completions", kForever));
    ASSERT_TRUE(stream.wait_for("w0"));
    const auto status_with = [&](double turn_ms, double expected_ms) {
        served.backend.turn_expected_ms = expected_ms, served.backend.turn_ms = turn_ms;
        EXPECT_TRUE(wait_until([&] { return served.server.engine().snapshot()->load.turn_ms == turn_ms; }));
        return asks.ask(get("/health")).status;
    };
    EXPECT_EQ(status_with(200, 1), 200);
    EXPECT_EQ(status_with(1500, 100), 200);
    EXPECT_EQ(status_with(2500, 100), 503);
    EXPECT_EQ(asks.ask(get("/health/live")).status, 503);
    EXPECT_EQ(refusal_of(asks.ask(post_json("/v1/completions", completion(R"("n":1)")))), "503 - -");
    EXPECT_NE(asks.ask(get("/metrics")).body.find("\nauspex_device_turn_seconds 2.5\n"), std::string::npos);
    EXPECT_EQ(status_with(0, 0), 200);
}

// Whoever takes the engine down would wait for the device.
TEST(ServerStuck, ADeviceThatIsBusyIsWaitedForAndOneThatHangsIsLeft) {
    for (const bool hangs : {false, true}) {
        Settings settings = quick_settings();
        settings.stuck = 300ms;
        ServedStandIn served(settings);
        served.backend.turn_expected_ms = 100, served.backend.turn_ms = 1000;
        std::thread device([&] {
            std::this_thread::sleep_for(600ms);
            served.backend.turn_ms = hangs ? 2500 : 0;
        });
        const auto begin = Clock::now();
        EXPECT_EQ(served.stop(), hangs ? cli::kExitDevice : cli::kExitOk);
        EXPECT_EQ(served.server.is_hanging(), hangs);
        EXPECT_GE(Clock::now() - begin, 550ms);
        device.join();
        served.backend.turn_ms = 0;
    }
}

// ---- the program itself: a thread of a driver on the CPU is stopped, as a device is that hangs and is not lost

class Thread {
  public:
    explicit Thread(pid_t id) : id_(id) {}
    ~Thread() { // goes on, or is gone; else nobody could wait for its process
        if (::ptrace(PTRACE_DETACH, id_, nullptr, nullptr) != 0) ::waitpid(id_, nullptr, __WALL | WNOHANG);
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    bool stop() const { return ::ptrace(PTRACE_SEIZE, id_, nullptr, nullptr) == 0 && ::ptrace(PTRACE_INTERRUPT, id_, nullptr, nullptr) == 0; }
    // Whether it is there no more. Its process ends when this was seen.
    bool has_ended() const {
        int status = 0;
        return ::waitpid(id_, &status, __WALL | WNOHANG) == id_ && !WIFSTOPPED(status);
    }

  private:
    pid_t id_;
};

// Ticks of the CPU that each thread of a process took.
std::map<pid_t, long> work_of(pid_t process) {
    std::map<pid_t, long> work;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
        std::ifstream file(entry.path() / "stat");
        std::string line;
        std::getline(file, line);
        std::istringstream fields(line.substr(line.rfind(')') + 1));
        std::vector<std::string> all{std::istream_iterator<std::string>(fields), {}};
        if (all.size() > 12) work[std::stoi(entry.path().filename())] = std::stol(all[11]) + std::stol(all[12]);
    }
    return work;
}

// The thread that does most of the work.
Thread busiest(pid_t process) {
    const auto before = work_of(process);
    std::this_thread::sleep_for(500ms);
    std::pair<long, pid_t> most{-1, 0};
    for (const auto& [id, ticks] : work_of(process))
        if (id != process) most = std::max(most, {ticks - (before.contains(id) ? before.at(id) : 0), id});
    return Thread(most.second);
}

TEST(ServerStuck, TheProgramEndsBesideADeviceThatHangs) {
    Program program({"serve", "--device", "llvmpipe", "--port", "0", "-c", "1024", "--slots", "1", "--no-draft", "--drain", "1"}); // no thread compiles beside
    const uint16_t port = program.port();
    ASSERT_NE(port, 0) << program.shown();
    std::vector<std::unique_ptr<StreamClient>> streams;
    for (int i = 0; i < 4; ++i) // one after the other
        streams.push_back(std::make_unique<StreamClient>(port, post_json("/v1/completions", R"({"prompt":"Once","stream":true,"max_tokens":900,"ignore_eos":true})")));
    ASSERT_TRUE(streams[0]->wait_for("text"));
    const Thread worker = busiest(program.id());
    if (!worker.stop()) {
        ASSERT_TRUE(errno == EPERM || errno == ENOSYS) << std::strerror(errno);
        GTEST_SKIP() << "the kernel lets no process stop a thread of its child here (ptrace), and nothing else stops one: " << std::strerror(errno);
    }
    Client asks(port);
    EXPECT_EQ(asks.ask(get("/health")).status, 200);
    const auto begin = Clock::now();
    EXPECT_TRUE(wait_until([&] { return asks.ask(get("/health")).status == 503; }, 20s));
    EXPECT_GE(Clock::now() - begin, 3s);
    EXPECT_EQ(asks.ask(get("/health/live")).status, 503);
    const auto end = Clock::now();
    program.signal(SIGTERM);
    const Reply reply = streams.back()->client.read_reply();
    EXPECT_NE(reply.body.find("the server is shutting down"), std::string::npos) << reply.status << reply.body;
    ASSERT_TRUE(wait_until([&] { return worker.has_ended(); }, 30s)) << "the program does not end";
    EXPECT_LT(Clock::now() - end, 20s);
    EXPECT_EQ(program.exit_code(), cli::kExitDevice) << program.shown();
    EXPECT_NE(program.shown().find("the engine does not come back"), std::string::npos) << program.shown();
}

} // namespace
} // namespace auspex::test::stuck_test
