// What is printed leaves the process here, so that a failure is known by its cause however late it is reported.
#pragma once

#include <string>
#include <string_view>

namespace auspex::cli {

// What may be longer than the C library's buffer, which goes out at once.
void print_text(std::string_view text);
// Sends what was printed so far on its way.
void flush_output();
// Why something that was printed did not get out, of the first that did not: "No space left on device". Empty: all did.
std::string output_failure();

} // namespace auspex::cli
