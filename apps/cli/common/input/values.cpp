// Parsing and formatting of single values.
#include "cli/common/input/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace auspex::cli {

namespace {

std::optional<uint64_t> whole_number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<double> finite_number(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool is_decimal = text.find_first_not_of("0123456789.+-eE") == std::string::npos; // no nan, inf, 0x1p3
    if (text.empty() || !is_decimal || end != text.c_str() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

[[noreturn]] void fail_usage(const std::string& flag, const std::string& found, const std::string& expected) {
    const std::string value = found.empty() ? "\"\"" : found;
    throw Failure(kExitUsage, flag + " " + value + ": expected " + expected);
}

} // namespace

std::string format(const char* pattern, ...) {
    std::va_list arguments, again;
    va_start(arguments, pattern);
    va_copy(again, arguments);
    const int size = std::vsnprintf(nullptr, 0, pattern, arguments);
    va_end(arguments);
    std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
    std::vsnprintf(text.data(), text.size() + 1, pattern, again);
    va_end(again);
    return text;
}

std::string shortened(const std::string& text, size_t most) {
    if (text.size() <= most) return text;
    const auto is_inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
    size_t end = most / 2, begin = text.size() - most / 2;
    while (end > 0 && is_inside(end))
        --end;
    while (begin < text.size() && is_inside(begin))
        ++begin;
    return text.substr(0, end) + " ... " + text.substr(begin);
}

std::string format_bytes(uint64_t bytes) {
    constexpr std::array units = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < units.size()) {
        value /= 1024.0;
        ++unit;
    }
    return format(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

std::vector<std::pair<std::string, auspex_weight_type>> weight_types() {
    return {{"as-is", AUSPEX_WEIGHTS_AS_IS}, {"f16", AUSPEX_WEIGHTS_F16},   {"bf16", AUSPEX_WEIGHTS_BF16},
            {"q8_0", AUSPEX_WEIGHTS_Q8_0},   {"q6_k", AUSPEX_WEIGHTS_Q6_K}, {"q4_k", AUSPEX_WEIGHTS_Q4_K},
            {"q4_0", AUSPEX_WEIGHTS_Q4_0}};
}

std::string format_api_version(uint32_t version) {
    return format("%u.%u.%u", (version >> 22) & 0x7fu, (version >> 12) & 0x3ffu, version & 0xfffu);
}

std::string lower_case(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

std::string as_one_line(std::string_view text) {
    std::string line(text);
    for (char& character : line)
        if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) character = ' ';
    while (!line.empty() && line.back() == ' ')
        line.pop_back();
    return line;
}

size_t find_invalid_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const auto lead = static_cast<unsigned char>(text[at]);
        const size_t n_bytes = lead < 0x80                   ? 1u
                               : lead >= 0xc2 && lead < 0xe0 ? 2u
                               : lead >= 0xe0 && lead < 0xf0 ? 3u
                               : lead >= 0xf0 && lead < 0xf5 ? 4u
                                                             : 0u;
        if (n_bytes == 0 || at + n_bytes > text.size()) return at;
        for (size_t i = 1; i < n_bytes; ++i) {
            const auto trail = static_cast<unsigned char>(text[at + i]);
            // Overlong forms, surrogates and code points past U+10FFFF show in the second byte.
            const unsigned lowest = i == 1 && lead == 0xe0 ? 0xa0u : i == 1 && lead == 0xf0 ? 0x90u : 0x80u;
            const unsigned highest = i == 1 && lead == 0xed ? 0x9fu : i == 1 && lead == 0xf4 ? 0x8fu : 0xbfu;
            if (trail < lowest || trail > highest) return at;
        }
        at += n_bytes;
    }
    return std::string_view::npos;
}

std::string with_visible_bytes(std::string_view text) {
    std::string visible;
    while (!text.empty()) {
        const size_t n_valid = std::min(find_invalid_utf8(text), text.size());
        visible += text.substr(0, n_valid);
        text.remove_prefix(n_valid);
        if (text.empty()) break;
        visible += format("<0x%02X>", static_cast<unsigned char>(text.front()));
        text.remove_prefix(1);
    }
    return visible;
}

std::string shortest(float value) {
    std::array<char, 32> digits;
    const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    return {digits.data(), result.ptr};
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(separator, begin), text.size());
        std::string part = text.substr(begin, end - begin);
        while (part.starts_with(' '))
            part.erase(0, 1);
        while (part.ends_with(' '))
            part.pop_back();
        parts.push_back(std::move(part));
        begin = end + 1;
    }
    return parts;
}

