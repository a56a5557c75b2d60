// The thread that owns the engine. Requests come in, what becomes of them goes out in one batch per step; nobody else
// touches the engine, and this thread waits for no socket. Long texts become tokens on the worker's thread before.
#pragma once

#include "server/engine/backend.h"
#include "server/settings.h"
#include "server/engine/ticket.h"
#include "server/engine/worker.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace auspex::server {

// What happened to a ticket.
struct TicketEvent {
    enum class Kind {
        begun,    // it is the engine's; the head of a stream may go out
        progress, // of its turn, or of the reading of its prompt
        news,
        ended,   // its answer is whole
        refused, // `error` says why; also of one that had begun
    };
    std::shared_ptr<Ticket> ticket;
    Kind kind;
    std::vector<ChoiceNews> news{};
    Ticket::Progress progress{};
    std::optional<openai::RequestError> error{};
    uint32_t retry_after_s = 0; // of a refusal; 0: no use
};

// What a step gave.
struct StepNews {
    std::vector<TicketEvent> events{};
    std::vector<auspex_sequence_stats> ended{}; // sequences
    std::vector<double> first_token_s{}, gaps_s{}, queue_s{};
    Said said{};

    bool is_empty() const { return events.empty() && ended.empty() && said.n == 0 && said.drafted == 0 && queue_s.empty(); }
};

// How things stand, for who must not touch the engine.
struct Snapshot {
    struct Line { // of a ticket
        std::string id{};
        auspex_phase phase = AUSPEX_PHASE_WAITING;
        uint32_t place = 0;
        uint64_t prompt_n = 0, predicted_n = 0;
        size_t n_choices = 0;
    };
    auspex_engine_load load{};
    size_t n_tickets = 0; // not ended
    size_t n_paused = 0;  // of them: their readers are too slow
    size_t n_parked = 0;  // … they lost their slots, and wait for others
    std::vector<Line> lines{};
};

class EngineThread {
  public:
    using Deliver = std::function<void(StepNews)>;
    // deliver: called on the engine thread. Nothing starts before start().
    EngineThread(Backend& backend, const Settings& settings, Worker& worker, Deliver deliver);
    ~EngineThread() { join(); }

    // open: the first thing it does; false is the end of it. It does not count as work.
    void start(std::function<bool()> open);
    // Ends it, and abandons what runs; nothing is delivered afterwards. False: after so long it is stuck.
    bool stop(std::chrono::milliseconds patience);
    void join(); // the same, however long it takes
    // ---- any thread
    void submit(std::shared_ptr<Ticket> ticket);
    void cancel(std::shared_ptr<Ticket> ticket);
    void call(std::function<void(Backend&)> task); // a cli::Failure that it throws is the engine's end; others are lost
    // Refuses what comes from now on.
    void drain();
    // Ends what runs with an error, which is delivered.
    void end_all(const std::string& reason);
    std::shared_ptr<const Snapshot> snapshot() const;
    bool is_lost() const { return is_lost_; } // the device or the engine can no more
    std::string lost_because() const;
    int lost_exit_code() const { return lost_exit_code_; }
    bool is_draining() const { return is_draining_; }
    // It has work and did not get round to it for so long, or the device does not come back from its own.
    bool is_stuck() const;
    double heartbeat_age_s() const; // since it was last seen
    size_t n_open() const { return n_open_; } // tickets that have been submitted and not ended

  private:
    using Task = std::function<void()>; // on the engine thread

    void run();
    void put(Task task);
    bool run_tasks();
    std::optional<openai::RequestError> prepare(Ticket& ticket) const; // the worker's thread, or this
    void tokenize_long(const std::shared_ptr<Ticket>& ticket); // on the worker's thread
    void take_in(const std::shared_ptr<Ticket>& ticket);
    void refuse_overload(const std::shared_ptr<Ticket>& ticket, const std::string& why);
    void drop(const std::shared_ptr<Ticket>& ticket);
    void refuse(const std::shared_ptr<Ticket>& ticket, openai::RequestError error, uint32_t retry_after_s = 0);
    void cut(const std::shared_ptr<Ticket>& ticket, openai::RequestError error); // ends what runs, and says why
    void forget(const cli::Job& job);
    void has_come_in(const Ticket& ticket); // it has its slot
    void advance();
    void collect(); // what tickets got in this step
    void watch_progress();
    void watch_readers();
    void lose(const cli::Failure& failure);
    bool has_lost_its_slot(const Ticket& ticket) const;
    void publish(bool is_due);
    void flush();

    Backend& backend_;
    const Settings& settings_;
    Worker& worker_;
    Deliver deliver_;
    std::vector<std::shared_ptr<Ticket>> running_{}; // begun, not ended
    StepNews step_{};
    Clock::time_point published_{};

    std::mutex mutex_{};
    std::condition_variable wake_{}, ended_{};
    std::vector<Task> inbox_{};
    bool is_stopping_ = false, has_ended_ = true;

    mutable std::mutex snapshot_mutex_{};
    std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<Snapshot>();
    std::string lost_because_{}; // under the same mutex
    std::atomic<bool> is_lost_{false};
    std::atomic<int> lost_exit_code_{0};
    std::atomic<bool> is_draining_{false}, has_work_{false}, is_device_stuck_{false};
    std::atomic<size_t> n_open_{0};
    std::atomic<Clock::rep> heartbeat_{0};
    std::thread thread_{};
};

} // namespace auspex::server
