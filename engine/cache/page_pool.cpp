// Counts owners of pages.
#include "cache/page_pool.h"

namespace auspex {

PagePool::PagePool(uint32_t n_pages) : owners_(n_pages, 0), holders_(n_pages, 0) {
    for (uint32_t page = n_pages; page-- > 0;) free_.push_back(page);
}

std::optional<uint32_t> PagePool::take() {
    if (free_.empty()) return std::nullopt;
    const uint32_t page = free_.back();
    free_.pop_back();
    owners_[page] = holders_[page] = 1;
    n_held_ += 1;
    return page;
}

void PagePool::share(uint32_t page) {
    owners_[page] += 1;
    holders_[page] += 1;
}

void PagePool::retire(uint32_t page, uint64_t turn) {
    if (--holders_[page] == 0) n_held_ -= 1;
    retired_.push_back({page, turn});
}

void PagePool::collect(uint64_t completed_turn) {
    std::erase_if(retired_, [&](const Retired& retired) {
        if (retired.turn > completed_turn) return false;
        if (--owners_[retired.page] == 0) free_.push_back(retired.page);
        return true;
    });
}

} // namespace auspex