uint64_t parse_whole(const std::string& flag, const std::string& text, uint64_t lowest, uint64_t highest,
                     const char* or_else) {
    const auto value = whole_number(text);
    if (!value || *value < lowest || *value > highest)
        fail_usage(flag, text,
                   format("%sa whole number from %llu to %llu", or_else, static_cast<unsigned long long>(lowest),
                          static_cast<unsigned long long>(highest)));
    return *value;
}

double parse_number(const std::string& flag, const std::string& text, double lowest, double highest) {
    const auto value = finite_number(text);
    if (!value || *value < lowest || *value > highest)
        fail_usage(flag, text, format("a number from %g to %g", lowest, highest));
    return *value == 0.0 ? 0.0 : *value;
}

double parse_temperature(const std::string& flag, const std::string& text) {
    constexpr double lowest = 0.001, highest = 100.0; // logits / T must stay finite in f32
    const auto value = finite_number(text);
    if (!value || (*value != 0.0 && (*value < lowest || *value > highest)))
        fail_usage(flag, text, "0 (greedy) or a number from 0.001 to 100");
    return *value;
}

uint32_t parse_n_predict(const std::string& flag, const std::string& text) {
    return text == "-1" ? 0u : static_cast<uint32_t>(parse_whole(flag, text, 1, 0x7fffffff, "-1 or "));
}

std::optional<uint64_t> parse_seed(const std::string& flag, const std::string& text) {
    return text == "-1" ? std::nullopt : std::optional(parse_whole(flag, text, 0, UINT64_MAX, "-1 or "));
}

std::vector<uint32_t> parse_whole_list(const std::string& flag, const std::string& text, uint32_t lowest,
                                       uint32_t highest) {
    std::vector<uint32_t> values;
    for (const std::string& part : split(text, ',')) {
        const auto value = whole_number(part);
        if (!value || *value < lowest || *value > highest)
            fail_usage(flag, part, format("whole numbers from %u to %u, separated by commas", lowest, highest));
        values.push_back(static_cast<uint32_t>(*value));
    }
    return values;
}

std::vector<int64_t> parse_position_list(const std::string& flag, const std::string& text) {
    constexpr uint64_t highest = 0x7fffffff;
    std::vector<int64_t> positions;
    for (const std::string& part : split(text, ',')) {
        const bool is_negative = part.starts_with('-');
        const auto value = whole_number(std::string_view(part).substr(is_negative ? 1 : 0));
        if (!value || *value > highest || (is_negative && *value == 0))
            fail_usage(flag, part, "positions from 0, or from -1 for the last, separated by commas");
        positions.push_back(is_negative ? -static_cast<int64_t>(*value) : static_cast<int64_t>(*value));
    }
    return positions;
}

std::optional<uint32_t> parse_id(const std::string& text) {
    const auto value = whole_number(text);
    return value && *value <= UINT32_MAX ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

std::vector<uint32_t> parse_ids(const std::string& source, const std::string& text) {
    constexpr std::string_view separators = ", \t\r\n";
    std::string_view rest = text;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    if (rest.starts_with('[') && rest.find(']') != std::string_view::npos) {
        const size_t end = rest.rfind(']');
        const std::string_view tail = rest.substr(end + 1);
        if (tail.find_first_not_of(" \t\r\n") == std::string_view::npos) rest = rest.substr(1, end - 1);
    }
    std::vector<uint32_t> ids;
    while (true) {
        rest.remove_prefix(std::min(rest.find_first_not_of(separators), rest.size()));
        if (rest.empty()) return ids;
        const std::string_view part = rest.substr(0, rest.find_first_of(separators));
        const auto value = whole_number(part);
        if (!value || *value > UINT32_MAX) {
            const std::string shown = as_one_line(with_visible_bytes(part.substr(0, 40)));
            fail_usage(source + ":", shown, "token ids, separated by commas or white space");
        }
        ids.push_back(static_cast<uint32_t>(*value));
        rest.remove_prefix(part.size());
    }
}

} // namespace auspex::cli
