// The pages of one cache by number: which are free, how many owners each has, which are on their way back. Host only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace auspex {

class PagePool {
  public:
    explicit PagePool(uint32_t n_pages);

    // A free page, which then has one owner; none: nothing is free now.
    std::optional<uint32_t> take();
    // One owner more of a page that has one.
    void share(uint32_t page);
    // One owner less, once `turn` is complete: until then the GPU may write to the page.
    void retire(uint32_t page, uint64_t turn);
    // All turns up to this one are complete: what they held back goes. A page without owners is free again.
    void collect(uint64_t completed_turn);

    uint32_t n_pages() const { return static_cast<uint32_t>(owners_.size()); }
    uint32_t n_free() const { return static_cast<uint32_t>(free_.size()); }
    uint32_t n_available() const { return n_pages() - n_held_; } // free, or will be when turns under way are complete
    uint32_t n_owners(uint32_t page) const { return owners_[page]; } // those on their way back among them

  private:
    struct Retired {
        uint32_t page;
        uint64_t turn;
    };
    std::vector<uint32_t> owners_;  // by page
    std::vector<uint32_t> holders_; // by page: owners that have not retired it
    uint32_t n_held_ = 0;           // pages that have such
    std::vector<uint32_t> free_;    // a stack; the lowest page is taken first
    std::vector<Retired> retired_;
};

} // namespace auspex
