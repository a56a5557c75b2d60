// A backend without an engine: what it says is known before it begins, "w0 w1 w2 …", and how fast, and what fails, is set by
// the test that has it.
#pragma once

#include "server/engine/backend.h"
#include "server/stand_in_words.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace auspex::test {

class StandIn : public server::Backend {
    using Clock = std::chrono::steady_clock;

  public:
    // ---- any thread
    std::atomic<uint32_t> slots = 16;
    std::atomic<uint32_t> n_tokens = 8;        // then it ends, where the request says nothing
    std::atomic<uint32_t> tokens_per_event = 1;
    std::atomic<int64_t> event_us = 0;         // between events of a choice; 0: as fast as asked
    std::atomic<size_t> padding = 0;           // bytes that each token's text has besides
    std::atomic<bool> says_nothing = false, has_parked = false; // sequences begin, and wait; they have been in before
    std::atomic<bool> counts_prompts_first = false; // what of a prompt was cached is known before its first token
    std::atomic<uint32_t> rows_read = 0, rows_to_read = 0; // of those that have said nothing
    std::atomic<double> turn_ms = 0, turn_expected_ms = 0; // as the device's load has it
    std::atomic<bool> loses_device = false, refuses_prepare = false, refuses_begin = false, fails_job = false;
    std::atomic<bool> holds_reading = false;   // prepare does not return while it says so
    std::atomic<size_t> n_reading = 0;         // that it holds
    std::atomic<bool> prepare_throws = false, advance_throws = false; // what nobody expects

    std::atomic<size_t> n_begun = 0, n_abandoned = 0, n_parked = 0, n_resumed = 0, n_alive_now = 0, n_predicted = 0;

    std::atomic<bool> is_held = false;
    // While it holds, advance() does not return.
    void hold(bool holds) {
        const std::lock_guard lock(mutex_);
        holds_ = holds;
        freed_.notify_all();
    }
    // What requests had their beginnings cached by, in the order in which they began.
    std::vector<std::string> salts() {
        const std::lock_guard lock(mutex_);
        return salts_;
    }
    // When events were made, of a backend with one choice.
    std::vector<Clock::time_point> told_at() {
        const std::lock_guard lock(mutex_);
        return told_at_;
    }

