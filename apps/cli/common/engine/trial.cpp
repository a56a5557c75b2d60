// Completions one at a time.
#include "cli/common/engine/trial.h"

#include "cli/common/output/figures.h"
#include "cli/common/system/terminal.h"

namespace auspex::cli {

namespace {

constexpr uint64_t kUnsteadyRounds = 4; // may be recorded while they are submitted

// Of the way's rounds, since they were last taken.
auspex_round_times take_times(Client& client, const Way& way, bool& has_gpu_times) {
    auspex_round_times sum{};
    const bool is_auto = way.draft_len == AUSPEX_DRAFT_LEN_AUTO;
    const uint32_t first = is_auto ? 0 : way.draft_len, last = is_auto ? client.info().max_draft_len : way.draft_len;
    for (uint32_t draft_len = first; draft_len <= last; ++draft_len) {
        const auspex_round_times times = client.take_round_times(draft_len);
        if (times.rounds > 0 && times.verify_ms < 0.0) has_gpu_times = false;
        add(times, sum);
    }
    return sum;
}

} // namespace

std::string Way::name() const {
    if (is_plain()) return "plain";
    const std::string drafter_text = drafter_name(drafter);
    if (draft_len == AUSPEX_DRAFT_LEN_AUTO) return drafter == AUSPEX_DRAFTER_AUTO ? "auto" : drafter_text + " auto";
    return drafter_text + format(" %u", draft_len);
}

Trial complete_once(Client& client, const TrialSetting& setting, const Way& way, uint64_t seed) {
    SequenceDesc desc(setting.sampling, seed);
    desc.set_prompt(setting.prompt_tokens);
    desc->max_tokens = setting.n_predict;
    desc->drafter = way.drafter;
    desc->draft_len = way.draft_len;
    desc->ignore_eos = 1;

    auspex_simulated_acceptance simulated;
    auspex_simulated_acceptance_init(&simulated, sizeof simulated);
    if (setting.simulated_alpha) {
        simulated.alpha = static_cast<float>(*setting.simulated_alpha);
        desc->header.next = &simulated;
    }

    Trial trial;
    bool ignored = true;
    take_times(client, way, ignored);
    if (!setting.is_prepared) client.prepare(*desc); // what is measured is no compiler
    const auspex_sequence sequence = client.create(*desc);
    std::string text;
    bool is_finished = false;
    const uint64_t first_round = client.rounds_read() + kUnsteadyRounds;
    uint64_t steady_round = 0, steady_ns = 0; // from which on the thread's time counts
    while (!is_finished) {
        if (steady_ns == 0 && client.rounds_read() >= first_round) {
            steady_round = client.rounds_read();
            steady_ns = thread_cpu_ns();
        }
        is_finished = client.step();
        client.read(sequence, trial.tokens, text);
        if (interrupted()) throw Failure(kExitInterrupted, "interrupted");
        if (!is_finished) client.wait();
    }
    if (const uint64_t rounds = client.rounds_read() - steady_round; steady_ns != 0 && rounds > 0)
        trial.cpu_us_per_round = static_cast<double>(thread_cpu_ns() - steady_ns) * 1e-3 / static_cast<double>(rounds);
    trial.stats = client.stats(sequence);
    client.destroy(sequence);
    trial.times = take_times(client, way, trial.has_gpu_times);
    trial.tokens_per_second = per_second(trial.stats.predicted_n, trial.stats.predicted_ms).value_or(0.0);
    return trial;
}

void add(const auspex_round_times& times, auspex_round_times& sum) {
    sum.rounds += times.rounds;
    sum.draft_ms += times.draft_ms;
    sum.verify_ms += times.verify_ms;
    sum.accept_ms += times.accept_ms;
    sum.wall_ms += times.wall_ms;
}

} // namespace auspex::cli
