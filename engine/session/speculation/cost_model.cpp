// Predictions are products of factors; observations correct the factors' logarithms.
#include "session/speculation/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace auspex {

namespace {

// Guesses for machines nobody measured: only their order of magnitude matters, the first rounds replace them.
constexpr double kGpuBytesPerMs = 300e6, kCpuBytesPerMs = 10e6;
constexpr double kGpuStageMs = 0.004, kCpuStageMs = 0.006;
constexpr double kCpuText = 2.5; // bytes of keys and values take so many times as long as bytes of weights: they are weighed one by one
constexpr double kGpuRow = 0.02, kCpuRow = 0.2;         // v(n) = 1 + so much for every row more
constexpr uint32_t kGpuTileRows = 16, kCpuTileRows = 8; // a pass of more rows reads the weights again for each tile
constexpr double kAcceptRow = 0.004, kTransformedAcceptRow = 0.015, kProposals = 0.005;

// Standard deviations, of logarithms.
constexpr double kUnitUnknown = 1.5, kUnitStored = 0.7, kUnitChanged = 0.4;
constexpr double kRatioUnknown = 0.4, kRatioBetween = 0.2, kRatioStored = 0.1; // between: two seen ones beside it
constexpr double kUnitDrift = 0.02, kRatioDrift = 0.004; // of the unit per observation, of all ratios per round
constexpr double kAlike = 0.8;                           // correlation of what drift and storage do to ratios of passes
constexpr double kNoise = 0.08, kLeastNoise = 0.04, kMostNoise = 0.3; // of one measured time
constexpr double kAcceptNoise = 0.25;                                 // of short times, besides
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
    const double draft_ms = pass_ms(prior.draft_bytes, prior.draft_stages);
    c_prior_ = draft_ms / unit_prior_ms_;
    const double text_bytes_per_ms = prior.is_cpu ? bytes_per_ms / kCpuText : bytes_per_ms;
    target_growth_ = static_cast<double>(prior.target_text_bytes) / text_bytes_per_ms / unit_prior_ms_;
    draft_growth_ = static_cast<double>(prior.draft_text_bytes) / text_bytes_per_ms / draft_ms;
    factors_[{Part::unit, 0}] = {};
    covariance_ = {{square(kUnitUnknown)}};
    is_pass_ = {0};
    noise_ = square(kNoise);
}

