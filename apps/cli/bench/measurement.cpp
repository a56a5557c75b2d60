// Makes figures of several completions' times.
#include "cli/bench/measurement.h"

#include "cli/common/output/progress_bar.h"

#include <cmath>
#include <cstdio>

namespace auspex::cli {

double standard_deviation(std::span<const double> values) {
    if (values.size() < 2) return 0.0;
    const auto n = static_cast<double>(values.size());
    double mean = 0.0, squares = 0.0;
    for (const double value : values)
        mean += value / n;
    for (const double value : values)
        squares += (value - mean) * (value - mean);
    return std::sqrt(squares / (n - 1.0));
}

double expected_tokens(double alpha, uint32_t draft_len) {
    double sum = 0.0;
    for (uint32_t i = 0; i <= draft_len; ++i)
        sum += std::pow(alpha, i);
    return sum;
}

void check_room(size_t prompt_n, uint32_t n_predict, const auspex_engine_info& engine) {
    if (prompt_n + n_predict > engine.max_context)
        throw Failure(kExitCapacity,
                      format("-n %u: with %zu tokens of prompt expected at most %zu to fit the context "
                             "of %u; lower -n or raise -c",
                             n_predict, prompt_n, engine.max_context > prompt_n ? engine.max_context - prompt_n : 0,
                             engine.max_context));
}

StatusLine::~StatusLine() {
    if (is_shown_) std::fputs("\r\033[K", stderr);
}

void StatusLine::show(const std::string& text) {
    if (!can_redraw()) return;
    is_shown_ = true;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
}

} // namespace auspex::cli
