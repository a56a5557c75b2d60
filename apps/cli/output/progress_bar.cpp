// ProgressBar, redrawn when the percentage changes.
#include "cli/output/progress_bar.h"

#include "cli/terminal.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace auspex::cli {

namespace {

constexpr std::chrono::milliseconds kDelay{500};
constexpr int kWidth = 40;

} // namespace

bool can_redraw() {
    return is_terminal(Stream::error) && environment("TERM").value_or("") != "dumb";
}

ProgressBar::ProgressBar(const char* label) : label_(label), is_shown_(can_redraw()) {}

ProgressBar::~ProgressBar() {
    if (percent_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressBar::draw(float fraction) {
    if (!is_shown_ || !(fraction >= 0.0f)) return;
    const int percent = static_cast<int>(std::min(fraction, 1.0f) * 100.0f);
    if (percent == percent_ || std::chrono::steady_clock::now() - begun_ < kDelay) return;
    percent_ = percent;
    const std::string bar(static_cast<size_t>(percent * kWidth / 100), '#');
    std::fprintf(stderr, "\r%s [%-*s] %3d %%", label_, kWidth, bar.c_str(), percent);
    std::fflush(stderr);
}

} // namespace auspex::cli
