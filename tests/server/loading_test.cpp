// What is answered while models are loaded, and what becomes of a server whose models cannot be.
#include "server/server_peers.h"

#include <csignal>

namespace auspex::test::loading_test {
namespace {

using namespace std::chrono_literals;

// Its models are loaded when `loaded` says so.
class LoadingServer {
  public:
    explicit LoadingServer(Settings asked = quick_settings()) : settings(std::move(asked)), server(backend, settings), thread_([this] {
              try {
                  exit_code = server.run([this]() -> server::About {
                      loaded.get_future().get();
                      return stand_in_about();
                  }, [this](const server::About&) {
                      while (holds_when_ready)
                          std::this_thread::sleep_for(1ms);
                  });
              } catch (const cli::Failure& error) {
                  failure = error.what();
              }
          }) {}
    ~LoadingServer() {
        server.drain();
        join();
    }
    void join() {
        if (thread_.joinable()) thread_.join();
    }

    StandIn backend;
    Settings settings;
    std::promise<void> loaded; // or why not
    std::atomic<bool> holds_when_ready = false;
    server::Server server;
    int exit_code = -1;
    std::string failure;

  private:
    std::thread thread_;
};

constexpr const char* kHi = R"({"prompt":"hi","max_tokens":1})";

TEST(ServerLoading, IsSaidUntilItIsOver) {
    Settings settings = quick_settings();
    settings.stuck = 100ms; // which loading is not
    LoadingServer served(settings);
    std::this_thread::sleep_for(300ms);
    const Reply health = ask(served.server.port(), get("/health"));
    EXPECT_EQ(health.status, 503);
    EXPECT_EQ(json_of(health)["error"], (Json{{"code", 503}, {"message", "Loading model"}, {"type", "unavailable_error"}}));
    EXPECT_EQ(header_of(health, "Retry-After"), "1");
    EXPECT_EQ(ask(served.server.port(), get("/health/live")).status, 200);
    EXPECT_EQ(ask(served.server.port(), get("/")).status, 200);
    for (const char* path : {"/metrics", "/slots", "/v1/models", "/v1/models/stand-in", "/props"})
        EXPECT_EQ(refusal_of(ask(served.server.port(), get(path))), "503 - -") << path;
    for (const char* path : {"/v1/completions", "/v1/chat/completions", "/completion", "/tokenize", "/detokenize", "/apply-template"}) {
        const Reply reply = ask(served.server.port(), post_json(path, kHi));
        EXPECT_EQ(refusal_of(reply), "503 - -") << path;
        EXPECT_EQ(header_of(reply, "Retry-After"), "1") << path;
    }
    EXPECT_EQ(refusal_of(ask(served.server.port(), get("/nothing"))).substr(0, 3), "404");
    served.loaded.set_value();
    EXPECT_TRUE(wait_until([&] { return ask(served.server.port(), get("/health")).status == 200; }));
    EXPECT_EQ(ask(served.server.port(), post_json("/v1/completions", kHi)).status, 200);
    EXPECT_EQ(ask(served.server.port(), get("/metrics")).status, 200);
}

// The engine's thread has not begun its rounds: it does not hang.
TEST(ServerLoading, WhoComesAtOnceIsTakenIn) {
    LoadingServer served;
    served.holds_when_ready = true;
    served.loaded.set_value();
    EXPECT_TRUE(wait_until([&] { return ask(served.server.port(), get("/health")).status == 200; }));
    StreamClient first(served.server.port(), post_json("/v1/completions", kHi));
    EXPECT_TRUE(wait_until([&] { return served.server.engine().n_open() == 1; }));
    EXPECT_EQ(ask(served.server.port(), get("/health")).status, 200);
    StreamClient second(served.server.port(), post_json("/v1/completions", kHi));
    EXPECT_TRUE(wait_until([&] { return served.server.engine().n_open() == 2; }));
    served.holds_when_ready = false;
    EXPECT_TRUE(first.wait_for("\"finish_reason\""));
    EXPECT_TRUE(second.wait_for("\"finish_reason\""));
}

TEST(ServerLoading, KeysAreAskedForFirst) {
    Settings settings = quick_settings();
    settings.keys = {"right"};
    LoadingServer served(settings);
    EXPECT_EQ(ask(served.server.port(), post_json("/v1/completions", kHi)).status, 401);
    EXPECT_EQ(ask(served.server.port(), post_json("/v1/completions", kHi, "Authorization: Bearer right\r\n")).status, 503);
    served.loaded.set_value();
}

TEST(ServerLoading, AFailureIsTheEnd) {
    LoadingServer served;
    Client waits(served.server.port());
    EXPECT_EQ(waits.ask(get("/health")).status, 503);
    served.loaded.set_exception(std::make_exception_ptr(cli::Failure(cli::kExitFile, "no such model")));
    served.join();
    EXPECT_EQ(served.failure, "no such model");
    EXPECT_EQ(served.exit_code, -1);
}

// Loading takes as long as it takes: nobody waits for it who has told the server to end.
TEST(ServerLoading, CanBeTheEnd) {
    for (const int signal : {0, SIGTERM, SIGINT}) {
        LoadingServer served;
        EXPECT_EQ(ask(served.server.port(), get("/health")).status, 503);
        signal == 0 ? served.server.drain() : static_cast<void>(::kill(::getpid(), signal));
        served.join();
        EXPECT_EQ(served.exit_code, 0) << signal;
        EXPECT_TRUE(served.server.is_hanging()) << signal;
        EXPECT_EQ(served.failure, "");
        served.loaded.set_value(); // its thread ends with it
    }
}

} // namespace
} // namespace auspex::test::loading_test
