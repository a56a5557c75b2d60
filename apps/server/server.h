// A server's life: it listens, answers, drains and ends. The thread that calls run() is the I/O thread.
#pragma once

#include "server/api.h"
#include "server/backend.h"
#include "server/engine_thread.h"
#include "server/settings.h"

#include <string>

namespace auspex::server {

class Server {
  public:
    // Binds. Throws http::BindError. All three must outlive it.
    Server(Backend& backend, const Settings& settings, const About& about);
    ~Server() { engine_.join(); } // what it tells goes to members that are destroyed before it

    std::string url() const { return http_.url(); }
    uint16_t port() const { return http_.port(); }
    // Answers until it is told to end, by SIGINT, SIGTERM or drain(), or the device is lost. The exit code.
    int run();
    // After run(): the engine did not come back. The destructor would wait for it.
    bool is_hanging() const { return is_hanging_; }
    void drain(); // any thread. Running answers are finished within the settings' time; the second time they are not
    EngineThread& engine() { return engine_; }

  private:
    http::Handler handler();
    void tick();
    void begin_drain();
    void watch_drain();
    void leave();
    void close_when_quiet(Clock::time_point deadline);

    const Settings& settings_;
    EngineThread engine_;
    Api api_;
    http::Server http_;
    int n_signals_ = 0;
    bool has_ended_all_ = false, is_leaving_ = false, is_hanging_ = false;
    Clock::time_point drain_end_{};
};

} // namespace auspex::server
