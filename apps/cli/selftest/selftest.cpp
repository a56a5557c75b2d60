// auspex selftest: are texts with drafts what they are without, on this device and with these files? One line per
// check.
#include "cli/common/output/progress_bar.h"
#include "cli/common/output/standard_output.h"
#include "cli/common/system/terminal.h"
#include "cli/selftest/checks.h"
#include "cli/selftest/options.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace auspex::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

struct Check {
    void (*run)(const ModelOptions& models, Run& run);
    double share, small_share; // of the time that all take, roughly
};
constexpr std::array<Check, 4> kChecks = {{
    {check_sampling, 0.6, 0.45}, // counts of completions against exact probabilities
    {check_greedy, 0.2, 0.25},    // exact ties, drafts that are all right, drafts that are all wrong
    {check_coupled, 0.06, 0.05},  // shared noise
    {check_pair, 0.14, 0.25},     // what -m and -md name
}};

// Opens the device, so that what is wrong with it is told before anything takes time.
auspex_engine_info device_info(const ModelOptions& models) {
    return SyntheticClient(models, {tiny_shape(7, 1, 1), {}})->info();
}

// The line on stderr, of all checks together.
class Progress {
  public:
    void begin(const Check& check) { check_ = &check; }
    void end(const Effort& effort) { done_ += effort.choose(check_->share, check_->small_share); }
    void draw(double fraction, const Effort& effort) {
        const double done = done_ + fraction * effort.choose(check_->share, check_->small_share);
        bar_.draw(static_cast<float>(done), seconds_since(begun_) * (1.0 / done - 1.0));
    }
    void clear() { bar_.clear(); }

  private:
    ProgressBar bar_{"checking"};
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    const Check* check_ = nullptr;
    double done_ = 0.0;
};

// Why a run is small.
std::string reason(const Effort& effort) {
    return format("%.3g completions per second here: all draws would take %.0f s, expected at most %.0f s; fewer draws and "
                  "shorter texts",
                  effort.per_second(), effort.expected_seconds(), effort.seconds_for_draws());
}

void print(const CheckResult& check) {
    std::printf("%-6s %-17s %s (%.1f s)\n", check.passed ? "ok" : "FAILED", check.name.c_str(),
                as_one_line(check.figure).c_str(), check.seconds);
    flush_output();
}

Json check_json(const CheckResult& check) {
    Json measured = Json::object();
    for (const auto& [key, value] : check.measured)
        measured[key] = value;
    return {{"name", check.name},
            {"passed", check.passed},
            {"figure", check.figure},
            {"seconds", check.seconds},
            {"measured", measured}};
}

void print(const SelftestOptions& options, const auspex_engine_info& device, const Effort& effort,
           const std::vector<CheckResult>& checks, bool passed, double seconds) {
    Json list = Json::array();
    for (const CheckResult& check : checks)
        list.push_back(check_json(check));
    Json json;
    json["schema"] = kSchema;
    json["device"] = {{"name", device.device_name},
                      {"driver", device.driver},
                      {"api_version", format_api_version(device.api_version)},
                      {"numerics_id", device.numerics_id}};
    json["model"] = {{"target", options.models.target},
                     {"draft", options.models.draft.empty() ? Json() : Json(options.models.draft)}};
    json["size"] = {{"name", effort.choose("all", "small")},
                    {"reason", effort.is_small() ? Json(reason(effort)) : Json()},
                    {"completions_per_second", effort.per_second()}};
    json["passed"] = passed;
    json["seconds"] = seconds;
    json["checks"] = list;
    print_text(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

} // namespace

int selftest(const SelftestOptions& options) {
    const auto started = std::chrono::steady_clock::now();
    for (const std::string& path : {options.models.target, options.models.draft})
        if (!path.empty()) describe_model(path, options.models.cache_type); // what is wrong with it is told first
    const auspex_engine_info device = device_info(options.models);
    if (!options.json) {
        std::printf("device %s, %s\ntarget %s\n", device.device_name, device.driver, options.models.target.c_str());
        if (!options.models.draft.empty()) std::printf("draft  %s\n", options.models.draft.c_str());
        flush_output();
    }

    std::vector<CheckResult> checks;
    auto check_started = std::chrono::steady_clock::now();
    Progress progress;
    Run run{.effort = Effort(options.seconds_for_draws.value_or(kSecondsForDraws)), .tell = {}, .progress = {}};
    run.tell = [&](CheckResult result) {
        result.seconds = seconds_since(check_started);
        check_started = std::chrono::steady_clock::now();
        progress.clear();
        if (!options.json) print(result);
        checks.push_back(std::move(result));
    };
    bool reason_is_told = options.json;
    run.progress = [&](double fraction) {
        if (run.effort.is_small() && !reason_is_told) {
            progress.clear();
            std::printf("size   small: %s\n", reason(run.effort).c_str());
            flush_output();
            reason_is_told = true;
        }
        progress.draw(fraction, run.effort);
    };
    for (const Check& check : kChecks) {
        progress.begin(check);
        check.run(options.models, run);
        progress.end(run.effort);
    }

    const auto n_failed =
        std::count_if(checks.begin(), checks.end(), [](const CheckResult& check) { return !check.passed; });
    const double seconds = seconds_since(started);
    if (options.json)
        print(options, device, run.effort, checks, n_failed == 0, seconds);
    else if (n_failed == 0)
        std::printf("%zu checks passed in %.1f s\n", checks.size(), seconds);
    else
        std::printf("%zu of %zu checks FAILED\n", static_cast<size_t>(n_failed), checks.size());
    return n_failed == 0 ? kExitOk : kExitInternal;
}

} // namespace auspex::cli
