// Files that lie in memory, in place of base/files_posix.cpp: no system call slows the fuzzers down, and
// a sanitizer sees the first byte that is read beyond a file's end.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace auspex::test {

// Forgets all files.
void clear_files();
// `bytes` must outlive its use; replaces a file of the same name.
void put_file(const std::string& path, std::span<const std::byte> bytes);
void put_file(const std::string& path, std::string_view text);

// A folder that exists on the real platform too, as parts of the engine ask that one. Nothing is written to it.
const std::string& memory_folder();

// A file of the real platform; empty when it cannot be read.
std::string real_file(const std::string& path);

} // namespace auspex::test
