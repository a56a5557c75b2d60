// An entry: "costs": [[part, index, factor, variance], …], "acceptance": [[accepted, tested, supplied, asked], …] of all texts,
// "recent": the same of the last ones, "savings": …. Every number is held against its range; other keys, of other versions, do not count.
#include "session/speculation/speculation_store.h"

#include "base/status.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>

namespace auspex {

namespace {

using nlohmann::json;

constexpr size_t kMaxCosts = 256; // of an entry
constexpr uint32_t kMaxIndex = 1024; // rows, batch
constexpr double kMaxFactor = 1e4, kMaxVariance = 4, kMaxCount = 1e6, kMaxTokens = 1e12;

std::optional<double> number(const json& value, double low, double high) {
    if (!value.is_number()) return std::nullopt;
    const double x = value.get<double>();
    if (!std::isfinite(x) || x < low || x > high) return std::nullopt;
    return x;
}

bool is_list(const json& value, size_t least, size_t most) {
    return value.is_array() && value.size() >= least && value.size() <= most;
}

EntryFile::Key fields(const SpeculationKey& key) {
    return {{"device", key.device}, {"driver", key.driver}, {"target", key.target}, {"draft", key.draft}, {"cache_type", key.cache_type}};
}

std::optional<CostModel::Learnt> read_cost(const json& value) {
    if (!is_list(value, 4, 4)) return std::nullopt;
    const auto part = number(value[0], 0, CostModel::kParts - 1), index = number(value[1], 0, kMaxIndex);
    const auto factor = number(value[2], 1 / kMaxFactor, kMaxFactor), variance = number(value[3], 0, kMaxVariance);
    if (!part || !index || !factor || !variance || std::floor(*part) != *part || std::floor(*index) != *index) return std::nullopt;
    const auto which = static_cast<CostModel::Part>(*part);
    const bool has_index = which != CostModel::Part::unit && which != CostModel::Part::catch_up;
    if (has_index != (*index > 0)) return std::nullopt;
    return CostModel::Learnt{which, static_cast<uint32_t>(*index), *factor, *variance};
}

std::optional<AcceptanceCounts> read_counts(const json& value) {
    if (!is_list(value, 4, 4)) return std::nullopt;
    double n[4];
    for (size_t i = 0; i < 4; ++i) {
        const auto x = number(value[i], 0, kMaxCount);
        if (!x) return std::nullopt;
        n[i] = *x;
    }
    if (n[0] > n[1] || n[2] > n[3]) return std::nullopt;
    return AcceptanceCounts{n[0], n[1], n[2], n[3]};
}

// All of an entry or nothing of it.
bool read_entry(const json& entry, CostModel& costs, LongRun& long_run) {
    for (const char* name : {"costs", "acceptance", "savings"})
        if (!entry.contains(name)) return false;
    if (!is_list(entry["costs"], 0, kMaxCosts)) return false;
    const json last = entry.value("recent", json(kDraftClasses, json{0, 0, 0, 0})); // of before it was kept
    if (!is_list(entry["acceptance"], kDraftClasses, kDraftClasses) || !is_list(last, kDraftClasses, kDraftClasses)) return false;
    std::vector<CostModel::Learnt> learnt;
    for (const json& value : entry["costs"]) {
        const auto cost = read_cost(value);
        if (!cost) return false;
        learnt.push_back(*cost);
    }
    LongRun read;
    for (uint32_t i = 0; i < kDraftClasses; ++i) {
        const auto counts = read_counts(entry["acceptance"][i]), recent = read_counts(last[i]);
        if (!counts || !recent) return false;
        read.restore(static_cast<DraftClass>(i), *counts, *recent);
    }
    const auto savings = number(entry["savings"], 0, kMaxTokens);
    if (!savings) return false;
    read.savings = *savings;
    long_run = read;
    for (const CostModel::Learnt& cost : learnt) costs.restore(cost);
    return true;
}

json write_entry(const CostModel& costs, const LongRun& long_run) {
    const auto row = [](const AcceptanceCounts& n) { return json{n.accepted, n.tested, n.supplied, n.asked}; };
    json list = json::array(), acceptance = json::array(), recent = json::array();
    for (const CostModel::Learnt& cost : costs.learnt())
        if (list.size() < kMaxCosts)
            list.push_back({static_cast<uint32_t>(cost.part), cost.index, std::clamp(cost.factor, 1 / kMaxFactor, kMaxFactor),
                            std::clamp(cost.variance, 0.0, kMaxVariance)});
    for (uint32_t i = 0; i < kDraftClasses; ++i) {
        acceptance.push_back(row(long_run.counts(static_cast<DraftClass>(i))));
        recent.push_back(row(long_run.recent(static_cast<DraftClass>(i))));
    }
    return {{"costs", list}, {"acceptance", acceptance}, {"recent", recent}, {"savings", std::min(kMaxTokens, long_run.savings)}};
}

} // namespace

bool SpeculationStore::load(const SpeculationKey& key, CostModel& costs, LongRun& long_run, const Logger& log) const try {
    const auto entry = file_.find(fields(key), log);
    if (!entry) return false;
    if (read_entry(*entry, costs, long_run)) return true;
    log(LogLevel::warning, path() + ": found numbers out of range, expected what this program wrote; they are not used");
    return false;
} catch (const std::exception& error) {
    log(LogLevel::warning, path() + ": " + in_quotes(error.what()));
    return false;
}

void SpeculationStore::save(const SpeculationKey& key, const CostModel& costs, const LongRun& long_run, const Logger& log) const try {
    if (costs.is_calibrated()) file_.put(fields(key), write_entry(costs, long_run), log);
} catch (const std::exception& error) {
    log(LogLevel::warning, path() + ": " + in_quotes(error.what()));
}

} // namespace auspex
