// Figures that several commands derive and show. What does not apply is absent.
#pragma once

#include "cli/common/input/values.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace auspex::cli {

inline std::optional<double> per_second(uint64_t count, std::optional<double> milliseconds) {
    if (!milliseconds || *milliseconds <= 0.0) return std::nullopt;
    return static_cast<double>(count) * 1e3 / *milliseconds;
}

// Absent when `of` is 0.
inline std::optional<double> ratio(uint64_t count, uint64_t of) {
    if (of == 0) return std::nullopt;
    return static_cast<double>(count) / static_cast<double>(of);
}

// Of values that are not empty.
inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

// "12.3" or "n/a"
inline std::string number(std::optional<double> value, int decimals = 1) {
    return value ? format("%.*f", decimals, *value) : "n/a";
}

} // namespace auspex::cli
