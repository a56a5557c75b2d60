// Paths as std::filesystem has them, from and to UTF-8, which all other code means by a path. Its own conversions of std::string mean
// the user's code page on Windows.
#pragma once

#include <filesystem>
#include <string>

namespace auspex {

inline std::filesystem::path system_path(const std::string& utf8) {
    return std::u8string(utf8.begin(), utf8.end());
}

inline std::string utf8_of(const std::filesystem::path& path) {
    const std::u8string utf8 = path.u8string();
    return {utf8.begin(), utf8.end()};
}

} // namespace auspex
