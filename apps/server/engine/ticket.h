// A request on its way: made by the I/O thread, answered by the engine thread, which tells of it in batches.
#pragma once

#include "cli/common/engine/job.h"
#include "server/http/http_server.h"

#include <algorithm>
#include <array>
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

// Tokens that were said, by how they came about: of any number of rounds, also of one in the middle of an answer.
struct Said {
    uint64_t n = 0, accepted = 0;
    uint64_t drafted = 0; // that were tested, as far as known: of a running answer at least these
    std::array<uint64_t, AUSPEX_MAX_DRAFT_LEN> accepted_at{}; // by position in the round

    uint64_t own() const { return n - accepted; } // plain ones, corrections and bonuses

    void add(const Said& other) {
        n += other.n;
        accepted += other.accepted;
        drafted += other.drafted;
        for (size_t i = 0; i < accepted_at.size(); ++i)
            accepted_at[i] += other.accepted_at[i];
    }
    void add(const auspex_sequence_stats& stats) {
        n += stats.predicted_n;
        accepted += stats.draft_n_accepted;
        drafted += stats.draft_n;
        uint64_t rounds = 0; // that accepted more than i
        for (size_t i = accepted_at.size(); i-- > 0;)
            accepted_at[i] += rounds += stats.accepted_histogram[i + 1];
    }
    // What it has more than the other, which stays in itself consistent.
    Said minus(const Said& other) const {
        Said rest;
        const auto above = [](uint64_t a, uint64_t b) { return a - std::min(a, b); };
        rest.accepted = above(accepted, other.accepted);
        rest.n = rest.accepted + above(own(), other.own());
        rest.drafted = above(drafted, other.drafted);
        uint64_t left = rest.accepted;
        for (size_t i = 0; i < accepted_at.size(); ++i)
            left -= rest.accepted_at[i] = std::min(left, above(accepted_at[i], other.accepted_at[i]));
        rest.accepted_at[0] += left;
        return rest;
    }
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
    // Tokens since it was last asked.
    Said take_said() {
        told_n_.add(said_);
        return std::exchange(said_, {});
    }
    // Of what has ended and nobody was told of: drafts that rounds tested besides, and tokens of an answer that was taken away.
    Said take_rest() {
        const Said rest = counted_.minus(told_n_);
        told_n_.add(rest);
        return rest;
    }
    bool has_news() const { return !news_.empty() || !ended_.empty(); }
    bool has_spoken() const { return has_spoken_; }
    uint64_t n_told() const { return told_n_.n + said_.n; } // tokens
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
        for (const auspex_token& token : tokens)
            count(told, token);
        told.text_bytes = of.text.size();
        told.n_logprobs = of.logprobs.size();
        news_.push_back(std::move(news));
    }
    void on_end(const auspex_sequence_stats& stats) override {
        ended_.push_back(stats);
        counted_.add(stats);
    }

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
        size_t n_accepted = 0; // of the round that its last tokens are of
        std::optional<Clock::time_point> last{};
    };

    // A round is accepted drafts and one token more, unless it ends in the middle.
    void count(Told& told, const auspex_token& token) {
        ++said_.n;
        if (token.origin != AUSPEX_TOKEN_ACCEPTED) {
            said_.drafted += token.origin == AUSPEX_TOKEN_CORRECTION ? 1 : 0; // for the draft that it corrects
            told.n_accepted = 0;
            return;
        }
        ++said_.accepted;
        ++said_.drafted;
        ++said_.accepted_at[std::min(told.n_accepted++, said_.accepted_at.size() - 1)];
    }

    std::shared_ptr<http::Exchange> exchange_;
    bool is_stream_;
    Clock::time_point arrived_ = Clock::now();
    std::vector<Told> told_{};
    std::vector<ChoiceNews> news_{};
    std::vector<auspex_sequence_stats> ended_{};
    std::vector<double> gaps_{};
    Said said_{}, told_n_{}, counted_{};
    double first_token_ = -1;
    bool has_spoken_ = false;
};

} // namespace auspex::server
