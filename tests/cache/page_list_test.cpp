// Lists of pages without a device: growing, giving back late, sharing, running out. Counts are checked after every step.
#include "cache/page_list.h"

#include "reference/random.h"

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <utility>

namespace auspex::page_list_test {
namespace {

constexpr uint32_t kPage = 4, kMaxPages = 10; // tokens of a page, pages of a table

struct Lists {
    PagePool pool;
    std::vector<PageList> of; // by slot
    std::vector<PageChange> changes;
    std::vector<PageCopy> copies;
    Lists(uint32_t n_slots, uint32_t n_pages) : pool(n_pages), of(n_slots, PageList(pool, kPage, kMaxPages)) {}
    Status grow(uint32_t slot, uint32_t n_rows) {
        changes.clear();
        return of[slot].grow(n_rows, changes);
    }
    Status share(uint32_t from, uint32_t to, uint32_t n_rows) {
        changes.clear();
        copies.clear();
        return of[to].share(of[from], n_rows, changes, copies);
    }
};

TEST(PageList, takes_ascending_pages_once_and_tells_the_changes) {
    Lists lists(2, 20);
    ASSERT_TRUE(lists.grow(1, 9).ok());
    ASSERT_EQ(lists.changes.size(), 3u); // ceil(9 / 4)
    std::set<uint32_t> pages;
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(lists.changes[i].logical_page, i);
        EXPECT_LT(lists.changes[i].page, 20u);
        pages.insert(lists.changes[i].page);
    }
    EXPECT_EQ(pages.size(), 3u);
    ASSERT_TRUE(lists.grow(1, 12).ok()); // already there
    EXPECT_TRUE(lists.changes.empty());
    ASSERT_TRUE(lists.grow(1, 0).ok());
    EXPECT_TRUE(lists.changes.empty());
    ASSERT_TRUE(lists.grow(1, 13).ok());
    ASSERT_EQ(lists.changes.size(), 1u);
    EXPECT_EQ(lists.changes[0].logical_page, 3u);
    EXPECT_EQ(lists.of[1].size(), 4u);
    EXPECT_EQ(lists.of[0].size(), 0u);
    EXPECT_EQ(lists.pool.n_free(), 16u);
}

TEST(PageList, pages_come_back_when_their_turn_is_done) {
    Lists lists(1, 10);
    PageList& list = lists.of[0];
    ASSERT_TRUE(lists.grow(0, 40).ok());
    EXPECT_EQ(lists.pool.n_free(), 0u);
    list.shrink(39, 5); // within the last page
    EXPECT_EQ(list.size(), 10u);
    list.shrink(36, 5);
    EXPECT_EQ(list.size(), 9u);
    list.shrink(17, 7); // keeps 5 pages
    EXPECT_EQ(list.size(), 5u);
    for (auto [turn, n_free] : {std::pair{4u, 0u}, {5u, 1u}, {6u, 1u}, {9u, 5u}}) {
        lists.pool.collect(turn);
        EXPECT_EQ(lists.pool.n_free(), n_free);
        EXPECT_EQ(lists.pool.n_available(), 5u); // on their way back, or free
    }
    list.shrink(0, 9);
    lists.pool.collect(9);
    EXPECT_EQ(lists.pool.n_free(), 10u);
}

TEST(PageList, exhaustion_changes_nothing) {
    Lists lists(2, 12);
    ASSERT_TRUE(lists.grow(0, 40).ok());
    EXPECT_EQ(lists.grow(1, 12).code(), Code::capacity); // 3 pages of 2
    EXPECT_TRUE(lists.changes.empty());
    EXPECT_EQ(lists.of[1].size(), 0u);
    EXPECT_EQ(lists.pool.n_free(), 2u);
    EXPECT_TRUE(lists.grow(1, 8).ok());
    EXPECT_EQ(lists.grow(0, 41).code(), Code::capacity); // beyond the page table
    Lists tight(3, 10);
    ASSERT_TRUE(tight.grow(0, 38).ok());
    EXPECT_EQ(tight.share(0, 1, 38).code(), Code::capacity); // the partial page has nowhere to go
    EXPECT_TRUE(tight.changes.empty() && tight.copies.empty());
    EXPECT_EQ(tight.of[1].size(), 0u);
    EXPECT_TRUE(tight.share(0, 1, 36).ok()); // full pages only
    EXPECT_TRUE(tight.copies.empty());
}

TEST(PageList, shares_full_pages_and_copies_the_partial_one) {
    Lists lists(3, 30);
    ASSERT_TRUE(lists.grow(0, 16).ok());
    const auto first = lists.changes;
    ASSERT_TRUE(lists.share(0, 2, 11).ok()); // 2 full pages and 3 rows
    const auto second = lists.changes;
    ASSERT_EQ(second.size(), 3u);
    EXPECT_EQ(second[0].page, first[0].page);
    EXPECT_EQ(second[1].page, first[1].page);
    EXPECT_NE(second[2].page, first[2].page);
    ASSERT_EQ(lists.copies.size(), 1u);
    EXPECT_EQ(lists.copies[0].from, first[2].page);
    EXPECT_EQ(lists.copies[0].to, second[2].page);
    EXPECT_EQ(lists.pool.n_free(), 30u - 4 - 1);

    // A page goes when its last owner goes, whoever that is.
    lists.of[0].shrink(0, 1);
    EXPECT_EQ(lists.pool.n_available(), 30u - 3);
    lists.pool.collect(1);
    EXPECT_EQ(lists.pool.n_free(), 30u - 3);
    ASSERT_TRUE(lists.share(2, 1, 8).ok());
    EXPECT_TRUE(lists.copies.empty());
    lists.of[2].shrink(0, 2);
    lists.pool.collect(2);
    EXPECT_EQ(lists.pool.n_free(), 30u - 2);
    lists.of[1].shrink(0, 3);
    lists.pool.collect(3);
    EXPECT_EQ(lists.pool.n_free(), 30u);
}

TEST(PageList, unmapped_rows_are_not_shared_nor_lists_overwritten) {
    Lists lists(2, 20);
    ASSERT_TRUE(lists.grow(0, 8).ok());
    EXPECT_EQ(lists.share(0, 1, 9).code(), Code::internal);
    EXPECT_EQ(lists.share(0, 1, 12).code(), Code::internal);
    ASSERT_TRUE(lists.grow(1, 1).ok());
    EXPECT_EQ(lists.share(0, 1, 8).code(), Code::internal);
    EXPECT_TRUE(lists.changes.empty() && lists.copies.empty());
    EXPECT_EQ(lists.pool.n_free(), 17u);
}

// Random histories of all operations against plain sets of page owners.
TEST(PageList, no_page_is_ever_lost_or_owned_twice) {
    constexpr uint32_t kSlots = 6, kPages = 31;
    Lists lists(kSlots, kPages);
    reference::DataStream random(99);
    std::vector<std::vector<uint32_t>> owned(kSlots); // pages by logical index
    std::vector<std::pair<uint32_t, uint64_t>> retired;
    uint64_t turn = 1;
    for (int step = 0; step < 5000; ++step) {
        const uint32_t slot = random.below(kSlots), rows = random.below(41);
        switch (random.below(5)) {
        case 0:
            if (lists.grow(slot, rows).ok())
                for (const PageChange& change : lists.changes) {
                    ASSERT_EQ(change.logical_page, owned[slot].size());
                    owned[slot].push_back(change.page);
                }
            break;
        case 1:
            lists.of[slot].shrink(rows, turn);
            while (owned[slot].size() > (rows + kPage - 1) / kPage) {
                retired.push_back({owned[slot].back(), turn});
                owned[slot].pop_back();
            }
            break;
        case 2: {
            const uint32_t to = random.below(kSlots);
            if (to != slot && lists.share(slot, to, rows).ok())
                for (const PageChange& change : lists.changes) owned[to].push_back(change.page);
            break;
        }
        case 3: {
            const uint64_t done = turn - random.below(2);
            lists.pool.collect(done);
            std::erase_if(retired, [&](const auto& r) { return r.second <= done; });
            ++turn;
            break;
        }
        case 4: {
            const uint32_t to = random.below(kSlots), n = std::min(rows / kPage, lists.of[slot].size());
            const std::vector<uint32_t> pages(owned[slot].begin(), owned[slot].begin() + n);
            lists.changes.clear();
            lists.of[to].adopt(pages, turn, lists.changes);
            for (const PageChange& change : lists.changes) {
                ASSERT_EQ(change.page, pages[change.logical_page]);
                if (change.logical_page == owned[to].size()) owned[to].push_back(change.page);
                else retired.push_back({std::exchange(owned[to][change.logical_page], change.page), turn});
            }
            for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(owned[to][i], pages[i]);
            break;
        }
        }
        std::map<uint32_t, uint32_t> first_owner; // logical index at which a page lies, the same for all that share it
        std::set<uint32_t> used;
        for (uint32_t s = 0; s < kSlots; ++s) {
            ASSERT_EQ(lists.of[s].size(), owned[s].size());
            for (uint32_t i = 0; i < owned[s].size(); ++i) {
                auto [at, fresh] = first_owner.emplace(owned[s][i], i);
                ASSERT_EQ(at->second, i) << "page " << owned[s][i] << " lies at two places";
                used.insert(owned[s][i]);
            }
        }
        ASSERT_EQ(lists.pool.n_available(), kPages - used.size()) << "after step " << step;
        for (const auto& [page, unused] : retired) used.insert(page);
        ASSERT_EQ(lists.pool.n_free(), kPages - used.size()) << "after step " << step;
    }
}

} // namespace
} // namespace auspex::page_list_test
