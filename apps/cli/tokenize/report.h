// What auspex tokenize found out, as plain data, and the ways to show it on stdout.
#pragma once

#include "cli/tokenize/options.h"

namespace auspex::cli {

struct TokenizeReport {
    std::vector<uint32_t> ids;
    std::vector<std::string> pieces; // bytes, one for each id
};

void print_json(const TokenizeReport& report);
void print_text_json(const std::string& text); // {"text": …}
void print_listing(const TokenizeReport& report);

} // namespace auspex::cli
