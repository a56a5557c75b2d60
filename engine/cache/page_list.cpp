// Every decision about pages is made here and in the pool.
#include "cache/page_list.h"

namespace auspex {

Status PageList::grow(uint32_t n_rows, std::vector<PageChange>& changes) {
    const uint32_t wanted = pages_for(n_rows);
    if (wanted > max_pages_) return {Code::capacity, "a sequence is longer than its page table"};
    if (wanted > size() && wanted - size() > pool_->n_free()) pool_->ask_for(wanted - size() - pool_->n_free());
    if (wanted > size() && wanted - size() > pool_->n_free()) return {Code::capacity, "the cache has no free page"};
    while (size() < wanted) {
        const uint32_t page = *pool_->take();
        changes.push_back({size(), page});
        pages_.push_back(page);
    }
    return ok_status();
}

void PageList::shrink(uint32_t n_rows, uint64_t turn) {
    while (size() > pages_for(n_rows)) {
        pool_->retire(pages_.back(), turn);
        pages_.pop_back();
    }
}

void PageList::adopt(std::span<const uint32_t> pages, uint64_t turn, std::vector<PageChange>& changes) {
    for (uint32_t logical = 0; logical < pages.size(); ++logical) {
        const uint32_t page = pages[logical];
        if (logical < size() && pages_[logical] == page) continue;
        pool_->share(page);
        changes.push_back({logical, page});
        if (logical == size()) {
            pages_.push_back(page);
            continue;
        }
        pool_->retire(pages_[logical], turn);
        pages_[logical] = page;
    }
}

Status PageList::share(const PageList& from, uint32_t n_rows, std::vector<PageChange>& changes, std::vector<PageCopy>& copies) {
    const uint32_t full = pages_filled_by(n_rows), all = pages_for(n_rows);
    if (all > full && pool_->n_free() == 0) pool_->ask_for(1);
    if (all > full && pool_->n_free() == 0) return {Code::capacity, "the cache has no free page"};
    if (!pages_.empty() || from.size() < all) return {Code::internal, "fork of unmapped rows"};
    for (uint32_t logical = 0; logical < full; ++logical) {
        pool_->share(from.pages_[logical]);
        changes.push_back({logical, from.pages_[logical]});
        pages_.push_back(from.pages_[logical]);
    }
    if (all == full) return ok_status();
    AUSPEX_TRY(grow(n_rows, changes));
    copies.push_back({from.pages_[full], pages_[full]});
    return ok_status();
}

} // namespace auspex
