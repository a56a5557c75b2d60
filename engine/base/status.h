// The only error type inside the engine: a code, and one line that says what was found, what was expected, what to do.
// Nothing here throws; the text is for people, the code is for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace auspex {

// Values equal auspex_status in the public header (checked in api/c_api.cpp).
enum class Code : int32_t {
    ok = 0,
    invalid_argument = -1,
    not_found = -2,          // a file or folder that was named does not exist
    bad_file = -3,           // a file that exists does not hold what it should
    unsupported = -4,        // understood, but not something this build or device can do
    out_of_host_memory = -5,
    out_of_device_memory = -6,
    device_lost = -7,        // sticky: every later call on the same device answers so
    capacity = -8,           // no free slot, page or room in the context
    mismatch = -9,           // target and draft do not fit together
    io = -10,
    internal = -11,
    no_device = -12,         // no Vulkan device, none of that name, or not a usable one
};

class [[nodiscard]] Status {
  public:
    Status() = default;
    Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

    bool ok() const { return code_ == Code::ok; }
    Code code() const { return code_; }
    const std::string& message() const { return message_; }

  private:
    Code code_ = Code::ok;
    std::string message_;
};

inline Status ok_status() { return {}; }

// Text found in a file, made safe to show inside a one-line message: bytes other than printable ASCII become \xHH,
// long text is cut.
inline std::string in_quotes(std::string_view text, size_t max_shown = 80) {
    constexpr char hex[] = "0123456789abcdef";
    std::string out = "\"";
    for (char c : text.substr(0, max_shown)) {
        if (c >= ' ' && c <= '~') {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
    }
    return out + (text.size() > max_shown ? "...\"" : "\"");
}

// A value or the status that explains its absence.
template <typename T> class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)) {}
    Result(Status status) : status_(std::move(status)) {}

    bool ok() const { return value_.has_value(); }
    const Status& status() const { return status_; }
    T& value() & { return *value_; }
    const T& value() const& { return *value_; }
    T&& value() && { return std::move(*value_); }

  private:
    std::optional<T> value_;
    Status status_;
};

} // namespace auspex

// Leaves the enclosing function with the status when `expression` failed.
#define AUSPEX_TRY(expression)                                                                                         \
    do {                                                                                                               \
        ::auspex::Status auspex_try_status = (expression);                                                             \
        if (!auspex_try_status.ok()) return auspex_try_status;                                                         \
    } while (0)

// Declares `variable` from a Result, or leaves the enclosing function with its status.
#define AUSPEX_TRY_ASSIGN(variable, expression)                                                                        \
    auto variable##_result = (expression);                                                                             \
    if (!variable##_result.ok()) return variable##_result.status();                                                    \
    auto variable = std::move(variable##_result).value()

// Gives `target`, which is there already, the value of a Result, or leaves the enclosing function with its status.
#define AUSPEX_TRY_SET(target, expression)                                                                             \
    do {                                                                                                               \
        auto auspex_try_result = (expression);                                                                         \
        if (!auspex_try_result.ok()) return auspex_try_result.status();                                                \
        (target) = std::move(auspex_try_result).value();                                                               \
    } while (0)
