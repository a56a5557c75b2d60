// Counts owners of pages.
#include "cache/page_pool.h"

namespace auspex {

PagePool::PagePool(uint32_t n_pages) : owners_(n_pages, 0), holders_(n_pages, 0), kept_(n_pages, false) {
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
    n_spare_ -= is_spare(page) ? 1 : 0;
    owners_[page] += 1;
    holders_[page] += 1;
}

void PagePool::keep(uint32_t page) {
    share(page);
    kept_[page] = true;
    n_spare_ += is_spare(page) ? 1 : 0;
}

void PagePool::unkeep(uint32_t page) {
    n_spare_ -= is_spare(page) ? 1 : 0;
    kept_[page] = false;
    if (--holders_[page] == 0) n_held_ -= 1;
    if (--owners_[page] == 0) free_.push_back(page);
}

void PagePool::retire(uint32_t page, uint64_t turn) {
    if (--holders_[page] == 0) n_held_ -= 1;
    n_spare_ += is_spare(page) ? 1 : 0;
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
