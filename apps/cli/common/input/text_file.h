// Texts that a flag names a file of, whole.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace auspex::cli {

// What is left of a stream. name: the flag and the file, for errors. Throws where it cannot be read, or has more bytes.
std::string read_stream(std::FILE* stream, const std::string& name, size_t most_bytes);
std::string read_file(const std::string& flag, const std::string& path, size_t most_bytes);

} // namespace auspex::cli
