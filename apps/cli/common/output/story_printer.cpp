// StoryPrinter: colours by origin, nothing a terminal would act on.
#include "cli/common/output/story_printer.h"

#include "cli/common/output/standard_output.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <cstdio>

namespace auspex::cli {

namespace {

constexpr const char* kPlain = "";
constexpr const char* kAccepted = "\033[32m";
constexpr const char* kCorrection = "\033[33m";
constexpr const char* kBonus = "\033[36m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kReset = "\033[0m";

const char* color_of(auspex_token_origin origin) {
    switch (origin) {
    case AUSPEX_TOKEN_ACCEPTED:
        return kAccepted;
    case AUSPEX_TOKEN_CORRECTION:
        return kCorrection;
    case AUSPEX_TOKEN_BONUS:
        return kBonus;
    default:
        return kPlain;
    }
}

bool uses_color(ColorMode mode, Stream stream) {
    if (mode != ColorMode::automatic) return mode == ColorMode::always;
    const bool is_unwanted =
        !environment("NO_COLOR").value_or("").empty() || environment("TERM").value_or("") == "dumb";
    return is_terminal(stream) && !is_unwanted;
}

} // namespace

std::string without_control_characters(std::string_view text) {
    std::string shown;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
        const bool is_c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0; // U+0080 to U+009F
        const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || is_c1;
        if (is_c1) ++i;
        if (is_control)
            shown += "\xef\xbf\xbd"; // U+FFFD
        else
            shown += static_cast<char>(byte);
    }
    return shown;
}

StoryPrinter::StoryPrinter(ColorMode color, size_t n_samples)
    : n_samples_(n_samples), is_terminal_(is_terminal(Stream::output)), has_color_(uses_color(color, Stream::output)),
      error_has_color_(uses_color(color, Stream::error)) {}

StoryPrinter::~StoryPrinter() {
    end_line();
}

void StoryPrinter::finish(bool has_drafts) {
    end_line();
    if (is_terminal_ && is_terminal(Stream::error)) std::fputc('\n', stderr); // before the summary
    if (!has_color_ || !has_drafts) return;
    const auto paint = [&](const char* color, const char* text) {
        return error_has_color_ ? std::string(color) + text + kReset : std::string(text);
    };
    std::fprintf(stderr, "%-12s %s, %s, %s\n", "colours", paint(kAccepted, "accepted draft").c_str(),
                 paint(kCorrection, "correction").c_str(), paint(kBonus, "bonus").c_str());
}

void StoryPrinter::print_prompt(const std::string& text) {
    if (is_terminal_ && !text.empty()) write(text, kDim);
    flush_output();
}

void StoryPrinter::print(const std::vector<Completion>& completions) {
    while (current_ < completions.size()) {
        const Completion& completion = completions[current_];
        if (!has_begun_) begin(completion);
        print_new_text(completion);
        if (completion.stop_reason == AUSPEX_STOP_NONE) break;
        end_line();
        ++current_;
        has_begun_ = false;
        n_tokens_ = n_bytes_ = 0;
    }
    flush_output();
}

void StoryPrinter::begin(const Completion& completion) {
    has_begun_ = true;
    if (n_samples_ == 1) return;
    end_line();
    if (current_ > 0) std::fputs(is_terminal_ ? "\n" : "---\n", stdout);
    flush_output();
    std::fprintf(stderr, "%s[%zu of %zu, seed %llu]%s\n", error_has_color_ ? kDim : "", current_ + 1, n_samples_,
                 static_cast<unsigned long long>(completion.seed), error_has_color_ ? kReset : "");
}

void StoryPrinter::print_new_text(const Completion& completion) {
    const std::string_view text = completion.text;
    for (; n_tokens_ < completion.tokens.size(); ++n_tokens_) {
        const auspex_token& token = completion.tokens[n_tokens_];
        const std::string_view bytes = text.substr(std::min(n_bytes_, text.size()), token.text_bytes);
        write(bytes, color_of(token.origin));
        n_bytes_ += bytes.size();
    }
    // What no token completed: the replacement of a character that stayed incomplete.
    if (completion.stop_reason != AUSPEX_STOP_NONE && n_bytes_ < text.size()) {
        write(text.substr(n_bytes_), kPlain);
        n_bytes_ = text.size();
    }
}

void StoryPrinter::write(std::string_view text, const char* color) {
    if (text.empty()) return;
    const std::string shown = is_terminal_ ? without_control_characters(text) : std::string(text);
    const bool is_painted = has_color_ && *color != '\0';
    if (is_painted) std::fputs(color, stdout);
    print_text(shown);
    if (is_painted) std::fputs(kReset, stdout);
    is_line_open_ = !text.ends_with('\n');
}

void StoryPrinter::end_line() {
    if (is_line_open_) std::fputc('\n', stdout);
    is_line_open_ = false;
    flush_output();
}

} // namespace auspex::cli
