// Answers that must be equal: every token, and every log-probability bit for bit.
#pragma once

#include "session/engine_fixture.h"

#include <cstring>

namespace auspex::test {

inline bool is_same(const TokenLogprob& a, const TokenLogprob& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
inline bool is_same(const TokenLogprobs& a, const TokenLogprobs& b) {
    return is_same(a.token, b.token) && std::equal(a.best.begin(), a.best.begin() + a.n_best, b.best.begin(), b.best.begin() + b.n_best,
                                                   [](const TokenLogprob& x, const TokenLogprob& y) { return is_same(x, y); });
}
// One for each token, bit for bit.
inline void expect_same(const Answer& found, const Answer& expected, const std::string& what) {
    ASSERT_EQ(found.tokens, expected.tokens) << what;
    ASSERT_EQ(found.logprobs.size(), found.tokens.size()) << what;
    for (size_t i = 0; i < found.tokens.size(); ++i) ASSERT_TRUE(is_same(found.logprobs[i], expected.logprobs[i])) << what << ", token " << i;
}

} // namespace auspex::test
