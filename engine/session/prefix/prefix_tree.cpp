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

PrefixTree::Hit PrefixTree::find(std::span<const uint32_t> tokens, uint32_t had, uint32_t n_rows, const std::string& salt) {
    Hit hit;
    if (had == 0) {
        counts_.queries += 1;
        counts_.rows_wanted += n_rows;
    }
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
    const uint64_t rows = hit.target.size() * uint64_t{page_size_};
    counts_.rows_found += rows - std::min<uint64_t>(rows, had);
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
        uint32_t& known = page_in(of, *next);
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
    uint32_t& page = page_in(of, node);
    if (page == kNone) return;
    pool_of(of).unkeep(page);
    page = kNone;
    counts_.pages_evicted += 1;
}

void PrefixTree::forget(Node& node) {
    while (!node.children.empty()) forget(*node.children.begin()->second);
    if (draft_) let_go(ModelRole::draft, node);
    let_go(ModelRole::target, node);
    counts_.n_nodes -= 1;
    Node& parent = *node.parent;
    std::erase_if(parent.children, [&](const auto& entry) { return entry.second.get() == &node; });
    if (!parent.parent && parent.children.empty()) std::erase_if(roots_, [&](const auto& entry) { return &entry.second == &parent; });
}

uint32_t& PrefixTree::page_in(ModelRole of, Node& node) { return of == ModelRole::target ? node.target_page : node.draft_page; }

bool PrefixTree::is_spare(ModelRole of, Node& node) { return page_in(of, node) != kNone && pool_of(of).n_owners(page_in(of, node)) == 1; }

bool PrefixTree::is_outermost(ModelRole of, Node& node) {
    return std::none_of(node.children.begin(), node.children.end(), [&](auto& child) { return page_in(of, *child.second) != kNone; });
}

PrefixTree::Node* PrefixTree::longest_unused_spare(ModelRole of) {
    Node* found = nullptr;
    for (auto& [salt, root] : roots_)
        visit(root, [&](Node& node) {
            if (is_spare(of, node) && (!found || node.last_use < found->last_use)) found = &node;
        });
    return found;
}

void PrefixTree::give_back(ModelRole of, uint32_t n_pages) {
    const PagePool& pool = pool_of(of);
    const uint32_t wanted = pool.n_free() + n_pages;
    const auto go = [&](Node& node) { of == ModelRole::target ? forget(node) : let_go(of, node); };
    std::set<std::pair<uint64_t, Node*>> outermost; // by last use
    for (auto& [salt, root] : roots_)
        visit(root, [&](Node& node) {
            if (is_spare(of, node) && is_outermost(of, node)) outermost.emplace(node.last_use, &node);
        });
    while (pool.n_free() < wanted && !outermost.empty()) {
        Node& node = *outermost.extract(outermost.begin()).value().second;
        Node* const parent = node.parent->parent ? node.parent : nullptr;
        go(node);
        if (parent && is_spare(of, *parent) && is_outermost(of, *parent)) outermost.emplace(parent->last_use, parent);
    }
    // Two that said the same have pages of their own of it. The tree has those of one, and of the other what follows: so the former may
    // be spare where the latter are not.
    while (pool.n_free() < wanted) {
        Node* const node = longest_unused_spare(of);
        if (!node) return;
        go(*node);
    }
}

} // namespace auspex
