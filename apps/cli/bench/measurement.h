// Statistics over several completions, whether they fit the context, and the line that shows which one runs.
#pragma once

#include "cli/common/engine/client.h"

#include <span>
#include <string>

namespace auspex::cli {

double standard_deviation(std::span<const double> values); // of the sample; 0 for one value
double expected_tokens(double alpha, uint32_t draft_len); // (1 − α^(K+1)) / (1 − α): Leviathan et al. 2023, eq. 1

void check_room(size_t prompt_n, uint32_t n_predict, const auspex_engine_info& engine);

// One line on stderr that is drawn again and again, where stderr is a terminal.
class StatusLine {
  public:
    ~StatusLine();
    void show(const std::string& text);

  private:
    bool is_shown_ = false;
};

} // namespace auspex::cli
