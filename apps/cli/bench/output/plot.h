// A chart of speed-up against K as an SVG file of its own: no script, no font file, its own light background, so that
// it reads alike in light and dark viewers.
#pragma once

#include "cli/bench/output/report.h"

namespace auspex::cli {

struct PlotSeries {
    std::string label;                // "temperature 0"; "": only one
    std::vector<BenchResult> results; // those of the drafter model are drawn
};

// Both throw Failure(kExitFile) when the file cannot be written; the first is for before minutes of measuring.
void check_plot(const std::string& path);
void write_plot(const std::string& path, const std::vector<PlotSeries>& series);

} // namespace auspex::cli
