// A request of a batch while it is answered.
#pragma once

#include "openai/answer.h"
#include "openai/batch_line.h"

#include <cstdint>
#include <string>
#include <vector>

namespace auspex::cli {

struct Job {
    uint64_t line = 0; // of the input
    std::string custom_id{};
    openai::Request request{};
    std::vector<std::vector<uint32_t>> prompts{}; // token ids
    openai::Answer answer{};                      // choices and totals grow
    size_t n_begun = 0;                           // prompts
    size_t n_ended = 0;                           // choices

    size_t n_choices() const { return prompts.size() * request.n; }
    bool has_begun_all() const { return n_begun == prompts.size(); }
    bool has_ended() const { return n_ended == n_choices(); }
};

} // namespace auspex::cli
