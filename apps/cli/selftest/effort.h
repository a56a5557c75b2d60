// How much selftest does on this device: everything, unless that would take very long. In a header, so that tests can ask it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace auspex::cli {

// What all draws of completions may take. Lavapipe took 20 s on two busy cores; SwiftShader, at 16 per second, would take 49 minutes.
inline constexpr double kSecondsForDraws = 150.0;

// Decides once, by what the first few hundred completions take, and for all checks: their texts are as much slower.
class Effort {
  public:
    explicit Effort(double seconds_for_draws) : seconds_for_draws_(seconds_for_draws) {}

    // A batch of n completions took so long; n_all are to be drawn. The first batch compiles shaders and does not count.
    // Of up to three others the fastest does, because anything may have come between.
    void add_batch(double seconds, uint64_t n, uint64_t n_all) {
        constexpr uint32_t kTimedBatches = 3;
        if (is_decided_ || n_batches_++ == 0) return;
        per_second_ = std::max(per_second_, static_cast<double>(n) / std::max(seconds, 1e-9));
        expected_seconds_ = static_cast<double>(n_all) / per_second_;
        const bool is_slow = expected_seconds_ > seconds_for_draws_;
        if (is_slow && n_batches_ <= kTimedBatches) return;
        is_decided_ = true;
        is_small_ = is_slow;
    }

    bool is_small() const { return is_small_; }
    template <typename Amount> Amount choose(Amount all, Amount small) const { return is_small_ ? small : all; }

    double per_second() const { return per_second_; }               // completions; 0: none were timed
    double expected_seconds() const { return expected_seconds_; }   // for all draws
    double seconds_for_draws() const { return seconds_for_draws_; } // that they may take

  private:
    double seconds_for_draws_, per_second_ = 0.0, expected_seconds_ = 0.0;
    uint32_t n_batches_ = 0;
    bool is_decided_ = false, is_small_ = false;
};

} // namespace auspex::cli
