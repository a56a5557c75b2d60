// Every thread takes the next piece until none is left.
#include "base/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace auspex {

void side_by_side(size_t n, uint32_t n_threads, const std::function<void(size_t)>& piece) {
    std::atomic<size_t> next = 0;
    auto work = [&] {
        for (size_t i = next++; i < n; i = next++) piece(i);
    };
    const size_t n_helpers = n > 1 && n_threads > 1 ? std::min<size_t>(n, n_threads) - 1 : 0;
    std::vector<std::thread> helpers; // not std::jthread, which Apple's library lacks
    helpers.reserve(n_helpers);
    try {
        while (helpers.size() < n_helpers) helpers.emplace_back(work);
    } catch (const std::system_error&) { // those there are do
    }
    work();
    for (std::thread& helper : helpers) helper.join();
}

} // namespace auspex
