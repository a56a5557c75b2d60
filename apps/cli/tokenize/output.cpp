// Tokens as a listing and as JSON.
#include "cli/common/output/json.h"
#include "cli/tokenize/report.h"

#include <cstdio>

namespace auspex::cli {

namespace {

// A piece between quotation marks, its line ends and other control characters escaped.
std::string quoted(const std::string& piece) {
    std::string text = "\"";
    for (const char character : with_visible_bytes(piece)) {
        const auto byte = static_cast<unsigned char>(character);
        if (character == '\n')
            text += "\\n";
        else if (character == '\t')
            text += "\\t";
        else if (character == '"' || character == '\\')
            text += std::string("\\") + character;
        else if (byte < 0x20 || byte == 0x7f)
            text += format("\\x%02x", byte);
        else
            text += character;
    }
    return text + "\"";
}

} // namespace

void print_listing(const TokenizeReport& report) {
    for (size_t i = 0; i < report.ids.size(); ++i)
        std::printf("%6u  %s\n", report.ids[i], quoted(report.pieces[i]).c_str());
}

void print_json(const TokenizeReport& report) {
    Json pieces = Json::array();
    for (const std::string& piece : report.pieces)
        pieces.push_back(with_visible_bytes(piece));
    print({{"ids", report.ids}, {"pieces", pieces}});
}

void print_text_json(const std::string& text) {
    print({{"text", text}});
}

} // namespace auspex::cli
