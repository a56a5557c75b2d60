// The pages of one sequence's rows in one cache, in the order of their rows. Host only: the GPU reads a page table that it is told of.
#pragma once

#include "base/status.h"
#include "cache/page_pool.h"

#include <span>

namespace auspex {

// An entry of a slot's page table that the GPU must learn before it touches the rows of that page.
struct PageChange {
    uint32_t logical_page, page;
};
struct PageCopy {
    uint32_t from, to; // physical pages
};

class PageList {
  public:
    PageList(PagePool& pool, uint32_t page_size, uint32_t max_pages) : pool_(&pool), page_size_(page_size), max_pages_(max_pages) {}

    // Takes pages for rows [0, n_rows) and appends what changed. capacity: too few are free now; nothing changed.
    Status grow(uint32_t n_rows, std::vector<PageChange>& changes);
    // Gives back pages wholly beyond n_rows. They are free when the pool is told that `turn` is complete.
    void shrink(uint32_t n_rows, uint64_t turn);
    // This list, which is empty, gets the first n_rows of `from`: full pages shared, the partial one to be copied.
    Status share(const PageList& from, uint32_t n_rows, std::vector<PageChange>& changes, std::vector<PageCopy>& copies);

    // The first pages are these from now on, which others own, too. Those that were there and are not among them are free when the
    // pool is told that `turn` is complete.
    void adopt(std::span<const uint32_t> pages, uint64_t turn, std::vector<PageChange>& changes);

    uint32_t page(uint32_t logical) const { return pages_[logical]; }
    uint32_t size() const { return static_cast<uint32_t>(pages_.size()); }
    PagePool& pool() const { return *pool_; }
    // Pages that so many rows need, and pages that so many rows fill.
    uint32_t pages_for(uint32_t n_rows) const { return n_rows / page_size_ + (n_rows % page_size_ != 0 ? 1 : 0); }
    uint32_t pages_filled_by(uint32_t n_rows) const { return n_rows / page_size_; }

  private:
    PagePool* pool_;
    uint32_t page_size_, max_pages_;
    std::vector<uint32_t> pages_;
};

} // namespace auspex