    // ---- the engine thread, and the worker's
    void prepare(cli::Job& job) override {
        ++n_reading;
        while (holds_reading)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --n_reading;
        if (prepare_throws) throw std::length_error("too long for words");
        if (refuses_prepare) throw openai::RequestError("prompt", "expected less", "context_length_exceeded");
        const openai::Request& request = job.request;
        if (request.endpoint == openai::Endpoint::chat) job.prompts.push_back(stand_in_layout(request.messages));
        for (const openai::Prompt& prompt : request.prompts) {
            if (const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt))
                job.prompts.push_back(*ids);
            else
                job.prompts.emplace_back(std::get<std::string>(prompt).size(), 7u);
        }
        openai::Answer& answer = job.answer;
        answer.endpoint = request.endpoint;
        answer.id = openai::random_id(openai::id_prefix(request.endpoint));
        answer.created = 1700000000;
        answer.model = "stand-in";
        answer.fingerprint = "none";
        answer.seed = static_cast<uint64_t>(request.seed.value_or(5));
        answer.choices.resize(job.n_choices());
        answer.has_tokens = request.has_tokens;
        for (size_t i = 0; request.has_echo && i < answer.choices.size(); ++i)
            if (const auto* text = std::get_if<std::string>(&request.prompts[i / request.n])) answer.choices[i].before = *text;
        if (request.logprobs) answer.pieces = stand_in_piece;
    }
    void begin(cli::Job& job) override {
        if (refuses_begin) throw openai::RequestError("", "expected something else");
        {
            const std::lock_guard lock(mutex_);
            salts_.push_back(job.request.cache_salt);
        }
        job.n_begun = job.prompts.size();
        for (size_t i = 0; i < job.n_choices(); ++i)
            live_.push_back({.job = &job, .choice = i, .due = Clock::now()});
        ++n_begun;
        n_alive_now = live_.size();
    }
    void abandon(cli::Job& job) override {
        for (const Live& live : live_)
            if (live.job == &job) job.on_end(stats_of(live));
        n_alive_now -= std::erase_if(live_, [&](const Live& live) { return live.job == &job; });
        ++n_abandoned;
    }
    void park(const cli::Job& job) override {
        for (Live& live : live_)
            if (live.job == &job) live.is_parked = true;
        ++n_parked;
    }
    void resume(const cli::Job& job) override {
        for (Live& live : live_)
            if (live.job == &job) live.is_parked = false;
        ++n_resumed;
    }
    std::optional<auspex_sequence_state> state(const cli::Job& job) override {
        auspex_sequence_state state;
        auspex_sequence_state_init(&state, sizeof state);
        size_t at = 0;
        for (const Live& live : live_) {
            if (live.job == &job) {
                state.phase = at >= slots ? AUSPEX_PHASE_WAITING : live.n_said > 0 || !rows_to_read ? AUSPEX_PHASE_RUNNING : AUSPEX_PHASE_PROMPT;
                if (at >= slots) state.place = static_cast<uint32_t>(at - slots);
                state.parked_n = has_parked ? 1 : 0;
                state.rows_read = rows_read, state.rows_to_read = rows_to_read;
                return state;
            }
            ++at;
        }
        return std::nullopt;
    }
    bool advance(std::vector<cli::Job*>& ended) override {
        {
            std::unique_lock lock(mutex_);
            is_held = holds_;
            freed_.wait(lock, [&] { return !holds_; });
            is_held = false;
        }
        if (advance_throws) throw std::bad_alloc();
        if (loses_device) throw cli::Failure(cli::kExitDevice, "the device was lost");
        bool has_news = false;
        size_t at = 0;
        for (auto live = live_.begin(); live != live_.end() && at < slots; ++at) {
            const bool is_over = !says_nothing && !live->is_parked && Clock::now() >= live->due && speak(*live, ended);
            has_news = has_news || is_over;
            live = is_over ? live_.erase(live) : std::next(live);
        }
        n_alive_now = live_.size();
        for (cli::Job* job : ended)
            if (job->failure) n_alive_now -= std::erase_if(live_, [&](const Live& live) { return live.job == job; });
        return has_news || (event_us == 0 && !live_.empty() && !says_nothing);
    }
    void wait(uint32_t timeout_ms) override {
        auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
        size_t at = 0;
        for (const Live& live : live_) {
            if (at++ >= slots) break;
            if (!live.is_parked && !says_nothing) until = std::min(until, live.due);
        }
        std::this_thread::sleep_until(until);
    }
    size_t n_alive() const override { return live_.size(); }
    auspex_engine_load load() override {
        auspex_engine_load load;
        auspex_engine_load_init(&load, sizeof load);
        load.n_running = static_cast<uint32_t>(std::min<size_t>(live_.size(), slots));
        load.n_waiting = static_cast<uint32_t>(live_.size()) - load.n_running;
        size_t at = 0;
        for (const Live& live : live_)
            if (at++ >= slots && live.choice % live.job->request.n == 0) load.waiting_tokens += live.job->prompts[live.choice / live.job->request.n].size();
        load.wait_ms = 2300;
        load.turn_ms = turn_ms, load.turn_expected_ms = turn_expected_ms;
        load.target_pages = 100, load.target_pages_free = 100 - load.n_running, load.target_pages_evictable = 30;
        return load;
    }

  private:
    struct Live {
        cli::Job* job;
        size_t choice;
        Clock::time_point due;
        bool is_parked = false;
        uint32_t n_said = 0, rounds = 0, n_accepted = 0;
    };

    // One event. True: it has ended.
    bool speak(Live& live, std::vector<cli::Job*>& ended) {
        cli::Job& job = *live.job;
        openai::Choice& choice = job.answer.choices[live.choice];
        if (fails_job) {
            job.failure = cli::Failure(cli::kExitFile, "its numbers are none");
            ended.push_back(&job);
            return false; // erased with the others of its job
        }
        const bool is_reader = live.choice % job.request.n == 0; // of its prompt
        if (counts_prompts_first && is_reader && live.rounds == 0) job.answer.totals.add_prompt(stats_of(live));
        const uint32_t most = job.request.max_tokens.value_or(n_tokens);
        std::vector<auspex_token> tokens;
        for (uint32_t i = 0; i < tokens_per_event && choice.stop_reason == AUSPEX_STOP_NONE; ++i) {
            const bool is_end = !job.request.max_tokens && live.n_said >= most;
            if (live.n_said >= most && !is_end) {
                choice.stop_reason = AUSPEX_STOP_LENGTH; // of max_tokens 0
                break;
            }
            const uint32_t id = is_end ? kEndToken : 100 + live.n_said;
            const std::string text = is_end ? "" : stand_in_piece(id).bytes + std::string(padding, '.');
            tokens.push_back({id, i + 1 == tokens_per_event ? AUSPEX_TOKEN_BONUS : AUSPEX_TOKEN_ACCEPTED, static_cast<uint32_t>(text.size())});
            if (tokens_per_event == 1) tokens.back().origin = AUSPEX_TOKEN_PLAIN;
            choice.text += text;
            if (job.request.has_tokens) choice.tokens.push_back(id);
            if (job.request.logprobs) choice.logprobs.push_back(stand_in_logprobs(id, live.n_said, *job.request.logprobs));
            ++live.n_said;
            ++n_predicted;
            if (is_end) choice.stop_reason = AUSPEX_STOP_EOS;
            else if (job.request.max_tokens && live.n_said == most) choice.stop_reason = AUSPEX_STOP_LENGTH;
        }
        for (const auspex_token& token : tokens)
            live.n_accepted += token.origin == AUSPEX_TOKEN_ACCEPTED ? 1 : 0;
        if (!tokens.empty()) {
            ++live.rounds;
            const std::lock_guard lock(mutex_);
            told_at_.push_back(Clock::now());
        }
        live.due = event_us > 0 ? live.due + std::chrono::microseconds(event_us) : Clock::now();
        const bool is_over = choice.stop_reason != AUSPEX_STOP_NONE;
        if (is_over) {
            auspex_sequence_stats stats = stats_of(live);
            if (is_reader && !counts_prompts_first) job.answer.totals.add_prompt(stats);
            job.answer.totals.add_choice(stats);
            ++job.n_ended;
        }
        job.on_news(live.choice, tokens);
        if (!is_over) return false;
        job.on_end(stats_of(live));
        if (job.has_ended()) ended.push_back(&job);
        return true;
    }

    static auspex_sequence_stats stats_of(const Live& live) {
        const cli::Job& job = *live.job;
        return stand_in_stats(static_cast<uint32_t>(job.prompts[live.choice / job.request.n].size()), live.n_said, live.rounds, live.n_accepted);
    }

    std::list<Live> live_; // in the order in which they came: the first `slots` of them run
    std::mutex mutex_;
    std::condition_variable freed_;
    bool holds_ = false;
    std::vector<Clock::time_point> told_at_;
    std::vector<std::string> salts_;
};

} // namespace auspex::test
