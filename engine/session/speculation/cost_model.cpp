// Predictions are products of factors; observations correct the factors' logarithms.
#include "session/speculation/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace auspex {

namespace {

// Guesses for machines nobody measured: only their order of magnitude matters, the first rounds replace them.
constexpr double kGpuBytesPerMs = 300e6, kCpuBytesPerMs = 10e6;
constexpr double kGpuStageMs = 0.004, kCpuStageMs = 0.006;
constexpr double kGpuRow = 0.02, kCpuRow = 0.2; // v(n) = 1 + so much for every row more
constexpr uint32_t kTileRows = 16;              // a pass of more rows reads the weights again for each tile
constexpr double kAcceptRow = 0.004, kTransformedAcceptRow = 0.015, kProposals = 0.005;

// Standard deviations, of logarithms.
constexpr double kUnitUnknown = 1.5, kUnitStored = 0.7, kUnitChanged = 0.4;
constexpr double kRatioUnknown = 0.4, kRatioBetween = 0.2, kRatioStored = 0.08; // between: two seen ones beside it
constexpr double kUnitDrift = 0.02, kRatioDrift = 0.003;                        // per observation
constexpr double kNoise = 0.08, kLeastNoise = 0.04, kMostNoise = 0.3;          // of one measured time
constexpr double kAcceptNoise = 0.25;                                          // of short times, besides
constexpr double kOutlier = 3.5; // sigmas; one is passed over, two in a row are a change

double square(double x) { return x * x; }

} // namespace

CostModel::CostModel(const CostPrior& prior) : prior_(prior) {
    const double bytes_per_ms = prior.is_cpu ? kCpuBytesPerMs : kGpuBytesPerMs;
    const double stage_ms = prior.is_cpu ? kCpuStageMs : kGpuStageMs;
    const auto pass_ms = [&](uint64_t bytes, uint32_t stages) {
        return std::max(1e-3, static_cast<double>(bytes) / bytes_per_ms + stages * stage_ms);
    };
    unit_prior_ms_ = pass_ms(prior.target_bytes, prior.target_stages);
    c_prior_ = pass_ms(prior.draft_bytes, prior.draft_stages) / unit_prior_ms_;
    factors_[{Part::unit, 0}].variance = square(kUnitUnknown);
    noise_ = square(kNoise);
}

double CostModel::rows_prior(uint32_t rows) const {
    const auto tile = [&](uint32_t n) { return n == 0 ? 0 : 1 + (prior_.is_cpu ? kCpuRow : kGpuRow) * (n - 1); };
    return rows / kTileRows * tile(kTileRows) + tile(rows % kTileRows);
}

double CostModel::prior(Part part, uint32_t index) const {
    switch (part) {
    case Part::unit: return 1;
    case Part::verify: return rows_prior(index);
    case Part::draft:
    case Part::draft_transformed: return c_prior_ * rows_prior(index);
    case Part::proposals: return kProposals;
    case Part::accept: return kAcceptRow * (2 + index);
    case Part::accept_transformed: return kTransformedAcceptRow * (2 + index);
    case Part::catch_up: return ratio(Part::draft, 1); // per row of rows_prior
    }
    return 1;
}

double CostModel::correction(Part part, uint32_t index) const {
    if (part == Part::verify && index == 1) return 0;
    const auto above = factors_.lower_bound({part, index});
    const bool has_above = above != factors_.end() && std::get<Part>(above->first) == part;
    if (has_above && std::get<uint32_t>(above->first) == index) return above->second.log;
    uint32_t below_index = 0;
    double below_log = 0;
    if (above != factors_.begin() && std::get<Part>(std::prev(above)->first) == part) {
        below_index = std::get<uint32_t>(std::prev(above)->first);
        below_log = std::prev(above)->second.log;
    } else if (part == Part::verify) {
        below_index = 1; // v(1) = 1
    }
    if (!has_above && below_index == 0) return part == Part::draft_transformed ? correction(Part::draft, index) : 0;
    if (!has_above) return below_log;
    if (below_index == 0) return above->second.log;
    const double a = std::log2(below_index), b = std::log2(std::get<uint32_t>(above->first));
    return below_log + (above->second.log - below_log) * (std::log2(index) - a) / (b - a);
}

CostModel::Factor& CostModel::factor(Part part, uint32_t index) {
    const auto found = factors_.find({part, index});
    if (found != factors_.end()) return found->second;
    const auto above = factors_.lower_bound({part, index});
    const bool between = above != factors_.end() && above != factors_.begin() &&
                         std::get<Part>(above->first) == part && std::get<Part>(std::prev(above)->first) == part;
    return factors_[{part, index}] = {correction(part, index), square(between ? kRatioBetween : kRatioUnknown)};
}

