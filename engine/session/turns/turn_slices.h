// How finely a turn is cut, and which of its segments go together, so that no submission takes longer than it may.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>

namespace auspex {

constexpr double kNoBudget = std::numeric_limits<double>::infinity(); // ms

// Parts that a pass over n_layers is cut into, a power of two so that few recordings are enough; of a turn that fits the limit 0: one
// segment. A turn holds a pass of pass_ms, and what else it holds is cut alike.
uint32_t slices_of(double turn_ms, double pass_ms, double limit_ms, uint32_t n_layers);

struct Submission {
    uint32_t n_segments = 0;
    double ms = 0;        // predicted
    bool is_known = true; // else it is one segment that was never timed, and may take any time
};
// The first of these segments (their predicted ms; < 0: never timed) that one submission may hold within limit_ms. Only what fits
// left_ms, of which a segment never timed needs all; forced: the first one whatever it takes.
Submission next_submission(std::span<const double> segment_ms, double limit_ms, double left_ms, bool forced);

// GPU time of replays of one kind, by number of rows.
class ReplayPace {
  public:
    void observe(uint32_t rows, double ms);
    // At most about so much; < 0: none was timed yet.
    double ms(uint32_t rows) const;

  private:
    std::map<uint32_t, double> ms_;
};

} // namespace auspex
