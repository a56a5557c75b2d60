// ProgressBar, redrawn when what it says changes.
#include "cli/common/output/progress_bar.h"

#include "cli/common/input/values.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <cstdio>

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
    clear();
}

void ProgressBar::clear() {
    if (line_.empty()) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    line_.clear();
}

void ProgressBar::draw(float fraction) {
    show(fraction, "");
}

void ProgressBar::draw(float fraction, double seconds_left) {
    const auto seconds = static_cast<long long>(seconds_left);
    show(fraction, seconds < 120 ? format(", about %lld s left", seconds) : format(", about %lld min left", seconds / 60));
}

void ProgressBar::show(float fraction, const std::string& ending) {
    if (!is_shown_ || !(fraction >= 0.0f) || std::chrono::steady_clock::now() - begun_ < kDelay) return;
    const int percent = static_cast<int>(std::min(fraction, 1.0f) * 100.0f);
    const std::string bar(static_cast<size_t>(percent * kWidth / 100), '#');
    const std::string line = format("%s [%-*s] %3d %%", label_, kWidth, bar.c_str(), percent) + ending;
    if (line == line_) return;
    line_ = line;
    std::fprintf(stderr, "\r%s\033[K", line_.c_str());
    std::fflush(stderr);
}

} // namespace auspex::cli
