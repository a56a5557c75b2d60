// Beginnings of texts whose keys and values are in the caches: a radix tree whose edges are whole pages of token ids. It owns the pages
// besides the slots that do, and gives back those that nobody else owns when a pool has no others. Host only.
//
// After SGLang's RadixAttention (Zheng et al. 2024, section 3), but only rows enter that a reader of the same tokens would compute
// by the same kernels, which is for the caller to see to: so a hit changes no bit. Each salt has a tree of its own: what one knows
// is nothing to another.
#pragma once

#include "cache/page_list.h"
#include "round_state/round_pass.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace auspex {

class PrefixTree {
  public:
    // draft: null where the draft model has no cache of its own. Until its end the pools ask it for pages that they lack.
    PrefixTree(uint32_t page_size, PagePool& target, PagePool* draft);
    ~PrefixTree();
    PrefixTree(const PrefixTree&) = delete; // the pools know where it is

    struct Hit {
        std::vector<uint32_t> target, draft; // pages of the tokens' first rows; of the draft at most as many
    };
    // Of the rows [0, n_rows) of these tokens as many as are known, in whole pages. had: those that the asker has already, which do not
    // count as found.
    Hit find(std::span<const uint32_t> tokens, uint32_t had, uint32_t n_rows, const std::string& salt = {});
    // The first n_rows of the list are those of these tokens. Pages that are known already stay; draft pages join nodes that are there.
    void insert(ModelRole of, std::span<const uint32_t> tokens, uint32_t n_rows, const PageList& pages, const std::string& salt = {});
    // So many pages of a cache, as far as there are any that nobody else owns; the longest unused go first, and before what leads to
    // them. One that leads to pages that others still own goes last, and with it all that the tree knows behind it.
    void give_back(ModelRole of, uint32_t n_pages);

    struct Counts {
        uint64_t queries = 0, rows_wanted = 0, rows_found = 0; // of the target
        uint64_t pages_inserted = 0, pages_evicted = 0;        // of either
        uint32_t n_nodes = 0;
    };
    const Counts& counts() const { return counts_; }
    size_t n_salts() const { return roots_.size(); } // of whose beginnings any is known

  private:
    static constexpr uint32_t kNone = ~0u;
    struct Node {
        Node* parent = nullptr; // of a root: none
        uint32_t target_page = kNone, draft_page = kNone;
        uint64_t last_use = 0;
        std::map<std::vector<uint32_t>, std::unique_ptr<Node>> children; // by the tokens of their page
    };
    Node* child_of(Node& node, std::span<const uint32_t> tokens, uint32_t page);
    PagePool& pool_of(ModelRole of) { return of == ModelRole::target ? *target_ : *draft_; }
    static uint32_t& page_in(ModelRole of, Node& node);
    bool is_spare(ModelRole of, Node& node); // nobody else owns its page
    bool is_outermost(ModelRole of, Node& node);
    Node* longest_unused_spare(ModelRole of);
    void let_go(ModelRole of, Node& node);
    void forget(Node& node); // and all behind it; its salt's root with the last of them
    template <typename Visit> void visit(Node& node, const Visit& each);

    uint32_t page_size_;
    PagePool *target_, *draft_;
    std::map<std::string, Node> roots_; // by salt
    uint64_t clock_ = 0; // of uses
    Counts counts_;
};

} // namespace auspex
