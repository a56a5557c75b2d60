// A request while it is answered.
#pragma once

#include "cli/common/input/values.h"
#include "openai/answer.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace auspex::cli {

struct Job {
    openai::Request request{};
    std::vector<std::vector<uint32_t>> prompts{}; // token ids
    openai::Answer answer{};                      // choices and totals grow
    size_t n_begun = 0;                           // prompts
    size_t n_ended = 0;                           // choices
    std::optional<Failure> failure{};             // it has ended without an answer

    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    virtual ~Job() = default;
    // What answer.choices[choice] has got since, which may be its end; its new tokens, those of no text among them.
    virtual void on_news(size_t /*choice*/, std::span<const auspex_token> /*tokens*/) {}
    // A sequence of it has ended, or is taken away.
    virtual void on_end(const auspex_sequence_stats& /*stats*/) {}

    size_t n_choices() const { return prompts.size() * request.n; }
    bool has_begun_all() const { return n_begun == prompts.size(); }
    bool has_ended() const { return failure || n_ended == n_choices(); }
};

} // namespace auspex::cli
