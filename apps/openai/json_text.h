// JSON as strangers send it: parsed within limits, and refused in a few words.
#pragma once

#include "openai/error.h"

#include <optional>
#include <string>
#include <string_view>

namespace auspex::openai {

inline constexpr size_t kMaxJsonBytes = size_t{4} << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxNameWork = size_t{4} << 20; // each name of an object is compared with those before it

// One value. Of a key that comes twice the last counts. Throws RequestError: too long, too deep, too many names, not JSON (NaN, 1e999,
// lone surrogates and bytes that are no UTF-8 are none).
Json parse_json(std::string_view text);

// The string that a key of the outermost object has, as far as the text is JSON; of several the last.
std::optional<std::string> find_string(std::string_view text, std::string_view key);

// In one line. Text that is no UTF-8 gets U+FFFD in the place of what is none.
std::string to_text(const Json& json);

} // namespace auspex::openai
