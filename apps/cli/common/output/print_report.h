// A report for programs or for people, whichever was asked for.
#pragma once

namespace auspex::cli {

template <typename Report> void print_report(const Report& report, bool as_json) {
    if (as_json) print_json(report);
    else print_listing(report);
}

} // namespace auspex::cli
