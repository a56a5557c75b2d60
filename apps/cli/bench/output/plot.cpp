// The chart: axes with ticks, a line of measurements and a dashed one of predictions for each series, a legend.
#include "cli/bench/output/plot.h"

#include "cli/common/system/append_file.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace auspex::cli {

namespace {

constexpr double kWidth = 720, kHeight = 440, kLeft = 64, kRight = 24, kTop = 62, kBottom = 56;
constexpr std::array kColors = {"#1f5fbf", "#c2410c", "#15803d", "#7e22ce"};

struct Point {
    double draft_len, speedup;
};

struct Line {
    std::string label;
    const char* color;
    bool is_dashed;
    std::vector<Point> points{};
};

std::vector<Line> lines_of(const std::vector<PlotSeries>& series) {
    std::vector<Line> lines;
    for (size_t i = 0; i < series.size(); ++i) {
        const char* color = kColors[i % kColors.size()];
        const std::string prefix = series[i].label.empty() ? "" : series[i].label + ", ";
        Line measured{prefix + "measured", color, false}, predicted{prefix + "predicted", color, true};
        for (const BenchResult& result : series[i].results) {
            if (!drafts_by_pass_alone(result.way.drafter) || result.way.draft_len > AUSPEX_MAX_DRAFT_LEN) continue;
            const double draft_len = result.way.draft_len;
            if (result.speedup) measured.points.push_back({draft_len, *result.speedup});
            if (result.predicted_speedup) predicted.points.push_back({draft_len, *result.predicted_speedup});
        }
        for (Line* line : {&measured, &predicted}) {
            std::sort(line->points.begin(), line->points.end(),
                      [](const Point& a, const Point& b) { return a.draft_len < b.draft_len; });
            if (!line->points.empty()) lines.push_back(*line);
        }
    }
    return lines;
}

// Where a value is drawn.
struct Axes {
    double lowest_len = 1, highest_len = 1, highest_speedup = 1, step = 0.5;

    explicit Axes(const std::vector<Line>& lines) {
        double highest = 1.0;
        bool is_first = true;
        for (const Line& line : lines)
            for (const Point& point : line.points) {
                lowest_len = is_first ? point.draft_len : std::min(lowest_len, point.draft_len);
                highest_len = is_first ? point.draft_len : std::max(highest_len, point.draft_len);
                highest = std::max(highest, point.speedup);
                is_first = false;
            }
        if (lowest_len == highest_len) ++highest_len;
        step = highest > 5 ? 1.0 : highest > 1.6 ? 0.5 : 0.25;
        highest_speedup = std::ceil(highest * 1.02 / step) * step;
    }
    double x(double draft_len) const {
        return kLeft + (draft_len - lowest_len) / (highest_len - lowest_len) * (kWidth - kLeft - kRight);
    }
    double y(double speedup) const {
        return kHeight - kBottom - speedup / highest_speedup * (kHeight - kTop - kBottom);
    }
};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
    return format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + text + "</text>\n";
}

std::string draw_axes(const Axes& axes) {
    std::string svg;
    for (double speedup = 0; speedup < axes.highest_speedup + axes.step / 2; speedup += axes.step) {
        const bool is_plain = std::abs(speedup - 1.0) < 1e-9;
        svg += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", kLeft, axes.y(speedup),
                      kWidth - kRight, axes.y(speedup), is_plain ? "#555555" : "#dddddd");
        svg += text_at(kLeft - 8, axes.y(speedup) + 4, "end", format(axes.step < 0.5 ? "%.2f" : "%.1f", speedup));
    }
    for (double draft_len = axes.lowest_len; draft_len <= axes.highest_len; ++draft_len) {
        svg += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#555555\"/>\n", axes.x(draft_len),
                      kHeight - kBottom, axes.x(draft_len), kHeight - kBottom + 5);
        svg += text_at(axes.x(draft_len), kHeight - kBottom + 20, "middle", format("%g", draft_len));
    }
    svg += format("<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#222222\"/>\n", kLeft, kTop,
                  kHeight - kBottom, kWidth - kRight);
    svg += text_at((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle", "drafts per round (K)");
    svg += format("<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">speed-up over plain "
                  "decoding</text>\n",
                  (kTop + kHeight - kBottom) / 2);
    return svg;
}

std::string draw_line(const Axes& axes, const Line& line) {
    const char* dash = line.is_dashed ? " stroke-dasharray=\"6 4\"" : "";
    std::string points, marks;
    for (const Point& point : line.points) {
        const double x = axes.x(point.draft_len), y = axes.y(point.speedup);
        points += format("%.1f,%.1f ", x, y);
        marks += line.is_dashed
                     ? format("<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\" fill=\"#ffffff\" stroke=\"%s\"/>\n",
                              x - 3.5, y - 3.5, line.color)
                     : format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, y, line.color);
    }
    return format("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\"%s points=\"", line.color, dash) + points +
           "\"/>\n" + marks;
}

// In two columns above the chart: measured and predicted of one series stand beside each other.
std::string draw_legend(const std::vector<Line>& lines) {
    constexpr double column_width = 250, row_height = 18;
    std::string svg;
    for (size_t i = 0; i < lines.size(); ++i) {
        const double x = kLeft + column_width * static_cast<double>(i % 2);
        const double y = 20 + row_height * static_cast<double>(i / 2);
        svg += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"2\" stroke=\"%s\"%s/>\n", x,
                      y, x + 28, y, lines[i].color, lines[i].is_dashed ? " stroke-dasharray=\"6 4\"" : "");
        svg += text_at(x + 34, y + 4, "start", lines[i].label);
    }
    return svg;
}

} // namespace

void check_plot(const std::string& path) {
    AppendFile file; // takes nothing away
    if (file.open(path) == AppendFile::Opened::no)
        throw Failure(kExitFile, "--plot " + path + ": " + std::strerror(errno));
}

void write_plot(const std::string& path, const std::vector<PlotSeries>& series) {
    const std::vector<Line> lines = lines_of(series);
    const Axes axes(lines);
    std::string svg =
        format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
               "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n"
               "<title>Speed-up of speculative decoding by drafts per round</title>\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
               kWidth, kHeight, kWidth, kHeight);
    svg += draw_axes(axes);
    for (const Line& line : lines)
        svg += draw_line(axes, line);
    // Behind a halo, for a line may pass there.
    svg += "<g stroke=\"#ffffff\" stroke-width=\"4\" paint-order=\"stroke\">" +
           text_at(kWidth - kRight - 6, axes.y(1.0) - 5, "end", "plain decoding") + "</g>\n";
    svg += draw_legend(lines) + "</svg>\n";

    std::FILE* file = open_to_write(path);
    const bool is_written = file != nullptr && std::fwrite(svg.data(), 1, svg.size(), file) == svg.size();
    if ((file != nullptr && std::fclose(file) != 0) || !is_written)
        throw Failure(kExitFile, "--plot " + path + ": " + std::strerror(errno));
}

} // namespace auspex::cli
