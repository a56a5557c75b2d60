// Jobs are done once and in order; what has not begun can be taken back, and is dropped at the end.
#include "base/background.h"

#include <atomic>
#include <gtest/gtest.h>
#include <vector>

namespace auspex::background_test {
namespace {

// Lets a job begin and keeps it there.
struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool begun = false, open = false;
    void pass() {
        std::unique_lock lock(mutex);
        begun = true;
        changed.notify_all();
        EXPECT_TRUE(changed.wait_for(lock, std::chrono::minutes(1), [&] { return open; }));
    }
    void wait_until_begun() {
        std::unique_lock lock(mutex);
        EXPECT_TRUE(changed.wait_for(lock, std::chrono::minutes(1), [&] { return begun; }));
    }
    void let_go() {
        const std::lock_guard lock(mutex);
        open = true;
        changed.notify_all();
    }
};

TEST(Background, does_every_job_once_and_in_order) {
    std::vector<int> done;
    Gate gate;
    Background background;
    background.use_threads(1);
    for (int i = 0; i < 100; ++i) background.add([&, i] { done.push_back(i); });
    background.add([&] { gate.pass(); });
    gate.wait_until_begun();
    EXPECT_EQ(background.n_jobs(), 1u);
    gate.let_go();
    ASSERT_EQ(done.size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
}

TEST(Background, without_threads_nothing_is_taken) {
    Background background;
    EXPECT_EQ(background.add([] { ADD_FAILURE(); }), 0u);
}

TEST(Background, what_has_begun_is_waited_for_and_what_has_not_is_taken_back) {
    Gate gate;
    std::atomic<bool> ended = false, second = false;
    Background background;
    background.use_threads(1);
    const uint64_t first = background.add([&] { gate.pass(), ended = true; });
    const uint64_t next = background.add([&] { second = true; });
    gate.wait_until_begun();
    EXPECT_FALSE(background.is_done(first));
    EXPECT_FALSE(background.is_done(next));
    EXPECT_EQ(background.n_jobs(), 2u);
    EXPECT_TRUE(background.try_take_back(next));
    EXPECT_FALSE(background.try_take_back(first));
    std::thread opener([&] { gate.let_go(); });
    background.wait_for(first);
    EXPECT_TRUE(ended);
    opener.join();
    EXPECT_TRUE(background.is_done(first));
    EXPECT_FALSE(second);
}

TEST(Background, its_end_waits_for_what_has_begun_and_drops_the_rest) {
    std::atomic<int> begun = 0, ended = 0;
    {
        Background background;
        background.use_threads(1);
        for (int i = 0; i < 1000; ++i)
            background.add([&] {
                ++begun;
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
                ++ended;
            });
    }
    EXPECT_EQ(begun, ended);
    EXPECT_LT(ended, 1000);
}

// Each waits for the other: on one thread, that would be for ever.
TEST(Background, two_threads_do_two_jobs_at_once) {
    Gate first, second;
    Background background;
    background.use_threads(2);
    const uint64_t a = background.add([&] { first.wait_until_begun(), second.pass(); });
    const uint64_t b = background.add([&] { first.pass(); });
    second.wait_until_begun();
    second.let_go();
    first.let_go();
    background.wait_for(a);
    background.wait_for(b);
    EXPECT_EQ(background.n_jobs(), 0u);
}

} // namespace
} // namespace auspex::background_test
