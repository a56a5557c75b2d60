// A thread that does one task after another: what would take too long for those who have answers to move on or to write.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace auspex::server {

// Bytes of text from which on it is the worker that makes tokens of them, which takes some 20 ms for these: who asks for less does not
// wait for who asks for more.
constexpr size_t kLongBytes = size_t{16} << 10;

class Worker {
  public:
    Worker() : thread_([this] { run(); }) {}
    // Ends the task that it does; those that wait are left.
    ~Worker() {
        {
            const std::lock_guard lock(mutex_);
            is_ending_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void put(std::function<void()> task) { // any thread; it must not throw
        {
            const std::lock_guard lock(mutex_);
            tasks_.push_back(std::move(task));
        }
        wake_.notify_one();
    }

  private:
    void run() {
        std::unique_lock lock(mutex_);
        while (true) {
            wake_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
            if (is_ending_) return;
            const std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            lock.lock();
        }
    }

    std::mutex mutex_{};
    std::condition_variable wake_{};
    std::deque<std::function<void()>> tasks_{};
    bool is_ending_ = false;
    std::thread thread_; // the last: it uses the others
};

} // namespace auspex::server
