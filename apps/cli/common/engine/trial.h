// One completion, timed. Leaves to others which ones are compared.
#pragma once

#include "cli/common/engine/client.h"

namespace auspex::cli {

// One way of decoding.
struct Way {
    auspex_drafter drafter = AUSPEX_DRAFTER_NONE;
    uint32_t draft_len = 0; // 0: plain

    bool is_plain() const { return draft_len == 0; }
    std::string name() const; // "plain", "model 4", "auto"
};

struct Trial {
    auspex_sequence_stats stats{};
    std::vector<auspex_token> tokens{};
    auspex_round_times times{}; // sums over its rounds of the way's draft_len; of auto over all
    bool has_gpu_times = true;
    double tokens_per_second = 0.0;
    std::optional<double> cpu_us_per_round{}; // of this thread, in the API and reading what it gives, once rounds are recorded
};

// What every completion has in common. sampling's drafter and draft_len are the way's.
struct TrialSetting {
    SamplingOptions sampling{};
    std::vector<uint32_t> prompt_tokens{};
    uint32_t n_predict = 0;
    std::optional<double> simulated_alpha{};
    bool is_prepared = false; // by the caller, as far as it shall be: no kernel is compiled before the prompt is read
};

// The only sequence of its engine; end tokens do not stop it. Failure(kExitInterrupted) after Ctrl-C.
Trial complete_once(Client& client, const TrialSetting& setting, const Way& way, uint64_t seed);

// Σ of rounds, for mean passes.
void add(const auspex_round_times& times, auspex_round_times& sum);

} // namespace auspex::cli