double CostModel::ratio(Part part, uint32_t index) const {
    double ratio = prior(part, index) * std::exp(correction(part, index));
    if (part != Part::verify) return ratio;
    // More rows are never quicker, whatever noise says: neither than one, nor than fewer that were measured too high.
    for (auto more = factors_.upper_bound({part, index}); more != factors_.end() && std::get<Part>(more->first) == part; ++more)
        ratio = std::min(ratio, prior(part, std::get<uint32_t>(more->first)) * std::exp(more->second.log));
    return std::max(1.0, ratio);
}

double CostModel::unit_ms() const { return unit_prior_ms_ * std::exp(correction(Part::unit, 0)); }

double CostModel::draft_ratio(const RoundShape& shape) const {
    if (!shape.model) return shape.proposals ? ratio(Part::proposals, shape.batch) : 0;
    // The first pass carries two rows per slot.
    const double passes = shape.draft_len - 1 + rows_prior(2 * shape.batch) / rows_prior(shape.batch);
    return passes * ratio(shape.transforms ? Part::draft_transformed : Part::draft, shape.batch);
}

double CostModel::accept_ratio(const RoundShape& shape) const {
    return ratio(shape.transforms ? Part::accept_transformed : Part::accept, shape.rows());
}

double CostModel::gpu_ratio(const RoundShape& shape) const {
    return draft_ratio(shape) + ratio(Part::verify, shape.rows()) + accept_ratio(shape);
}

const CostModel::Recent& CostModel::overhead(const RoundShape& shape) const {
    const Recent& own = overheads_[shape.model ? 1 : shape.proposals ? 2 : 0];
    return own.n > 0 ? own : overheads_[0].n > 0 ? overheads_[0] : overheads_[1].n > 0 ? overheads_[1] : overheads_[2];
}

double CostModel::Recent::median() const {
    auto sorted = values;
    const auto end = sorted.begin() + std::min<size_t>(n, sorted.size());
    std::sort(sorted.begin(), end);
    return n == 0 ? 0 : sorted[static_cast<size_t>(end - sorted.begin() - 1) / 2];
}

double CostModel::round_ms(const RoundShape& shape) const {
    return unit_ms() * (gpu_ratio(shape) + overhead(shape).median());
}

double CostModel::overhead_ms(const RoundShape& shape) const { return unit_ms() * overhead(shape).median(); }

double CostModel::catch_up_ms(uint32_t n_rows) const {
    return unit_ms() * rows_prior(n_rows) * ratio(Part::catch_up, 0);
}

CostModel::FirstUse CostModel::first_use() const {
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    if (seen_.empty()) return {kUnknown, kUnknown};
    const auto n = static_cast<double>(seen_.size());
    FirstUse mean = {0, 0};
    for (const auto& [shape, seen] : seen_) {
        mean.recording_ms += seen.recording_ms / n;
        mean.compiling_ms += std::max(0.0, seen.first_round_ms - round_ms(shape)) / n;
    }
    return mean;
}

double CostModel::c() const { return ratio(Part::draft, 1); }

double CostModel::v(uint32_t rows) const { return ratio(Part::verify, rows); }

bool CostModel::is_calibrated() const { return n_plain_ >= 2 || n_rounds_ >= 8; }

// measured = product of factor^weight: every factor takes the share of the residual that its uncertainty explains.
void CostModel::learn_shares(double residual, double noise, Share* shares, size_t n_shares) {
    double total = square(noise);
    for (size_t i = 0; i < n_shares; ++i) total += square(shares[i].weight) * shares[i].factor->variance;
    for (size_t i = 0; i < n_shares; ++i) {
        Factor& factor = *shares[i].factor;
        const double gain = shares[i].weight * factor.variance / total;
        factor.log += gain * residual;
        factor.variance *= 1 - gain * shares[i].weight;
    }
}

