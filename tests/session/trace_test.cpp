// A GPU's clock put beside the host's: turns keep their lengths and gaps, never overlap, never begin before their submission nor end
// after they were seen to be done.
#include "session/trace/turn_trace.h"

#include <gtest/gtest.h>

#include <random>

namespace auspex::trace_test {
namespace {

TEST(Trace, the_least_wait_places_turns) {
    GpuClock clock(1.0, 64); // its zero is the host's 1000000
    // (begin, end, submitted, seen): begun 1000 after its submission, then 100, then 900.
    EXPECT_EQ(clock.begin_ns(2000, 3000, 1001000, 1003500), 1001000u);
    EXPECT_EQ(clock.begin_ns(10000, 12000, 1009900, 1012100), 1009900u) << "begun 100 after its submission: that is the best known";
    EXPECT_EQ(clock.begin_ns(12500, 13000, 1011600, 1013900), 1012400u) << "500 after the turn before, as on the GPU";
    EXPECT_EQ(clock.begin_ns(13000, 20000, 1010000, 1029000), 1012900u) << "queued after it";
}

// The host looks when it can: two turns in flight, seen at once or long after their end.
TEST(Trace, turns_neither_overlap_nor_end_after_they_were_seen) {
    std::mt19937 random(1);
    auto up_to = [&](uint64_t most) { return random() % (most + 1); };
    constexpr uint64_t zero = 1'000'000'000;
    GpuClock clock(1.0, 64);
    uint64_t gpu = 0, seen = zero, seen_before = zero, end_before = 0; // gpu: when it is free
    for (int turn = 0; turn < 10000; ++turn) {
        const uint64_t submitted = std::max(seen_before, seen - up_to(seen - seen_before)); // while the turn before runs, or after
        const uint64_t begin = std::max(gpu, submitted - zero + up_to(50)) + up_to(100), end = begin + 1 + up_to(5000);
        gpu = end;
        seen_before = seen;
        seen = std::max(seen, zero + end) + (turn % 7 == 0 ? up_to(4000) : up_to(10));
        const uint64_t placed = clock.begin_ns(begin, end, submitted, seen), placed_end = placed + (end - begin);
        ASSERT_GE(placed, submitted) << "turn " << turn;
        ASSERT_GE(placed, end_before) << "turn " << turn;
        ASSERT_LE(placed_end, seen) << "turn " << turn;
        ASSERT_LE(zero + begin - placed, 150u) << "turn " << turn << ": no further from where it was than the least wait";
        end_before = placed_end;
    }
}

TEST(Trace, clocks_wrap_are_set_back_and_tick_slowly) {
    GpuClock slow(50.0, 20); // 2^20 ticks of 50 ns: 52 ms
    const uint64_t mask = (1u << 20) - 1;
    EXPECT_EQ(slow.between_ns(mask, 1), 100u);
    EXPECT_EQ(slow.begin_ns(mask - 9, 10, 998'000, 1'000'000), 998'000u);
    EXPECT_EQ(slow.begin_ns(30, 50, 900'000, 1'010'000), 1'000'000u) << "20 ticks later";
    // Nothing for two wraps: the gap is not what the ticks say.
    EXPECT_EQ(slow.begin_ns(60, 80, 106'000'000, 107'000'000), 106'000'000u);

    GpuClock clock(50.0, 64);
    EXPECT_EQ(clock.begin_ns(2000, 3000, 1'000, 60'000), 1'000u);
    EXPECT_EQ(clock.begin_ns(500, 700, 70'000, 90'000), 80'000u) << "the clock was set back";
}

} // namespace
} // namespace auspex::trace_test
