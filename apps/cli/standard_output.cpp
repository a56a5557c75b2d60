// The C library drops what it could not write and keeps no reason: errno is right only at once.
#include "cli/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace auspex::cli {

namespace {

std::string first_failure;

} // namespace

void flush_output() {
    errno = 0;
    if (std::fflush(stdout) == 0 || !first_failure.empty()) return;
    first_failure = errno != 0 ? std::strerror(errno) : "it could not be written";
}

std::string output_failure() {
    flush_output();
    // Printed in one go, more than the library's buffer holds, and nothing was left to flush.
    if (first_failure.empty() && std::ferror(stdout) != 0) return "it could not be written";
    return first_failure;
}

} // namespace auspex::cli
