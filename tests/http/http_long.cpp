// Ten million damaged requests, each read twice, and AUSPEX_HTTP_MUTATIONS of them where that is set.
#include "mutations.h"

#include <cstdlib>

namespace auspex::test::http_long {
namespace {

TEST(HttpLong, DamagedRequests) {
    const char* asked = std::getenv("AUSPEX_HTTP_MUTATIONS");
    const size_t n = asked ? std::stoul(asked) : 10000000;
    const size_t n_whole = expect_robust(3, n);
    EXPECT_GT(n_whole, n / 5);
    EXPECT_LT(n_whole, n);
}

} // namespace
} // namespace auspex::test::http_long
