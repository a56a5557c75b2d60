// Whole files written so that a reader never meets half of one: beside, under a name of their own, then renamed.
#pragma once

#include "base/status.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace auspex {

// What is to be replaced when `path` is written: where its links lead in the end, whether there is a file yet or not. io:
// something else is there (a folder, a device, a pipe), which a rename would take away from everybody.
Result<std::filesystem::path> file_behind(const std::string& path);

// Gives a finished file the name of another, which it replaces; what others may do with that one they may do with this.
std::error_code rename_over(const std::filesystem::path& finished, const std::filesystem::path& target);

// The file holds these bytes, or what it held before: io. Two writers at once have a file each, one of which stays.
Status replace_file(const std::string& path, std::string_view bytes);

} // namespace auspex
