// A queue, and threads that take from it.
#include "base/background.h"

#include <algorithm>
#include <system_error>

namespace auspex {

void Background::end() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        queue_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void Background::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
        if (ends_) return;
        Queued next = std::move(queue_.front());
        queue_.pop_front();
        running_.insert(next.number);
        lock.unlock();
        next.job();
        next.job = nullptr; // what it holds goes before anybody is told
        lock.lock();
        running_.erase(next.number);
        changed_.notify_all();
    }
}

bool Background::is_under_way(uint64_t number) const {
    return running_.contains(number) || std::any_of(queue_.begin(), queue_.end(), [&](const Queued& one) { return one.number == number; });
}

uint64_t Background::add(Job job) {
    try {
        while (threads_.size() < n_threads_) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
        n_threads_ = static_cast<uint32_t>(threads_.size());
    }
    if (threads_.empty()) return 0;
    const std::lock_guard lock(mutex_);
    queue_.push_back({++last_number_, std::move(job)});
    changed_.notify_all();
    return last_number_;
}

bool Background::is_done(uint64_t number) {
    const std::lock_guard lock(mutex_);
    return !is_under_way(number);
}

bool Background::try_take_back(uint64_t number) {
    const std::lock_guard lock(mutex_);
    return std::erase_if(queue_, [&](const Queued& one) { return one.number == number; }) > 0;
}

void Background::wait_for(uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_under_way(number); });
}

size_t Background::n_jobs() {
    const std::lock_guard lock(mutex_);
    return queue_.size() + running_.size();
}

} // namespace auspex