// A time that is `unit` times own.factor (null: unit alone).
void CostModel::learn(double measured_ms, double predicted_ms, bool suspicious, Share own, double more_noise) {
    if (!(measured_ms > 0) || !std::isfinite(measured_ms) || suspicious) return;
    Factor& unit = factors_[{Part::unit, 0}];
    unit.variance += square(kUnitDrift);
    if (own.factor) own.factor->variance += square(kRatioDrift);
    Share shares[] = {{&unit, 1}, own};
    Factor& judged = own.factor ? *own.factor : unit;
    const double known = unit.variance + (own.factor ? square(own.weight) * own.factor->variance : 0);
    const double noise = noise_ + square(more_noise), sigma = std::sqrt(noise + known);
    const double residual = std::log(measured_ms / predicted_ms);
    if (more_noise == 0 && known < noise) { // what is left is noise
        const double met = std::min(square(residual), 9 * noise_);
        noise_ = std::clamp(noise_ + 0.05 * (met - noise_), square(kLeastNoise), square(kMostNoise));
    }
    const int sign = residual > kOutlier * sigma ? 1 : residual < -kOutlier * sigma ? -1 : 0;
    const int suspect = std::exchange(judged.suspect, sign);
    if (sign != 0 && sign != suspect) return; // one hiccup
    if (sign != 0) unit.variance = square(kUnitChanged);
    learn_shares(residual, std::sqrt(noise), shares, own.factor ? 2 : 1);
}

void CostModel::observe(const RoundShape& shape, const ObservedRound& times) {
    const bool has_gpu = times.verify_ms > 0;
    const double gpu_ms = std::max(0.0, times.draft_ms) + times.verify_ms + std::max(0.0, times.accept_ms);
    const double ms = has_gpu ? gpu_ms : times.wall_ms;
    const auto [seen, suspicious] = seen_.try_emplace(shape); // shaders may have been compiled
    seen->second.recording_ms += times.recording_ms;
    if (suspicious && std::isfinite(ms)) seen->second.first_round_ms = ms;
    if (!has_gpu && !(times.wall_ms > 0)) return;
    if (!suspicious) {
        n_rounds_ += 1;
        if (shape.draft_len == 0) n_plain_ += 1;
    }
    const uint32_t rows = shape.rows();
    Factor* verify = rows > 1 ? &factor(Part::verify, rows) : nullptr;
    Factor* draft = nullptr;
    if (shape.model) draft = &factor(shape.transforms ? Part::draft_transformed : Part::draft, shape.batch);
    else if (shape.proposals) draft = &factor(Part::proposals, shape.batch);
    if (!has_gpu) { // the sum of all parts: what each explains, by its share of it
        const double all = gpu_ratio(shape);
        if (!verify && !draft) return learn(times.wall_ms, round_ms(shape), suspicious, {}, 0);
        if (!draft) return learn(times.wall_ms, round_ms(shape), suspicious, {verify, v(rows) / all}, 0);
        // Two unknowns of one equation: the verify pass is known from rounds without a draft model or stays a guess.
        return learn(times.wall_ms, round_ms(shape), suspicious, {draft, std::max(0.05, draft_ratio(shape) / all)}, 0);
    }
    learn(times.verify_ms, unit_ms() * ratio(Part::verify, rows), suspicious, {verify, 1}, 0);
    if (draft) learn(times.draft_ms, unit_ms() * draft_ratio(shape), suspicious, {draft, 1}, 0);
    Factor& accept = factor(shape.transforms ? Part::accept_transformed : Part::accept, rows);
    learn(times.accept_ms, unit_ms() * accept_ratio(shape), suspicious, {&accept, 1}, kAcceptNoise);
    if (suspicious || !(times.wall_ms > 0) || !std::isfinite(times.wall_ms)) return;
    Recent& recent = overheads_[shape.model ? 1 : shape.proposals ? 2 : 0];
    recent.values[recent.n++ % recent.values.size()] = std::max(0.0, times.wall_ms - gpu_ms) / unit_ms();
}

void CostModel::observe_catch_up(uint32_t n_rows, double ms) {
    if (n_rows == 0 || !(ms > 0)) return;
    const bool suspicious = seen_catch_ups_.insert(n_rows).second; // shaders may have been compiled
    learn(ms, catch_up_ms(n_rows), suspicious, {&factor(Part::catch_up, 0), 1}, 0);
}

std::vector<CostModel::Learnt> CostModel::learnt() const {
    std::vector<Learnt> all;
    for (const auto& [key, factor] : factors_)
        all.push_back({std::get<Part>(key), std::get<uint32_t>(key), std::exp(factor.log), factor.variance});
    return all;
}

void CostModel::restore(const Learnt& learnt) {
    const double doubt = learnt.part == Part::unit ? kUnitStored : kRatioStored;
    factors_[{learnt.part, learnt.index}] = {std::log(learnt.factor), learnt.variance + square(doubt)};
    if (learnt.part != Part::unit) n_plain_ = 2;
}

} // namespace auspex
