// Shows completions while they grow: text on stdout, tokens coloured by their origin, headers and legend on stderr.
#pragma once

#include "cli/common/input/options.h"

#include <string>
#include <string_view>
#include <vector>

namespace auspex::cli {

struct Completion {
    std::vector<auspex_token> tokens; // the end token included
    std::string text;                 // UTF-8, without the end token
    auspex_stop_reason stop_reason = AUSPEX_STOP_NONE;
    uint64_t seed = 0;
};

class StoryPrinter {
  public:
    StoryPrinter(ColorMode color, size_t n_samples);
    ~StoryPrinter(); // ends the last line
    StoryPrinter(const StoryPrinter&) = delete;
    StoryPrinter& operator=(const StoryPrinter&) = delete;

    // Only on a terminal: elsewhere stdout holds what was generated and nothing else.
    void print_prompt(const std::string& text);
    // Prints what is new. A completion is shown after the ones before it have ended.
    void print(const std::vector<Completion>& completions);
    // Before a summary: ends the last line, prints the legend when colours were used.
    void finish(bool has_drafts);

  private:
    void begin(const Completion& completion);
    void print_new_text(const Completion& completion);
    void write(std::string_view text, const char* color);
    void end_line();

    size_t n_samples_;
    bool is_terminal_, has_color_, error_has_color_;
    bool is_line_open_ = false;
    // What has been shown.
    size_t current_ = 0; // completion
    bool has_begun_ = false;
    size_t n_tokens_ = 0, n_bytes_ = 0;
};

// A model may generate escape sequences; a terminal must not act on them.
std::string without_control_characters(std::string_view text);

} // namespace auspex::cli
