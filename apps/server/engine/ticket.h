// A request on its way: made by the I/O thread, answered by the engine thread, which tells of it in batches.
#pragma once

#include "cli/common/engine/job.h"
#include "server/http/http_server.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace auspex::server {

using Clock = std::chrono::steady_clock;

// What a choice has got.
struct ChoiceNews {
    size_t choice = 0;
    std::string text{};
    std::vector<auspex_token> tokens{};
    std::vector<auspex_token_logprobs> logprobs{};
    auspex_stop_reason stop_reason = AUSPEX_STOP_NONE; // else it has ended
    std::optional<uint64_t> cached_n{}; // tokens of the request's prompts that were in the cache, once that is known
};

class Ticket : public cli::Job {
  public:
    Ticket(std::shared_ptr<http::Exchange> exchange, openai::Request asked)
        : exchange_(std::move(exchange)), is_stream_(asked.stream.has_value()) {
        request = std::move(asked);
    }

    // ---- both threads
    bool is_stream() const { return is_stream_; }
    Clock::time_point arrived() const { return arrived_; }
    size_t n_unsent() const { return exchange_->n_unsent(); }
    bool is_gone() const { return exchange_->is_gone(); }
    uint32_t n_sequences() const { return request.n_prompts() * request.n; }
    size_t text_bytes() const { // that have to become tokens
        size_t bytes = 0;
        for (const openai::Message& message : request.messages)
            bytes += message.content.size();
        for (const openai::Prompt& prompt : request.prompts)
            if (const auto* text = std::get_if<std::string>(&prompt)) bytes += text->size();
        return bytes;
    }

    // ---- the I/O thread
    http::Exchange& exchange() { return *exchange_; }

    // ---- the engine thread
    size_t n_prompt_tokens() const {
        size_t n = 0;
        for (const std::vector<uint32_t>& prompt : prompts)
            n += prompt.size();
        return n;
    }
    std::vector<ChoiceNews> take_news() { return std::exchange(news_, {}); }
    std::vector<auspex_sequence_stats> take_ended() { return std::exchange(ended_, {}); }
    std::vector<double> take_gaps() { return std::exchange(gaps_, {}); } // seconds between news of a choice
    bool has_news() const { return !news_.empty() || !ended_.empty(); }
    bool has_spoken() const { return has_spoken_; }
    uint64_t n_told() const { return n_told_; } // tokens
    // Seconds from its arrival to its first token; < 0: none yet, or it was told.
    double take_first_token() { return std::exchange(first_token_, -1); }

    void on_news(size_t choice, std::span<const auspex_token> tokens) override {
        told_.resize(answer.choices.size());
        Told& told = told_[choice];
        const openai::Choice& of = answer.choices[choice];
        const auto now = Clock::now();
        if (!tokens.empty()) {
            if (told.last)
                gaps_.push_back(std::chrono::duration<double>(now - *told.last).count());
            told.last = now;
            if (!has_spoken_) first_token_ = std::chrono::duration<double>(now - arrived_).count();
            has_spoken_ = true;
        }
        ChoiceNews news{.choice = choice, .stop_reason = of.stop_reason};
        if (answer.totals.prompt_n > 0) news.cached_n = answer.totals.cached_n;
        if (is_stream_) { // a whole answer is read when it has ended
            news.text = of.text.substr(told.text_bytes);
            news.logprobs.assign(of.logprobs.begin() + static_cast<std::ptrdiff_t>(told.n_logprobs), of.logprobs.end());
        }
        news.tokens.assign(tokens.begin(), tokens.end());
        n_told_ += tokens.size();
        told.text_bytes = of.text.size();
        told.n_logprobs = of.logprobs.size();
        news_.push_back(std::move(news));
    }
    void on_end(const auspex_sequence_stats& stats) override {
        ended_.push_back(stats);
        n_counted_ += stats.predicted_n;
    }
    // Tokens of what has ended that nobody was told of: those of an answer that was taken away.
    uint64_t n_untold() const { return n_counted_ - std::min(n_counted_, n_told_); }

    struct Progress {
        auspex_phase phase = AUSPEX_PHASE_WAITING;
        uint32_t place = 0, rows_read = 0, rows_to_read = 0;
        bool operator==(const Progress&) const = default;
    };
    Progress progress{};
    Clock::time_point progress_due{};
    std::optional<Clock::time_point> paused_since{}; // its reader is too slow

  private:
    struct Told {
        size_t text_bytes = 0, n_logprobs = 0;
        std::optional<Clock::time_point> last{};
    };

    std::shared_ptr<http::Exchange> exchange_;
    bool is_stream_;
    Clock::time_point arrived_ = Clock::now();
    std::vector<Told> told_{};
    std::vector<ChoiceNews> news_{};
    std::vector<auspex_sequence_stats> ended_{};
    std::vector<double> gaps_{};
    uint64_t n_told_ = 0, n_counted_ = 0;
    double first_token_ = -1;
    bool has_spoken_ = false;
};

} // namespace auspex::server
