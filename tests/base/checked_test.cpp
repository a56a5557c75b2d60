// Size arithmetic at its edges.
#include "base/checked.h"

#include <gtest/gtest.h>

namespace auspex::checked_test {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Checked, multiplies_until_it_would_wrap) {
    EXPECT_EQ(checked_mul(0, kMax), 0u);
    EXPECT_EQ(checked_mul(kMax, 0), 0u);
    EXPECT_EQ(checked_mul(1, kMax), kMax);
    EXPECT_EQ(checked_mul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1), ((uint64_t{1} << 32) - 1) << 32);
    EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
    EXPECT_EQ(checked_mul(kMax, 2), std::nullopt);
}

TEST(Checked, adds_until_it_would_wrap) {
    EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
    EXPECT_EQ(checked_add(kMax, 0), kMax);
    EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
    EXPECT_EQ(checked_add(1, kMax), std::nullopt);
}

TEST(Checked, rounds_up) {
    EXPECT_EQ(ceil_div(0u, 8u), 0u);
    EXPECT_EQ(ceil_div(1u, 8u), 1u);
    EXPECT_EQ(ceil_div(8u, 8u), 1u);
    EXPECT_EQ(ceil_div(9u, 8u), 2u);
    EXPECT_EQ(round_up(uint64_t{1234}, uint64_t{16}), 1248u);
    EXPECT_EQ(round_up(1248u, 16u), 1248u);
}

} // namespace
} // namespace auspex::checked_test
