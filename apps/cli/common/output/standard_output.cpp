// The C library drops what it could not write and keeps no reason: errno is right only at once.
#include "cli/common/output/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace auspex::cli {

namespace {

constexpr const char* kNoCause = "it could not be written";

std::string first_failure;

void note_failure() {
    if (first_failure.empty()) first_failure = errno != 0 ? std::strerror(errno) : kNoCause;
}

} // namespace

void print_text(std::string_view text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) note_failure();
}

void flush_output() {
    errno = 0;
    if (std::fflush(stdout) != 0) note_failure();
}

std::string output_failure() {
    flush_output();
    if (first_failure.empty() && std::ferror(stdout) != 0) return kNoCause;
    return first_failure;
}

} // namespace auspex::cli
