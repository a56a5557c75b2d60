// Sequences are cancelled 10,000 times, and destroyed, parked and forked, at random moments of their lives.
#include "session/waiting_crowd.h"

namespace auspex::waiting_long {
namespace {

TEST(WaitingLong, random_moments) {
    for (uint32_t seed = 1; seed <= 5; ++seed) test::crowd::check_random_moments(40'000, 2'000, seed);
}

} // namespace
} // namespace auspex::waiting_long
