// The pages of one cache by number: which are free, how many owners each has, which are on their way back. Host only.
#pragma once

#include <cstdint>
#include <functional>
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
    // One owner more, who gives the page back when it is asked to: as long as it is the only one, the page counts as available.
    void keep(uint32_t page);
    void unkeep(uint32_t page); // at once: that owner's work is done
    // Whom to ask for pages, and how many, when none are free; empty: nobody.
    void set_reserve(std::function<void(uint32_t)> reserve) { reserve_ = std::move(reserve); }
    void ask_for(uint32_t n_pages) { if (reserve_ && n_spare_ > 0) reserve_(n_pages); }

    // All turns up to this one are complete: what they held back goes. A page without owners is free again.
    void collect(uint64_t completed_turn);

    uint32_t n_pages() const { return static_cast<uint32_t>(owners_.size()); }
    uint32_t n_free() const { return static_cast<uint32_t>(free_.size()); }
    // Free, or will be when turns under way are complete, or when a keeper is asked.
    uint32_t n_available() const { return n_pages() - n_held_ + n_spare_; }
    uint32_t n_spare() const { return n_spare_; } // those that nobody but a keeper holds
    uint32_t n_owners(uint32_t page) const { return owners_[page]; } // those on their way back among them

  private:
    bool is_spare(uint32_t page) const { return kept_[page] && holders_[page] == 1; }
    struct Retired {
        uint32_t page;
        uint64_t turn;
    };
    std::vector<uint32_t> owners_;  // by page
    std::vector<uint32_t> holders_; // by page: owners that have not retired it
    uint32_t n_held_ = 0;           // pages that have such
    std::vector<bool> kept_;        // by page: a keeper is one of them
    uint32_t n_spare_ = 0;
    std::function<void(uint32_t)> reserve_;
    std::vector<uint32_t> free_;    // a stack; the lowest page is taken first
    std::vector<Retired> retired_;
};

} // namespace auspex
