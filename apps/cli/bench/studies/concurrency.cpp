// auspex bench --concurrency: sequences that come at random moments, so many at once, with --drafter auto and without drafts in turn.
#include "cli/bench/comparison.h"
#include "cli/bench/studies/concurrency_report.h"
#include "cli/bench/studies/prompts.h"
#include "cli/common/output/figures.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace auspex::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kRequestsOfEach = 3; // of every place
constexpr uint32_t kMostRoundsBetween = 8; // a place stays empty for up to so many rounds of the others

struct Run {
    double tokens_per_second = 0.0;
    double first_token_ms = 0.0; // median
    double longest_gap_ms = 0.0; // 99th percentile of the longest gap between two reads that brought tokens, of each sequence
    double cpu_us_per_round = 0.0;
};

// One client's place: a sequence, or how many rounds it waits until the next one.
struct Place {
    auspex_sequence sequence{};
    uint32_t n_left = kRequestsOfEach;
    uint32_t n_tokens_left = 0;
    uint64_t comes_at_round = 0;
    Clock::time_point created{}, last_read{};
    double longest_gap_ms = 0.0;
    bool has_token = false;
    bool is_live() const { return sequence.id != 0; }
};

double ms_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
}

double percentile(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

class Crowd {
  public:
    Crowd(Client& client, const std::vector<std::vector<uint32_t>>& prompts, const BenchOptions& options, const Way& way, uint32_t n, uint64_t seed)
        : client_(client), prompts_(prompts), options_(options), way_(way), places_(n), random_(seed), seed_(seed) {}

    Run run() {
        for (Place& place : places_)
            place.comes_at_round = client_.rounds_read() + pause();
        const Clock::time_point begun = Clock::now();
        const uint64_t first_round = client_.rounds_read(), first_cpu_ns = thread_cpu_ns();
        for (bool is_over = false; !is_over;) {
            const bool is_idle = std::none_of(places_.begin(), places_.end(), [](const Place& place) { return place.is_live(); });
            is_over = true;
            for (Place& place : places_) {
                if (!place.is_live() && place.n_left > 0 && (is_idle || client_.rounds_read() >= place.comes_at_round)) begin(place);
                is_over = is_over && !place.is_live() && place.n_left == 0;
            }
            if (is_over) break;
            client_.step();
            bool has_ended = false;
            for (Place& place : places_)
                if (place.is_live()) has_ended |= collect(place);
            if (interrupted()) throw Failure(kExitInterrupted, "interrupted");
            if (!has_ended) client_.wait();
        }
        Run result;
        result.tokens_per_second = static_cast<double>(n_tokens_) * 1e3 / ms_between(begun, Clock::now());
        result.first_token_ms = percentile(first_token_ms_, 0.5);
        result.longest_gap_ms = percentile(longest_gaps_ms_, 0.99);
        const uint64_t rounds = client_.rounds_read() - first_round;
        result.cpu_us_per_round = rounds == 0 ? 0.0 : static_cast<double>(thread_cpu_ns() - first_cpu_ns) * 1e-3 / static_cast<double>(rounds);
        return result;
    }

  private:
    uint64_t pause() { return random_() % (kMostRoundsBetween + 1); }

    void begin(Place& place) {
        SequenceDesc desc(options_.sampling, seed_ + n_begun_);
        desc.set_prompt(prompts_[n_begun_ % prompts_.size()]);
        desc->max_tokens = options_.n_predict / 2 + static_cast<uint32_t>(random_() % options_.n_predict); // half to one and a half
        desc->drafter = way_.drafter;
        desc->draft_len = way_.draft_len;
        desc->ignore_eos = 1;
        ++n_begun_;
        place = {.sequence = client_.create(*desc), .n_left = place.n_left - 1, .n_tokens_left = desc->max_tokens, .created = Clock::now()};
    }

    // True when its sequence has ended.
    bool collect(Place& place) {
        tokens_.clear();
        text_.clear();
        client_.read(place.sequence, tokens_, text_);
        if (!tokens_.empty()) {
            const Clock::time_point now = Clock::now();
            if (place.has_token) place.longest_gap_ms = std::max(place.longest_gap_ms, ms_between(place.last_read, now));
            else first_token_ms_.push_back(ms_between(place.created, now));
            place.has_token = true;
            place.last_read = now;
            n_tokens_ += tokens_.size();
            place.n_tokens_left -= static_cast<uint32_t>(tokens_.size());
        }
        if (place.n_tokens_left > 0) return false;
        longest_gaps_ms_.push_back(place.longest_gap_ms);
        client_.destroy(place.sequence);
        place.sequence = {};
        place.comes_at_round = client_.rounds_read() + pause();
        return true;
    }

    Client& client_;
    const std::vector<std::vector<uint32_t>>& prompts_;
    const BenchOptions& options_;
    Way way_;
    std::vector<Place> places_;
    std::mt19937_64 random_;
    uint64_t seed_, n_begun_ = 0, n_tokens_ = 0;
    std::vector<double> first_token_ms_, longest_gaps_ms_;
    std::vector<auspex_token> tokens_;
    std::string text_;
};

double median_of(const std::vector<Run>& runs, double Run::*value) {
    std::vector<double> values;
    for (const Run& run : runs)
        values.push_back(run.*value);
    return median(values);
}

ConcurrencyRow measure(uint32_t n, const BenchOptions& options, ConcurrencyReport& report, StatusLine& status) {
    Client client({.models = options.models, .max_sequences = n, .max_draft_len = kUsualMaxDraftLen, .prefix_cache = false});
    check_biases(options.sampling, client.info().vocab_size);
    report.engine = client.info();
    std::vector<std::vector<uint32_t>> prompts;
    for (const PromptKind& kind : prompt_kinds()) {
        prompts.push_back(tokens_of(client, kind));
        check_room(prompts.back().size(), 2 * options.n_predict, client.info());
    }
    const Way ways[] = {{}, {AUSPEX_DRAFTER_AUTO, AUSPEX_DRAFT_LEN_AUTO}};
    std::vector<Run> runs[2];
    for (uint32_t repetition = 0; repetition <= options.n_repetitions; ++repetition)
        for (size_t i = 0; i < 2; ++i) {
            const size_t w = (i + repetition) % 2;
            status.show(format("%u at once, %u of %u, ", n, repetition, options.n_repetitions) + ways[w].name());
            if (repetition == 0) { // what is measured is no compiler
                SequenceDesc desc(options.sampling, 1);
                desc->drafter = ways[w].drafter;
                desc->draft_len = ways[w].draft_len;
                client.prepare(*desc);
            }
            const Run run = Crowd(client, prompts, options, ways[w], n, options.seed + repetition).run();
            if (repetition > 0) runs[w].push_back(run);
        }
    std::vector<double> ratios;
    for (size_t i = 0; i < runs[0].size(); ++i)
        ratios.push_back(runs[1][i].tokens_per_second / runs[0][i].tokens_per_second);
    return {.n_sequences = n,
            .plain = median_of(runs[0], &Run::tokens_per_second),
            .automatic = median_of(runs[1], &Run::tokens_per_second),
            .over_plain = median(ratios),
            .first_token_ms = median_of(runs[1], &Run::first_token_ms),
            .longest_gap_ms = median_of(runs[1], &Run::longest_gap_ms),
            .cpu_us_per_round = median_of(runs[0], &Run::cpu_us_per_round)};
}

} // namespace

int bench_concurrency(const BenchOptions& options) {
    ConcurrencyReport report{.options = options};
    {
        StatusLine status;
        for (const uint32_t n : options.concurrencies)
            report.rows.push_back(measure(n, options, report, status));
    }
    if (options.json) print_json(report);
    else print_table(report);
    return kExitOk;
}

} // namespace auspex::cli
