// Every piece is done once, whatever the number of threads, and all before the call returns.
#include "base/side_by_side.h"

#include <atomic>
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <vector>

namespace auspex::side_by_side_test {
namespace {

TEST(SideBySide, does_every_piece_once) {
    for (uint32_t n_threads : {0u, 1u, 2u, 7u, 64u})
        for (size_t n : {0u, 1u, 2u, 5u, 300u}) {
            std::vector<std::atomic<int>> done(n);
            side_by_side(n, n_threads, [&](size_t i) { ++done[i]; });
            for (size_t i = 0; i < n; ++i) EXPECT_EQ(done[i], 1) << "piece " << i << " of " << n << " on " << n_threads;
        }
}

// Each piece waits until the other has begun: on one thread, that would be for ever.
TEST(SideBySide, pieces_run_at_the_same_time) {
    std::mutex mutex;
    std::condition_variable changed;
    size_t begun = 0;
    side_by_side(2, 2, [&](size_t) {
        std::unique_lock lock(mutex);
        ++begun;
        changed.notify_all();
        EXPECT_TRUE(changed.wait_for(lock, std::chrono::minutes(1), [&] { return begun == 2; }));
    });
}

} // namespace
} // namespace auspex::side_by_side_test
