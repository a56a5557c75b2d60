// A server's life: it listens, loads its models, answers, drains and ends. The thread that calls run() is the I/O thread.
#pragma once

#include "server/api.h"
#include "server/engine/backend.h"
#include "server/engine/engine_thread.h"
#include "server/settings.h"

#include <atomic>
#include <exception>
#include <functional>
#include <string>

namespace auspex::server {

class Server {
  public:
    // What opens the backend, on the engine thread, and tells what it is.
    using Open = std::function<About()>;

    // Binds. Throws http::BindError. Both must outlive it.
    Server(Backend& backend, const Settings& settings);
    ~Server() { engine_.join(); } // what it tells goes to members that are destroyed before it

    std::string url() const { return http_.url(); }
    uint16_t port() const { return http_.port(); }
    // Says that it is loading until the backend is open; then calls when_ready, on the engine thread, and answers until it is
    // told to end, by SIGINT, SIGTERM or drain(), or the device is lost. The exit code. Throws what the two throw. Told to end
    // while it is loading it returns at once, and is_hanging().
    int run(const Open& open, const std::function<void(const About&)>& when_ready = {});
    // After run(): the engine did not come back, or is not loaded yet. The destructor would wait for it.
    bool is_hanging() const { return is_hanging_; }
    void drain(); // any thread. Running answers are finished within the settings' time; the second time they are not
    EngineThread& engine() { return engine_; }

  private:
    http::Handler handler();
    bool load(const Open& open, const std::function<void(const About&)>& when_ready);
    void tick();
    void begin_drain();
    void watch_drain();
    void leave();
    void close_when_quiet(Clock::time_point deadline);

    const Settings& settings_;
    EngineThread engine_;
    Api api_;
    http::Server http_;
    Worker worker_{}; // its tasks use all of these
    int n_signals_ = 0;
    bool has_ended_all_ = false, is_leaving_ = false, is_hanging_ = false;
    Clock::time_point drain_end_{};
    std::atomic<bool> is_loading_{true};
    std::exception_ptr load_failure_{}; // the engine thread's until that has ended
};

} // namespace auspex::server
