// One turn of the loop: take what came in, move the engine on, tell what became new. While a round runs the thread sleeps
// in the engine for a few milliseconds at a time, because nobody can wake it there; while nothing runs, on its inbox.
#include "server/engine/engine_thread.h"

#include <algorithm>
#include <cmath>

namespace auspex::server {

namespace {

using namespace std::chrono_literals;

constexpr uint32_t kWaitMs = 5;
constexpr auto kIdle = 500ms, kPublish = 50ms, kProgress = 200ms, kEndPoll = 20ms;
constexpr double kSlowTurn = 20; // times what it was expected to take: the device does not come back from it
constexpr size_t kPauseBytes = size_t{256} << 10, kResumeBytes = size_t{64} << 10; // that a reader has not taken

uint32_t retry_after(double wait_ms) {
    return static_cast<uint32_t>(std::clamp(std::ceil(wait_ms / 1000), 1.0, 60.0));
}

std::string full_of(size_t n_alive) {
    return cli::format("%zu answers are being written or waited for, which is as many as there may be", n_alive);
}

} // namespace

EngineThread::EngineThread(Backend& backend, const Settings& settings, Worker& worker, Deliver deliver)
    : backend_(backend), settings_(settings), worker_(worker), deliver_(std::move(deliver)) {}

void EngineThread::join() {
    stop(0ms);
    if (thread_.joinable()) thread_.join();
}

bool EngineThread::stop(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    wake_.notify_one();
    const auto end = Clock::now() + patience;
    while (!ended_.wait_for(lock, kEndPoll, [&] { return has_ended_; }))
        if (Clock::now() >= end && is_stuck()) return false;
    return true;
}

void EngineThread::start(std::function<bool()> open) {
    has_ended_ = false;
    thread_ = std::thread([this, open = std::move(open)] {
        if (open()) run();
        const std::lock_guard lock(mutex_);
        has_ended_ = true;
        ended_.notify_all();
    });
}

void EngineThread::put(Task task) {
    {
        const std::lock_guard lock(mutex_);
        inbox_.push_back(std::move(task));
        has_work_ = true;
    }
    wake_.notify_one();
}

void EngineThread::submit(std::shared_ptr<Ticket> ticket) {
    const size_t n_before = n_open_++;
    if (ticket->text_bytes() <= kLongBytes)
        put([this, ticket = std::move(ticket)] { take_in(ticket); });
    else if (n_before >= settings_.most_alive()) // it would be refused, and its text is memory
        put([this, ticket = std::move(ticket), n_before] { refuse_overload(ticket, full_of(n_before)); });
    else
        worker_.put([this, ticket = std::move(ticket)] { tokenize_long(ticket); });
}

// Makes tokens of it, unless it has them; what keeps it from that.
std::optional<openai::RequestError> EngineThread::prepare(Ticket& ticket) const {
    if (!ticket.prompts.empty()) return {};
    try {
        backend_.prepare(ticket);
        return {};
    } catch (const openai::RequestError& error) {
        return error;
    } catch (const std::exception& error) { // memory, or a fault of ours: this one's client is told, the others go on
        return openai::RequestError("", error.what(), "", 500);
    }
}

void EngineThread::tokenize_long(const std::shared_ptr<Ticket>& ticket) {
    std::optional<openai::RequestError> error;
    if (!ticket->is_gone() && !is_lost_ && !is_draining_) error = prepare(*ticket); // else take_in says so
    put([this, ticket, error] {
        if (error)
            refuse(ticket, *error);
        else
            take_in(ticket);
    });
}

void EngineThread::cancel(std::shared_ptr<Ticket> ticket) {
    put([this, ticket = std::move(ticket)] { drop(ticket); });
}

void EngineThread::call(std::function<void(Backend&)> task) {
    put([this, task = std::move(task)] { task(backend_); });
}

void EngineThread::drain() {
    is_draining_ = true;
}

void EngineThread::end_all(const std::string& reason) {
    put([this, reason] {
        for (const auto& ticket : std::vector(running_))
            cut(ticket, {"", reason, "", 503});
    });
}

std::shared_ptr<const Snapshot> EngineThread::snapshot() const {
    const std::lock_guard lock(snapshot_mutex_);
    return snapshot_;
}

std::string EngineThread::lost_because() const {
    const std::lock_guard lock(snapshot_mutex_);
    return lost_because_;
}

double EngineThread::heartbeat_age_s() const {
    const Clock::rep seen = heartbeat_;
    if (seen == 0) return 0; // it has not begun
    const Clock::duration age = Clock::now().time_since_epoch() - Clock::duration(seen);
    return std::max(0.0, std::chrono::duration<double>(age).count());
}

bool EngineThread::is_stuck() const {
    return is_device_stuck_ || (has_work_ && heartbeat_age_s() > std::chrono::duration<double>(settings_.stuck).count());
}

// ---- the engine thread
// ---------------------------------------------------------------------------------------------------

void EngineThread::run() {
    heartbeat_ = Clock::now().time_since_epoch().count();
    publish(true);
    while (run_tasks()) {
        heartbeat_ = Clock::now().time_since_epoch().count();
        if (!running_.empty()) advance();
        flush();
        publish(Clock::now() - published_ >= kPublish || running_.empty());
        flush(); // where that has lost the engine
    }
    try {
        for (const auto& ticket : std::vector(running_))
            drop(ticket);
    } catch (const cli::Failure&) { // nobody is left to be told
    }
    // What the device was given it still has, and whoever takes the engine down waits for that.
    for (publish(true); snapshot()->load.turn_ms > 0; publish(true)) {
        heartbeat_ = Clock::now().time_since_epoch().count();
        std::this_thread::sleep_for(kEndPoll);
    }
}

// Sleeps while there is nothing to do. False: it is over.
bool EngineThread::run_tasks() {
    std::vector<Task> tasks;
    {
        std::unique_lock lock(mutex_);
        if (running_.empty() && inbox_.empty() && !is_stopping_) {
            has_work_ = false;
            wake_.wait_for(lock, kIdle, [&] { return is_stopping_ || !inbox_.empty(); });
        }
        if (is_stopping_) return false;
        tasks = std::exchange(inbox_, {});
    }
    for (const Task& task : tasks) {
        try {
            task();
        } catch (const cli::Failure& failure) {
            lose(failure);
        } catch (const std::exception&) { // of a call(): its own affair
        }
    }
    return true;
}

void EngineThread::take_in(const std::shared_ptr<Ticket>& ticket) {
    if (ticket->is_gone()) {
        --n_open_;
        return;
    }
    if (is_lost_) return refuse(ticket, {"", lost_because(), "", 503});
    if (is_draining_) return refuse(ticket, {"", "the server is shutting down", "", 503}, 1);
    const size_t n_alive = backend_.n_alive(), most = settings_.most_alive();
    if (ticket->n_sequences() > most)
        return refuse(ticket, {ticket->request.n > 1 ? "n" : "prompt", cli::format("expected at most %zu answers at once, found %u", most, ticket->n_sequences())});
    if (n_alive + ticket->n_sequences() > most) return refuse_overload(ticket, full_of(n_alive));
    if (const auto error = prepare(*ticket)) return refuse(ticket, *error);
    if (const uint64_t n_waiting = settings_.queue_tokens > 0 ? backend_.load().waiting_tokens : 0;
        n_waiting > 0 && n_waiting + ticket->n_prompt_tokens() > settings_.queue_tokens)
        return refuse_overload(ticket, cli::format("%llu prompt tokens wait already, of at most %llu", static_cast<unsigned long long>(n_waiting),
                                                   static_cast<unsigned long long>(settings_.queue_tokens)));
    try {
        backend_.begin(*ticket);
    } catch (const openai::RequestError& error) {
        return refuse(ticket, error);
    } catch (const cli::Failure& failure) {
        lose(failure);
        return refuse(ticket, {"", failure.what(), "", 503});
    } catch (const std::exception& error) { // likewise
        refuse(ticket, {"", error.what(), "", 500});
        return backend_.abandon(*ticket);
    }
    running_.push_back(ticket);
    if (const auto state = backend_.state(*ticket))
        ticket->progress = {state->phase, state->place, state->rows_read, state->rows_to_read};
    ticket->progress_due = Clock::now() + kProgress;
    if (ticket->progress.phase != AUSPEX_PHASE_WAITING) step_.queue_s.push_back(0);
    step_.events.push_back({.ticket = ticket, .kind = TicketEvent::Kind::begun, .progress = ticket->progress});
}

void EngineThread::refuse_overload(const std::shared_ptr<Ticket>& ticket, const std::string& why) {
    const uint32_t wait_s = retry_after(is_lost_ ? 0 : backend_.load().wait_ms);
    refuse(ticket, {"", why + cli::format("; try again in %u s", wait_s), "overloaded", settings_.overload_status}, wait_s);
}

void EngineThread::drop(const std::shared_ptr<Ticket>& ticket) {
    if (std::find(running_.begin(), running_.end(), ticket) == running_.end()) return;
    if (!is_lost_) backend_.abandon(*ticket);
    forget(*ticket);
    for (const auspex_sequence_stats& stats : ticket->take_ended())
        step_.ended.push_back(stats);
    step_.said.add(ticket->take_said());
    step_.said.add(ticket->take_rest());
}

void EngineThread::refuse(const std::shared_ptr<Ticket>& ticket, openai::RequestError error, uint32_t retry_after_s) {
    --n_open_;
    step_.events.push_back({.ticket = ticket,
                            .kind = TicketEvent::Kind::refused,
                            .error = std::move(error),
                            .retry_after_s = retry_after_s});
}

void EngineThread::cut(const std::shared_ptr<Ticket>& ticket, openai::RequestError error) {
    drop(ticket);
    step_.events.push_back({.ticket = ticket, .kind = TicketEvent::Kind::refused, .error = std::move(error)});
}

void EngineThread::has_come_in(const Ticket& ticket) {
    step_.queue_s.push_back(std::chrono::duration<double>(Clock::now() - ticket.arrived()).count());
}

void EngineThread::forget(const cli::Job& job) {
    n_open_ -= std::erase_if(running_, [&](const auto& ticket) { return ticket.get() == &job; });
}

void EngineThread::advance() {
    try {
        std::vector<cli::Job*> ended;
        const bool has_news = backend_.advance(ended);
        collect();
        for (cli::Job* job : ended) {
            const auto at = std::find_if(running_.begin(), running_.end(), [&](const auto& ticket) { return ticket.get() == job; });
            if (at == running_.end()) continue;
            TicketEvent event{.ticket = *at, .kind = TicketEvent::Kind::ended};
            if (job->failure) {
                event.kind = TicketEvent::Kind::refused;
                event.error = openai::RequestError("", job->failure->what(), "", 500);
            }
            step_.said.add((*at)->take_rest());
            step_.events.push_back(std::move(event));
            forget(*job);
        }
        watch_progress();
        watch_readers();
        if (has_news || running_.empty()) return;
        flush();
        const bool all_paused = std::all_of(running_.begin(), running_.end(), [](const auto& ticket) { return ticket->paused_since.has_value(); });
        if (all_paused)
            std::this_thread::sleep_for(kWaitMs * 1ms); // the engine would not wait
        else
            backend_.wait(kWaitMs);
    } catch (const cli::Failure& failure) {
        lose(failure);
    } catch (const std::exception& error) {
        lose(cli::Failure(cli::kExitInternal, error.what()));
    }
}

void EngineThread::collect() {
    for (const auto& ticket : running_) {
        if (!ticket->has_news()) continue;
        if (ticket->progress.phase == AUSPEX_PHASE_WAITING) { // until now, between two looks
            has_come_in(*ticket);
            ticket->progress.phase = AUSPEX_PHASE_RUNNING;
        }
        TicketEvent event{.ticket = ticket, .kind = TicketEvent::Kind::news, .news = ticket->take_news()};
        step_.said.add(ticket->take_said());
        for (const auspex_sequence_stats& stats : ticket->take_ended())
            step_.ended.push_back(stats);
        for (const double gap : ticket->take_gaps())
            step_.gaps_s.push_back(gap);
        if (const double seconds = ticket->take_first_token(); seconds >= 0) step_.first_token_s.push_back(seconds);
        if (ticket->is_stream()) step_.events.push_back(std::move(event));
    }
}

// Those that have not spoken are looked at now and then: whoever waits likes to know for what.
void EngineThread::watch_progress() {
    const auto now = Clock::now();
    for (const auto& ticket : running_) {
        if (ticket->has_spoken() || now < ticket->progress_due) continue;
        ticket->progress_due = now + kProgress;
        const auto state = backend_.state(*ticket);
        if (!state) continue;
        const Ticket::Progress progress = {state->phase, state->place, state->rows_read, state->rows_to_read};
        const bool waited = ticket->progress.phase == AUSPEX_PHASE_WAITING;
        if (waited && progress.phase != AUSPEX_PHASE_WAITING) has_come_in(*ticket);
        if (progress == std::exchange(ticket->progress, progress)) continue;
        if (ticket->is_stream())
            step_.events.push_back({.ticket = ticket, .kind = TicketEvent::Kind::progress, .progress = progress});
    }
}

// A reader who does not keep up is written nothing more until he has read; after a while he is given up.
void EngineThread::watch_readers() {
    const auto now = Clock::now();
    for (const auto& ticket : std::vector(running_)) {
        if (!ticket->is_stream()) continue;
        const size_t n_unsent = ticket->n_unsent();
        if (!ticket->paused_since && n_unsent > kPauseBytes) {
            backend_.park(*ticket);
            ticket->paused_since = now;
        } else if (ticket->paused_since && n_unsent < kResumeBytes) {
            backend_.resume(*ticket);
            ticket->paused_since.reset();
        } else if (ticket->paused_since && now - *ticket->paused_since > settings_.most_pause) {
            const double seconds = std::chrono::duration<double>(settings_.most_pause).count();
            cut(ticket, {"", cli::format("the answer was not read for %g s", seconds), "", 408});
        }
    }
}

// Nothing can be asked of the engine any more.
void EngineThread::lose(const cli::Failure& failure) {
    {
        const std::lock_guard lock(snapshot_mutex_);
        if (lost_because_.empty()) lost_because_ = failure.what();
    }
    lost_exit_code_ = failure.exit_code();
    is_lost_ = true;
    for (const auto& ticket : std::exchange(running_, {}))
        refuse(ticket, {"", failure.what(), "", 503});
}

// It has been in before, and waits: there were too few pages for all.
bool EngineThread::has_lost_its_slot(const Ticket& ticket) const {
    if (is_lost_) return false;
    const auto state = backend_.state(ticket);
    return state && state->phase == AUSPEX_PHASE_WAITING && state->parked_n > 0;
}

void EngineThread::publish(bool is_due) {
    if (!is_due) return;
    published_ = Clock::now();
    auto snapshot = std::make_shared<Snapshot>();
    auspex_engine_load_init(&snapshot->load, sizeof snapshot->load);
    try {
        if (!is_lost_) snapshot->load = backend_.load();
        for (const auto& ticket : running_)
            snapshot->n_parked += has_lost_its_slot(*ticket) ? 1 : 0;
    } catch (const cli::Failure& failure) {
        lose(failure);
    }
    const double stuck_ms = std::chrono::duration<double, std::milli>(settings_.stuck).count();
    is_device_stuck_ = snapshot->load.turn_ms > std::max(stuck_ms, kSlowTurn * snapshot->load.turn_expected_ms);
    snapshot->n_tickets = running_.size();
    for (const auto& ticket : running_) {
        snapshot->n_paused += ticket->paused_since ? 1 : 0;
        Snapshot::Line line{.id = ticket->answer.id,
                            .phase = ticket->paused_since ? AUSPEX_PHASE_PARKED
                                     : ticket->has_spoken() ? AUSPEX_PHASE_RUNNING
                                                            : ticket->progress.phase,
                            .place = ticket->progress.place,
                            .n_choices = ticket->n_choices()};
        for (const auto& prompt : ticket->prompts)
            line.prompt_n += prompt.size();
        line.predicted_n = ticket->n_told();
        snapshot->lines.push_back(std::move(line));
    }
    const std::lock_guard lock(snapshot_mutex_);
    snapshot_ = std::move(snapshot);
}

void EngineThread::flush() {
    if (step_.is_empty()) return;
    deliver_(std::exchange(step_, {}));
}

} // namespace auspex::server
