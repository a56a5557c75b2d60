// Rows are never dearer in company, and a pass never quicker with more of them: what was timed bounds what was not.
#include "session/turns/turn_slices.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

namespace auspex {

uint32_t slices_of(double turn_ms, double pass_ms, double limit_ms, uint32_t n_layers) {
    if (turn_ms <= limit_ms) return 0;
    const double parts = limit_ms > 0 ? pass_ms / limit_ms : n_layers;
    return std::bit_ceil(static_cast<uint32_t>(std::clamp(parts, 1.0, static_cast<double>(n_layers)) + 0.999));
}

Submission next_submission(std::span<const double> segment_ms, double limit_ms, double left_ms, bool forced) {
    Submission next;
    for (double ms : segment_ms) {
        const bool is_known = ms >= 0, is_first = next.n_segments == 0;
        const bool fits = is_known ? next.ms + ms <= left_ms : left_ms == kNoBudget;
        if (!fits && !(forced && is_first)) break;
        if (!is_first && (!is_known || next.ms + ms > limit_ms)) break;
        next = {next.n_segments + 1, next.ms + (is_known ? ms : 0), is_known};
        if (!is_known) break;
    }
    return next;
}

// A first one may have compiled shaders, and others may have had the machine meanwhile: quicker is believed at once.
void ReplayPace::observe(uint32_t rows, double ms) {
    const auto [known, is_new] = ms_.emplace(rows, ms);
    if (!is_new) known->second = ms < known->second ? ms : 0.75 * known->second + 0.25 * ms;
}

double ReplayPace::ms(uint32_t rows) const {
    const auto above = ms_.lower_bound(rows);
    double most = std::numeric_limits<double>::infinity();
    if (above != ms_.end()) most = above->second;
    if (above != ms_.begin()) most = std::min(most, std::prev(above)->second * rows / std::prev(above)->first);
    return ms_.empty() ? -1 : most;
}

} // namespace auspex
