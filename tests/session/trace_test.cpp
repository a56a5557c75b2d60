// A GPU's clock put beside the host's: turns keep their lengths and gaps, never overlap, never begin before their submission.
#include "session/trace/turn_trace.h"

#include <gtest/gtest.h>

namespace auspex {
namespace {

TEST(Trace, the_least_delay_places_turns) {
    GpuClock clock(1.0, 64); // its zero is the host's 1000000
    // (begin, end, submitted, seen): seen 500 late, then 100 late, then 900 late.
    EXPECT_EQ(clock.begin_ns(2000, 3000, 1001000, 1003500), 1002500u);
    EXPECT_EQ(clock.begin_ns(10000, 12000, 1009000, 1012100), 1010100u) << "seen 100 after its end: that is the best known";
    EXPECT_EQ(clock.begin_ns(12500, 13000, 1010000, 1013900), 1012600u) << "500 behind the turn before, as on the GPU";
    EXPECT_EQ(clock.begin_ns(13000, 20000, 1010000, 1029000), 1013100u);
}

TEST(Trace, turns_do_not_overlap) {
    GpuClock clock(1.0, 64);
    EXPECT_EQ(clock.begin_ns(1000, 2000, 500, 7000), 6000u);
    EXPECT_EQ(clock.begin_ns(2010, 3000, 600, 7050), 7000u) << "seen with less delay, but the turn before was put where it was";
    EXPECT_EQ(clock.begin_ns(9000, 9500, 7000, 9600), 9100u);
}

TEST(Trace, clocks_wrap_and_tick_slowly) {
    GpuClock clock(50.0, 20); // 2^20 ticks of 50 ns: 52 ms
    const uint64_t mask = (1u << 20) - 1;
    EXPECT_EQ(clock.between_ns(mask, 1), 100u);
    EXPECT_EQ(clock.begin_ns(mask - 9, 10, 0, 1'000'000), 999'000u);
    EXPECT_EQ(clock.begin_ns(30, 50, 900'000, 1'010'000), 1'001'000u) << "20 ticks behind";
    // Nothing for two wraps: the gap is not what the ticks say.
    EXPECT_EQ(clock.begin_ns(60, 80, 106'000'000, 107'000'000), 106'999'000u);
}

} // namespace
} // namespace auspex
