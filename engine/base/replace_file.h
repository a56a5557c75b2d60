// Whole files written so that a reader never meets half of one: beside, under a name of their own, then renamed.
#pragma once

#include "base/status.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace auspex {

// A path as the system wants it, from UTF-8.
std::filesystem::path system_path(const std::string& utf8);

// The file holds these bytes, or what it held before: io. Two writers at once have a file each, one of which stays.
Status replace_file(const std::string& path, std::string_view bytes);

} // namespace auspex
