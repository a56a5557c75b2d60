// Text to checked values and back, and the one way a command fails. Knows nothing of commands or engines.
#pragma once

#include <auspex/auspex_tools.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace auspex::cli {

// Exit codes, as --help lists them.
enum ExitCode : int {
    kExitOk = 0,
    kExitInternal = 1,
    kExitUsage = 2,    // a flag or its value
    kExitFile = 3,     // a file or model: missing, damaged, unsupported, or a pair that does not match
    kExitDevice = 4,   // a device: missing, unusable, lost, or out of memory
    kExitCapacity = 5, // the prompt does not fit the context
    kExitAgain = 75, // EX_TEMPFAIL: stopped in good order, and the same command goes on
    kExitInterrupted = 130
};

// The middle of a text that is longer than `most` bytes is left out, at whole characters.
std::string shortened(const std::string& text, size_t most);

// Ends the command: main prints the message as one line and returns the code. Of a message that repeats a long value,
// beginning and end are kept.
class Failure : public std::runtime_error {
  public:
    Failure(ExitCode exit_code, const std::string& message)
        : std::runtime_error(shortened(message, 600)), exit_code_(exit_code) {}
    ExitCode exit_code() const { return exit_code_; }

  private:
    ExitCode exit_code_;
};

#if defined(__MINGW32__)
__attribute__((format(gnu_printf, 1, 2))) // what its vsnprintf takes in C++
#elif defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
std::string
format(const char* pattern, ...);

// "1.5 GiB"
std::string format_bytes(uint64_t bytes);
// "q4_k": what --quant, --draft-quant and --type take.
std::vector<std::pair<std::string, auspex_weight_type>> weight_types();
// "1.3.230"
std::string format_api_version(uint32_t version);
std::string lower_case(std::string text); // of ASCII
// Control characters and line ends become spaces.
std::string as_one_line(std::string_view text);
// Byte offset of the first sequence that is not UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);
// Bytes that are no whole character become "<0xHH>".
std::string with_visible_bytes(std::string_view text);
// The fewest digits that give this float again.
std::string shortest(float value);

// Spaces around a part are not part of it.
std::vector<std::string> split(const std::string& text, char separator);

// Each throws Failure(kExitUsage) that names the flag, what was found and what was expected.
// `or_else` goes before the range in the message: "-1 or ".
uint64_t parse_whole(const std::string& flag, const std::string& text, uint64_t lowest, uint64_t highest,
                     const char* or_else = "");
// -0 is 0. Nothing but a finite number in decimal notation.
double parse_number(const std::string& flag, const std::string& text, double lowest, double highest);
double parse_temperature(const std::string& flag, const std::string& text);
uint32_t parse_n_predict(const std::string& flag, const std::string& text);           // -1: 0, no limit
std::optional<uint64_t> parse_seed(const std::string& flag, const std::string& text); // -1: none
std::vector<uint32_t> parse_whole_list(const std::string& flag, const std::string& text, uint32_t lowest,
                                       uint32_t highest);
// 0, 5 and, from the end, -1.
std::vector<int64_t> parse_position_list(const std::string& flag, const std::string& text);
std::optional<uint32_t> parse_id(const std::string& text); // none: not a whole number of 32 bits
// Separated by commas or white space, perhaps in brackets, as programs write them. source: for errors.
std::vector<uint32_t> parse_ids(const std::string& source, const std::string& text);

} // namespace auspex::cli
