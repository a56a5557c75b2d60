// The order in which sequences that wait are let in. Knows ids, priorities and times; nothing of slots and pages.
#pragma once

#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

namespace auspex {

// A better priority is worth so much waiting: whoever waits gains one in this time, so that nobody waits for ever.
constexpr uint64_t kNsOfPriority = 10'000'000'000;

class WaitingRoom {
  public:
    using Order = std::set<std::pair<int64_t, uint64_t>>; // (when it would have come had its priority been 0, id)

    // priority: lower goes first. One that comes back enters with the time when it first came, and so before those that came later.
    void enter(uint64_t id, int32_t priority, uint64_t came_ns) { order_.emplace(key_of(priority, came_ns), id); }
    void leave(uint64_t id, int32_t priority, uint64_t came_ns) { order_.erase({key_of(priority, came_ns), id}); }

    bool contains(uint64_t id, int32_t priority, uint64_t came_ns) const { return order_.contains({key_of(priority, came_ns), id}); }
    // How many go before it.
    uint32_t place(uint64_t id, int32_t priority, uint64_t came_ns) const {
        return static_cast<uint32_t>(std::distance(order_.begin(), order_.lower_bound({key_of(priority, came_ns), id})));
    }
    const Order& order() const { return order_; }
    uint32_t size() const { return static_cast<uint32_t>(order_.size()); }

  private:
    // All gain priority at one pace, so who goes before whom never changes.
    static int64_t key_of(int32_t priority, uint64_t came_ns) { return static_cast<int64_t>(came_ns) + priority * static_cast<int64_t>(kNsOfPriority); }
    Order order_;
};

} // namespace auspex
