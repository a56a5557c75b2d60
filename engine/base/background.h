// Jobs on threads of their own, first come first served, while the caller does other things.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace auspex {

class Background {
  public:
    // Throws nothing.
    using Job = std::function<void()>;

    Background() = default;
    ~Background() { end(); }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    // Threads there may be from here on. They are started when the first job comes; where the system gives none there are none.
    void use_threads(uint32_t n_threads) { n_threads_ = n_threads; }
    uint32_t n_threads() const { return n_threads_; }

    // A job's number, above 0; 0: there is no thread to do it.
    uint64_t add(Job job);
    bool is_done(uint64_t number);
    // True: it had not begun and never will.
    bool try_take_back(uint64_t number);
    void wait_for(uint64_t number);
    size_t n_jobs(); // that are not done
    // What has not begun is dropped; waits for what has. Nothing may be added afterwards.
    void end();

  private:
    struct Queued {
        uint64_t number;
        Job job;
    };
    void work();
    bool is_under_way(uint64_t number) const; // the mutex is held

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Queued> queue_;
    std::set<uint64_t> running_;
    bool ends_ = false;
    uint32_t n_threads_ = 0;
    uint64_t last_number_ = 0;
    std::vector<std::thread> threads_; // not std::jthread, which Apple's library lacks
};

} // namespace auspex
