// A logger passed by reference: the engine owns no sink and no global. Called only on the thread inside an API call.
#pragma once

#include <functional>
#include <string_view>

namespace auspex {

enum class LogLevel : int { debug = 0, info = 1, warning = 2, error = 3 };

struct Logger {
    std::function<void(LogLevel, std::string_view)> sink; // empty: silent

    void operator()(LogLevel level, std::string_view message) const {
        if (sink) sink(level, message);
    }
};

} // namespace auspex
