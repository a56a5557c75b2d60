#include "server/server.h"

#include <algorithm>

namespace auspex::server {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kTick = 1000ms;
constexpr auto kDrainPoll = 20ms, kLastWrites = 1000ms;
constexpr const char* kShuttingDown = "the server is shutting down";

} // namespace

Server::Server(Backend& backend, const Settings& settings)
    : settings_(settings), engine_(backend, settings, worker_,
                                   [this](StepNews step) {
                                       // std::function wants what can be copied
                                       auto news = std::make_shared<StepNews>(std::move(step));
                                       http_.post([this, news] { api_.replies().take(std::move(*news)); });
                                   }),
      api_(settings, engine_, worker_,
           {.post = [this](std::function<void()> task) { http_.post(std::move(task)); },
            .connections = [this] { return http_.counts(); }}),
      http_(settings.http, handler()) {}

http::Handler Server::handler() {
    return {.check = [this](const http::Request& request) { return api_.check(request); },
            .handle = [this](std::shared_ptr<http::Exchange> exchange) { api_.handle(exchange); },
            .refuse = [this](int status, const std::string& message) { return api_.refuse(status, message); }};
}

int Server::run(const Open& open, const std::function<void(const About&)>& when_ready) {
    http_.on_signal([this](int) { begin_drain(); }); // from the beginning: whoever starts servers also stops those that load
    engine_.start([this, open, when_ready] { return load(open, when_ready); });
    http_.after(std::min(kTick, settings_.silence), [this] { tick(); });
    http_.run();
    if (is_loading_) { // which may take minutes, and cannot be broken off
        is_hanging_ = true;
        return cli::kExitOk;
    }
    is_hanging_ = !engine_.stop(settings_.stuck);
    if (!is_hanging_ && load_failure_) std::rethrow_exception(load_failure_);
    if (is_hanging_) return cli::kExitDevice;
    return engine_.is_lost() ? engine_.lost_exit_code() : cli::kExitOk;
}

bool Server::load(const Open& open, const std::function<void(const About&)>& when_ready) {
    try {
        const About about = open();
        is_loading_ = false;
        http_.post([this, about] { api_.open(about); });
        if (when_ready) when_ready(about);
        return true;
    } catch (...) {
        load_failure_ = std::current_exception();
        is_loading_ = false;
        http_.stop();
        return false;
    }
}

void Server::drain() {
    http_.post([this] { begin_drain(); });
}

void Server::tick() {
    api_.replies().keep_alive(settings_.silence);
    if (engine_.is_lost()) return leave(); // whoever was served has been told
    http_.after(std::min(kTick, settings_.silence), [this] { tick(); });
}

void Server::begin_drain() {
    engine_.drain();
    if (++n_signals_ > 1) return http_.stop();
    drain_end_ = Clock::now() + settings_.drain;
    watch_drain();
}

void Server::watch_drain() {
    if (engine_.n_open() == 0 && api_.replies().n_open() == 0) return leave();
    if (Clock::now() >= drain_end_ && !std::exchange(has_ended_all_, true)) engine_.end_all(kShuttingDown);
    if (Clock::now() >= drain_end_ + 2 * kLastWrites) { // the engine does not answer
        api_.replies().refuse_all({"", kShuttingDown, "", 503});
        return leave();
    }
    http_.after(kDrainPoll, [this] { watch_drain(); });
}

void Server::leave() {
    if (std::exchange(is_leaving_, true)) return;
    http_.stop_accepting();
    close_when_quiet(Clock::now() + kLastWrites);
}

void Server::close_when_quiet(Clock::time_point deadline) {
    if (http_.counts().open == 0 || Clock::now() >= deadline) return http_.stop();
    http_.after(kDrainPoll, [this, deadline] { close_when_quiet(deadline); });
}

} // namespace auspex::server
