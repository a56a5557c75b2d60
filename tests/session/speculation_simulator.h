// A simulated machine and text for draft_len auto: true costs with noise, hiccups, cold shaders and drift; true
// acceptance by position. Two rounds are in flight, as in the scheduler: a round is chosen before the last one is read.
#pragma once

#include "session/speculation/policy.h"

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace auspex::simulated {

struct Device {
    std::string name;
    double target_ms = 50, c = 0.2; // passes of one row
    double row = 0.02;              // v(n) = 1 + row * (n - 1), per tile of 16,
    std::map<uint32_t, double> measured_v = {}; // or between such figures
    std::map<uint32_t, double> measured_catch_up_ms = {}; // by rows; none: as draft passes of so many
    std::function<double(uint32_t rows)> prompt_ms = {}; // of the target; none: nobody times prompts
    double accept_ms = 0.3, overhead_ms = 0.5;
    double noise = 0.03;            // standard deviation of a time's logarithm
    double hiccup = 0;              // probability of a round that takes 5 times as long
    double cold_ms = 0;             // of the first round of a shape, where the driver never compiled it
    double recording_ms = 0;        // of the host, before the first round of a shape in an engine
    std::function<double(double at_ms)> slowness = {}; // none: 1
    bool has_timestamps = true;

    double v(uint32_t rows) const {
        if (!measured_v.empty()) return between(measured_v, rows);
        const auto tile = [&](uint32_t n) { return n == 0 ? 0.0 : 1 + row * (n - 1); };
        return (rows / 16) * tile(16) + tile(rows % 16);
    }
    double draft_ms(const RoundShape& shape) const { // the first pass carries two rows per slot
        if (!shape.model) return 0;
        return target_ms * c * ((shape.draft_len - 1) * v(shape.batch) + v(2 * shape.batch));
    }
    double round_ms(const RoundShape& shape) const {
        return draft_ms(shape) + target_ms * v(shape.rows()) + accept_ms + overhead_ms;
    }
    double catch_up_ms(uint32_t rows) const { return measured_catch_up_ms.empty() ? target_ms * c * v(rows) : between(measured_catch_up_ms, rows); }

    static double between(const std::map<uint32_t, double>& figures, uint32_t rows) {
        const auto above = figures.lower_bound(rows);
        if (above == figures.end()) return figures.rbegin()->second * rows / figures.rbegin()->first;
        if (above == figures.begin() || above->first == rows) return above->second;
        const auto below = std::prev(above);
        return below->second + (above->second - below->second) * (rows - below->first) / (above->first - below->first);
    }
};

struct Text {
    std::string name;
    uint32_t prompt = 10;
    std::function<double(uint32_t at)> alpha = [](uint32_t) { return 0.0; }; // of the draft model's token
    std::function<uint32_t(uint32_t at)> match = [](uint32_t) { return 0u; }; // length; 0: no proposal
    std::function<double(uint32_t at)> match_alpha = [](uint32_t) { return 0.0; };
};

// What an engine keeps between sequences.
struct Engine {
    explicit Engine(const CostPrior& prior, uint32_t max_draft_len = 8) : costs(prior), policy(costs, long_run, max_draft_len) {}
    Engine(const Engine&) = delete;
    CostModel costs;
    LongRun long_run;
    SpeculationPolicy policy;
    std::set<RoundShape> warm;
};

struct Setting {
    bool model = true, proposals = false;
    bool is_searched = true; // proposals are found in the text, where they are seen in rounds without them, too
    std::optional<uint32_t> fixed = {}; // draft_len; none: auto
    bool shares_cache = false;          // with the target, as a self-draft does: it never lags
    std::function<bool(uint32_t at, bool model, uint32_t draft_len)> is_ready = {}; // none: every round is
};

struct Decoded {
    double ms = 0, plain_ms = 0; // plain: the same number of tokens by plain rounds, without noise
    uint32_t tokens = 0, rounds = 0, switches = 0; // switches: between drafting and not
    std::vector<RoundPlan> plans = {};
    std::vector<DraftChoice> choices = {};
    std::vector<uint32_t> planned_at = {}; // tokens there when each round was planned
    SpeculationSummary summary;
    double draft_rows_replayed = 0;
    double speed() const { return plain_ms / ms; } // 1: as fast as plain decoding
};

class Machine {
  public:
    Machine(const Device& device, uint64_t seed) : device_(device), random_(seed) {}

    Decoded decode(Engine& engine, const Text& text, uint32_t n_tokens, const Setting& setting) {
        SequenceSpeculation state(engine.long_run);
        Decoded run;
        const uint64_t key = random_();
        uint32_t at = 0, draft_rows = 0; // tokens known; rows of the draft cache after the prompt's begin
        struct Flight {
            DraftChoice choice;
            uint32_t tested = 0, accepted = 0;
            Foretold foretold = Foretold::nothing;
        };
        std::optional<Flight> unread;
        uint32_t known_at = 0; // as of the last round read
        if (device_.prompt_ms) engine.costs.observe_prompt(text.prompt, device_.prompt_ms(text.prompt));
        while (at < n_tokens) {
            const uint32_t have = text.prompt + known_at, lag = have - std::min(have, draft_rows);
            SpeculatingSequence one{.state = &state, .may_use_model = setting.model, .may_use_proposals = setting.proposals,
                                    .is_fixed = setting.fixed.has_value(), .fixed_draft_len = setting.fixed.value_or(0),
                                    .lag_rows = lag > 2 && !setting.shares_cache ? lag : 0, .match_len = text.match(known_at), .is_searched = setting.is_searched,
                                    .tokens_left = n_tokens - at};
            const RoundPlan plan = engine.policy.decide({&one, 1}, 1, false, [&](bool model, uint32_t draft_len) {
                return !setting.is_ready || setting.is_ready(at, model, draft_len);
            });
            if (one.choice.catch_up) {
                if (unread) read(engine, state, *unread), unread.reset();
                known_at = at;
                const uint32_t rows = text.prompt + at - draft_rows;
                const double ms = device_.catch_up_ms(rows) * slowness(run.ms) * noise();
                engine.costs.observe_catch_up(rows, ms, 0);
                run.ms += ms;
                run.draft_rows_replayed += rows;
                draft_rows = text.prompt + at;
                continue;
            }
            Flight flight{one.choice};
            const uint32_t asked = std::min(one.choice.draft_len, n_tokens - at);
            const bool by_model = one.choice.source == DraftSource::model;
            if (by_model) flight.tested = asked;
            if (one.choice.source == DraftSource::proposals && text.match(at) > 0) flight.tested = asked;
            while (flight.accepted < flight.tested && uniform(key, at + flight.accepted) < (by_model ? text.alpha(at + flight.accepted) : text.match_alpha(at + flight.accepted)))
                flight.accepted += 1;
            if (text.match(at) > 0) flight.foretold = uniform(key, at) < text.match_alpha(at) ? Foretold::right : Foretold::wrong;
            run.planned_at.push_back(at);
            play(engine, plan.shape, run);
            if (by_model) draft_rows = text.prompt + at + flight.accepted;
            at += flight.accepted + 1;
            if (unread) read(engine, state, *unread);
            unread = flight;
            known_at = at - flight.accepted - 1;
            const bool drafts = one.choice.draft_len > 0;
            if (!run.choices.empty() && drafts != (run.choices.back().draft_len > 0)) run.switches += 1;
            run.choices.push_back(one.choice);
            run.plans.push_back(plan);
            run.rounds += 1;
        }
        if (unread) read(engine, state, *unread);
        run.tokens = at;
        run.plain_ms *= static_cast<double>(at) / run.rounds; // plain rounds at the speed the machine had meanwhile
        run.summary = summary_of(state, engine.costs, "model");
        return run;
    }

  private:
    static void read(Engine& engine, SequenceSpeculation& state, const auto& flight) {
        engine.policy.observe(state, flight.choice, flight.tested, flight.accepted, flight.foretold);
    }
    double slowness(double at_ms) const { return device_.slowness ? device_.slowness(at_ms) : 1; }
    double noise() { return std::exp(device_.noise * std::normal_distribution<double>()(random_)); }
    static double uniform(uint64_t key, uint64_t at) {
        std::mt19937_64 one(key + at * 0x9e3779b97f4a7c15ull);
        return std::uniform_real_distribution<double>()(one);
    }
    void play(Engine& engine, const RoundShape& shape, Decoded& run) {
        const double slow = slowness(run.ms);
        double factor = slow * noise();
        if (std::uniform_real_distribution<double>()(random_) < device_.hiccup) factor *= 5;
        const bool is_first = engine.warm.insert(shape).second;
        const double cold = compiled_.insert(shape).second ? device_.cold_ms : 0;
        ObservedRound times;
        times.recording_ms = is_first ? device_.recording_ms : 0;
        times.wall_ms = device_.round_ms(shape) * factor + cold;
        if (device_.has_timestamps) {
            times.draft_ms = device_.draft_ms(shape) * factor * noise();
            times.verify_ms = device_.target_ms * device_.v(shape.rows()) * factor * noise() + cold;
            times.accept_ms = device_.accept_ms * factor * noise();
        }
        engine.costs.observe(shape, times);
        run.ms += times.recording_ms + times.wall_ms;
        run.plain_ms += device_.round_ms({}) * slow * (1 + 4 * device_.hiccup) * std::exp(device_.noise * device_.noise / 2);
    }

    Device device_;
    std::mt19937_64 random_;
    std::set<RoundShape> compiled_; // the driver keeps them
};

inline Text text_of(double alpha, uint32_t prompt = 10) {
    Text text;
    text.prompt = prompt;
    text.alpha = [alpha](uint32_t) { return alpha; };
    return text;
}

inline Text changing_text() {
    Text text;
    text.alpha = [](uint32_t at) { return at < 300 ? 0.9 : at < 700 ? 0.05 : 0.85; };
    return text;
}

inline Text copying_text() { // matches come and go
    Text text;
    text.match = [](uint32_t at) { return at % 100 < 40 ? 9u : at % 100 < 60 ? 2u : 0u; };
    text.match_alpha = [](uint32_t) { return 0.8; };
    return text;
}

// A process that begins with what another one stored.
inline void restart(Engine& engine, const std::vector<CostModel::Learnt>& learnt, const LongRun& long_run) {
    for (const CostModel::Learnt& one : learnt) engine.costs.restore(one);
    engine.long_run = long_run;
}

inline bool drafted(const Decoded& run) {
    return std::any_of(run.choices.begin(), run.choices.end(), [](const DraftChoice& choice) { return choice.draft_len > 0; });
}

} // namespace auspex::simulated
