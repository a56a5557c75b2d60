// Walks pages of tokens.
#include "session/prefix/prefix_tree.h"

#include <algorithm>
#include <set>

namespace auspex {

PrefixTree::PrefixTree(uint32_t page_size, PagePool& target, PagePool* draft) : page_size_(page_size), target_(&target), draft_(draft) {
    target_->set_reserve([this](uint32_t n) { give_back(ModelRole::target, n); });
    if (draft_) draft_->set_reserve([this](uint32_t n) { give_back(ModelRole::draft, n); });
}

PrefixTree::~PrefixTree() {
    target_->set_reserve({});
    if (draft_) draft_->set_reserve({});
}

PrefixTree::Node* PrefixTree::child_of(Node& node, std::span<const uint32_t> tokens, uint32_t page) {
    const auto of_page = tokens.subspan(size_t{page} * page_size_, page_size_);
    const auto found = node.children.find({of_page.begin(), of_page.end()});
    return found == node.children.end() ? nullptr : found->second.get();
}

PrefixTree::Hit PrefixTree::find(std::span<const uint32_t> tokens, uint32_t n_rows, const std::string& salt) {
    Hit hit;
    counts_.queries += 1;
    counts_.rows_wanted += n_rows;
    clock_ += 1;
    const auto root = roots_.find(salt);
    if (root == roots_.end()) return hit;
    Node* node = &root->second;
    for (uint32_t page = 0; page < n_rows / page_size_; ++page) {
        node = child_of(*node, tokens, page);
        if (!node) break;
        node->last_use = clock_;
        if (node->draft_page != kNone && hit.draft.size() == page) hit.draft.push_back(node->draft_page);
        hit.target.push_back(node->target_page);
    }
    counts_.rows_found += hit.target.size() * page_size_;
    return hit;
}

void PrefixTree::insert(ModelRole of, std::span<const uint32_t> tokens, uint32_t n_rows, const PageList& pages, const std::string& salt) {
    clock_ += 1;
    const uint32_t n_pages = std::min(pages.pages_filled_by(n_rows), pages.size());
    if (n_pages == 0 || (of == ModelRole::draft && !roots_.contains(salt))) return;
    Node* node = &roots_[salt];
    for (uint32_t page = 0; page < n_pages; ++page) {
        Node* next = child_of(*node, tokens, page);
        if (!next) {
            if (of == ModelRole::draft) return;
            const auto of_page = tokens.subspan(size_t{page} * page_size_, page_size_);
            auto& place = node->children[{of_page.begin(), of_page.end()}];
            place = std::make_unique<Node>();
            next = place.get();
            next->parent = node;
            counts_.n_nodes += 1;
        }
        uint32_t& known = of == ModelRole::target ? next->target_page : next->draft_page;
        if (known == kNone) {
            known = pages.page(page);
            pool_of(of).keep(known);
            counts_.pages_inserted += 1;
        }
        next->last_use = clock_;
        node = next;
    }
}

template <typename Visit> void PrefixTree::visit(Node& node, const Visit& each) {
    for (auto& [tokens, child] : node.children) visit(*child, each);
    if (node.parent) each(node);
}

void PrefixTree::let_go(ModelRole of, Node& node) {
    uint32_t& page = of == ModelRole::target ? node.target_page : node.draft_page;
    if (page == kNone) return;
    pool_of(of).unkeep(page);
    page = kNone;
    counts_.pages_evicted += 1;
}

void PrefixTree::forget(Node& node) {
    if (draft_) let_go(ModelRole::draft, node);
    let_go(ModelRole::target, node);
    counts_.n_nodes -= 1;
    Node& parent = *node.parent;
    std::erase_if(parent.children, [&](const auto& entry) { return entry.second.get() == &node; });
    if (!parent.parent && parent.children.empty()) std::erase_if(roots_, [&](const auto& entry) { return &entry.second == &parent; });
}

// A page that leads to others is needed as long as they are.
bool PrefixTree::may_go(ModelRole of, const Node& node) {
    const auto page_in = [of](const Node& at) { return of == ModelRole::target ? at.target_page : at.draft_page; };
    if (page_in(node) == kNone || pool_of(of).n_owners(page_in(node)) > 1) return false;
    return std::none_of(node.children.begin(), node.children.end(), [&](const auto& child) { return page_in(*child.second) != kNone; });
}

void PrefixTree::give_back(ModelRole of, uint32_t n_pages) {
    const PagePool& pool = pool_of(of);
    const uint32_t wanted = pool.n_free() + n_pages;
    std::set<std::pair<uint64_t, Node*>> outermost; // by last use
    for (auto& [salt, root] : roots_)
        visit(root, [&](Node& node) {
            if (may_go(of, node)) outermost.emplace(node.last_use, &node);
        });
    while (pool.n_free() < wanted && !outermost.empty()) {
        Node& node = *outermost.extract(outermost.begin()).value().second;
        Node* const parent = node.parent->parent ? node.parent : nullptr;
        if (of == ModelRole::target) forget(node);
        else let_go(of, node);
        if (parent && may_go(of, *parent)) outermost.emplace(parent->last_use, parent);
    }
}

} // namespace auspex