double CostModel::rows_prior(uint32_t rows) const {
    const auto tile = [&](uint32_t n) { return n == 0 ? 0 : 1 + (prior_.is_cpu ? kCpuRow : kGpuRow) * (n - 1); };
    const uint32_t tile_rows = prior_.is_cpu ? kCpuTileRows : kGpuTileRows;
    return rows / tile_rows * tile(tile_rows) + tile(rows % tile_rows);
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

CostModel::Blend CostModel::blend(Part part, uint32_t index) const {
    if (part == Part::verify && index == 1) return {}; // v(1) = 1
    const auto above = factors_.lower_bound({part, index});
    const bool has_above = above != factors_.end() && std::get<Part>(above->first) == part;
    if (has_above && std::get<uint32_t>(above->first) == index) return {{&above->second}, {1}};
    const auto below = above != factors_.begin() && std::get<Part>(std::prev(above)->first) == part ? std::prev(above) : factors_.end();
    const bool has_below = below != factors_.end();
    if (!has_above && !has_below) return part == Part::draft_transformed ? blend(Part::draft, index) : Blend{};
    if (!has_above) return {{&below->second}, {1}};
    if (!has_below && part != Part::verify) return {{&above->second}, {1}};
    const double a = std::log2(has_below ? std::get<uint32_t>(below->first) : 1), b = std::log2(std::get<uint32_t>(above->first));
    const double weight = (std::log2(index) - a) / (b - a);
    if (!has_below) return {{&above->second}, {weight}};
    return {{&below->second, &above->second}, {1 - weight, weight}};
}

double CostModel::correction(Part part, uint32_t index) const {
    const Blend from = blend(part, index);
    double log = 0;
    for (size_t i = 0; i < 2 && from.factors[i]; ++i) log += from.weights[i] * from.factors[i]->log;
    return log;
}

// A new one is what those beside it say, and a deviation of its own.
CostModel::Factor& CostModel::factor(const Key& key) {
    if (const auto found = factors_.find(key); found != factors_.end()) return found->second;
    const auto [part, index] = key;
    const Blend from = blend(part, index);
    const size_t n = covariance_.size();
    const Factor factor = {correction(part, index), 0, n};
    std::vector<double> row(n + 1, 0.0);
    for (size_t i = 0; i < 2 && from.factors[i]; ++i)
        for (size_t k = 0; k < n; ++k) row[k] += from.weights[i] * covariance_[from.factors[i]->at][k];
    row[n] = square(from.factors[1] ? kRatioBetween : kRatioUnknown);
    for (size_t i = 0; i < 2 && from.factors[i]; ++i) row[n] += from.weights[i] * row[from.factors[i]->at];
    for (size_t k = 0; k < n; ++k) covariance_[k].push_back(row[k]);
    covariance_.push_back(std::move(row));
    is_pass_.push_back(part == Part::verify || part == Part::draft || part == Part::draft_transformed ? 1 : 0);
    return factors_[key] = factor;
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

double CostModel::with_text(double pass, double growth, double apart) const { return pass + growth * text_len_ * (prior_.is_cpu ? pass : apart); }

double CostModel::verify_ratio(const RoundShape& shape) const { return with_text(ratio(Part::verify, shape.rows()), target_growth_, shape.batch); }

double CostModel::draft_ratio(const RoundShape& shape) const {
    if (!shape.model) return shape.proposals ? ratio(Part::proposals, shape.batch) : 0;
    // The first pass carries two rows per slot.
    const double passes = shape.draft_len - 1 + rows_prior(2 * shape.batch) / rows_prior(shape.batch);
    return passes * with_text(ratio(shape.transforms ? Part::draft_transformed : Part::draft, shape.batch), draft_growth_, c_prior_ * shape.batch);
}

double CostModel::accept_ratio(const RoundShape& shape) const {
    return ratio(shape.transforms ? Part::accept_transformed : Part::accept, shape.rows());
}

double CostModel::gpu_ratio(const RoundShape& shape) const {
    return draft_ratio(shape) + verify_ratio(shape) + accept_ratio(shape);
}

const CostModel::Recent& CostModel::overhead(const RoundShape& shape) const {
    const Recent& own = overheads_[shape.model ? 1 : shape.proposals ? 2 : 0];
    return own.n > 0 ? own : overheads_[0].n > 0 ? overheads_[0] : overheads_[1].n > 0 ? overheads_[1] : overheads_[2];
}

double CostModel::Recent::median() const {
    if (n == 0) return 0;
    decltype(values) sorted = {};
    const size_t count = std::min<size_t>(n, sorted.size());
    for (size_t i = 0; i < count; ++i) { // not std::sort: GCC 14 warns of what it would do with more values
        const auto end = sorted.begin() + static_cast<ptrdiff_t>(i), at = std::upper_bound(sorted.begin(), end, values[i]);
        std::move_backward(at, end, end + 1);
        *at = values[i];
    }
    return sorted[(count - 1) / 2];
}

double CostModel::round_ms(const RoundShape& shape) const {
    return unit_ms() * (gpu_ratio(shape) + overhead(shape).median());
}

double CostModel::overhead_ms(const RoundShape& shape) const { return unit_ms() * overhead(shape).median(); }

double CostModel::catch_up_ms(uint32_t n_rows) const {
    return unit_ms() * rows_prior(n_rows) * ratio(Part::catch_up, 0);
}

double CostModel::prompt_catch_up_ms(uint32_t n_rows) const { return prompts_.ms(n_rows) * prior_.prompt_part; }

double CostModel::tiles_ms(uint32_t n_rows) const { return unit_ms() * rows_prior(n_rows); }

double CostModel::c() const { return ratio(Part::draft, 1); }

double CostModel::v(uint32_t rows) const { return ratio(Part::verify, rows); }

bool CostModel::is_calibrated() const { return n_plain_ >= 2 || n_rounds_ >= 8; }

void CostModel::drift() {
    const double own = square(kRatioDrift), shared = kAlike * own;
    for (size_t i = 1; i < covariance_.size(); ++i) {
        std::vector<double>& row = covariance_[i];
        row[i] += own - shared * is_pass_[i];
        if (is_pass_[i] > 0)
            for (size_t j = 1; j < row.size(); ++j) row[j] += shared * is_pass_[j];
    }
}

// measured = unit · ratio^weight · noise. No own: the unit alone.
void CostModel::learn(double measured_ms, double predicted_ms, const std::optional<Share>& own, double more_noise) {
    if (!(measured_ms > 0) || !std::isfinite(measured_ms)) return;
    Factor& judged = factor(own ? own->key : Key{Part::unit, 0});
    const size_t n = covariance_.size(), at = judged.at;
    const double weight = own ? own->weight : 0, noise = noise_ + square(more_noise);
    covariance_[0][0] += square(kUnitDrift);
    const auto shared = [&](size_t i) { return covariance_[i][0] + weight * covariance_[i][at]; }; // covariance with the time
    const auto known = [&] { return shared(0) + weight * shared(at); };
    const double residual = std::log(measured_ms / predicted_ms);
    const double sigma = std::sqrt(noise + known());
    if (more_noise == 0 && known() < noise) { // what is left is noise
        const double met = std::min(square(residual), 9 * noise_);
        noise_ = std::clamp(noise_ + 0.05 * (met - noise_), square(kLeastNoise), square(kMostNoise));
    }
    const int sign = residual > kOutlier * sigma ? 1 : residual < -kOutlier * sigma ? -1 : 0;
    const int suspect = std::exchange(judged.suspect, sign);
    if (sign != 0 && sign != suspect) return; // one hiccup
    // Of the machine's speed passes tell. A short stage takes several times as long where a text repeats itself, and tells of itself.
    const bool is_short = more_noise > 0;
    const size_t changed = is_short ? at : 0;
    if (sign != 0) covariance_[changed][changed] += square(kUnitChanged);
    std::vector<double> gain(n), with_time(n);
    const double total = noise + known();
    for (size_t i = 0; i < n; ++i) with_time[i] = shared(i);
    for (size_t i = 0; i < n; ++i) gain[i] = is_short && i != at ? 0 : with_time[i] / total;
    for (auto& [key, factor] : factors_) factor.log += gain[factor.at] * residual;
    for (size_t i = 0; i < n; ++i) {
        std::vector<double>& row = covariance_[i];
        for (size_t j = 0; j < n; ++j) row[j] += gain[i] * gain[j] * total - gain[i] * with_time[j] - with_time[i] * gain[j]; // whatever the gain
    }
}

void CostModel::observe(const RoundShape& shape, const ObservedRound& times) {
    const bool has_gpu = times.verify_ms > 0;
    const double gpu_ms = std::max(0.0, times.draft_ms) + times.verify_ms + std::max(0.0, times.accept_ms);
    const bool suspicious = seen_.insert(shape).second; // the driver may have loaded or compiled shaders
    if (times.recording_ms > 0) recordings_ms_ += times.recording_ms, n_recordings_ += 1;
    if (!has_gpu && !(times.wall_ms > 0)) return;
    if (suspicious || !times.is_steady) return;
    text_len_ = times.text_len;
    drift();
    n_rounds_ += 1;
    if (shape.draft_len == 0) n_plain_ += 1;
    const uint32_t rows = shape.rows();
    std::optional<Share> verify, draft;
    if (rows > 1) verify = {{Part::verify, rows}, 1};
    if (shape.model) draft = {{shape.transforms ? Part::draft_transformed : Part::draft, shape.batch}, 1};
    else if (shape.proposals) draft = {{Part::proposals, shape.batch}, 1};
    if (!has_gpu) { // the sum of all parts: what each explains, by its share of it
        // One time cannot correct both passes. It corrects the draft's; the verify pass is learnt from rounds without drafts.
        const double all = gpu_ratio(shape);
        if (draft) draft->weight = std::max(0.05, draft_ratio(shape) / all);
        else if (verify) verify->weight = verify_ratio(shape) / all;
        return learn(times.wall_ms, round_ms(shape), draft ? draft : verify, 0);
    }
    const double pass = prior(Part::verify, rows) * std::exp(correction(Part::verify, rows)); // ratio() has bounds
    const double with_keys = with_text(pass, target_growth_, shape.batch);
    if (verify && !prior_.is_cpu) verify->weight = pass / with_keys;
    learn(times.verify_ms, unit_ms() * with_keys, verify, 0);
    if (draft) learn(times.draft_ms, unit_ms() * draft_ratio(shape), draft, 0);
    learn(times.accept_ms, unit_ms() * accept_ratio(shape), {{{shape.transforms ? Part::accept_transformed : Part::accept, rows}, 1}}, kAcceptNoise);
    if (!(times.wall_ms > 0) || !std::isfinite(times.wall_ms)) return;
    Recent& recent = overheads_[shape.model ? 1 : shape.proposals ? 2 : 0];
    recent.values[recent.n++ % recent.values.size()] = std::max(0.0, times.wall_ms - gpu_ms) / unit_ms();
}

void CostModel::observe_catch_up(uint32_t n_rows, double ms, double recording_ms) {
    if (n_rows == 0) return;
    const bool is_first = seen_catch_ups_.insert(n_rows).second; // the driver may have loaded or compiled shaders
    if (recording_ms > 0) recordings_ms_ += recording_ms, n_recordings_ += 1;
    if (is_first || !(ms > 0)) return;
    learn(ms, catch_up_ms(n_rows), {{{Part::catch_up, 0}, 1}}, 0);
}

std::vector<CostModel::Learnt> CostModel::learnt() const {
    std::vector<Learnt> all;
    for (const auto& [key, factor] : factors_)
        all.push_back({std::get<Part>(key), std::get<uint32_t>(key), std::exp(factor.log), covariance_[factor.at][factor.at]});
    return all;
}

void CostModel::restore(const Learnt& learnt) {
    Factor& restored = factor({learnt.part, learnt.index});
    restored.log = std::log(learnt.factor);
    const size_t at = restored.at;
    const double variance = learnt.variance + square(at == 0 ? kUnitStored : kRatioStored);
    for (size_t i = 0; i < covariance_.size(); ++i) {
        const double alike = kAlike * is_pass_[at] * is_pass_[i];
        covariance_[i][at] = covariance_[at][i] = i == at ? variance : alike * std::sqrt(variance * covariance_[i][i]);
    }
    if (at > 0) n_plain_ = 2;
}

} // namespace auspex
