// Pages without a device: who owns them, when they come back.
#include "cache/page_pool.h"

#include "reference/random.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace auspex::page_pool_test {
namespace {

TEST(PagePool, gives_every_page_once) {
    PagePool pool(3);
    std::set<uint32_t> pages;
    for (int i = 0; i < 3; ++i) pages.insert(pool.take().value());
    EXPECT_EQ(pages, (std::set<uint32_t>{0, 1, 2}));
    EXPECT_EQ(pool.n_free(), 0u);
    EXPECT_FALSE(pool.take().has_value());
}

TEST(PagePool, a_page_waits_for_its_turn) {
    PagePool pool(2);
    const uint32_t page = pool.take().value();
    pool.retire(page, 7);
    EXPECT_EQ(pool.n_free(), 1u);
    pool.collect(6);
    EXPECT_EQ(pool.n_free(), 1u);
    EXPECT_EQ(pool.n_owners(page), 1u);
    pool.collect(7);
    EXPECT_EQ(pool.n_free(), 2u);
    EXPECT_EQ(pool.n_owners(page), 0u);
}

TEST(PagePool, a_shared_page_stays_with_its_last_owner) {
    PagePool pool(1);
    const uint32_t page = pool.take().value();
    pool.share(page);
    pool.retire(page, 1);
    pool.collect(1);
    EXPECT_EQ(pool.n_owners(page), 1u);
    EXPECT_EQ(pool.n_free(), 0u);
    pool.share(page); // as when a fork is forked
    pool.retire(page, 2);
    pool.retire(page, 3);
    pool.collect(2);
    EXPECT_EQ(pool.n_free(), 0u);
    pool.collect(3);
    EXPECT_EQ(pool.take(), page);
}

// Against counts by hand, 20,000 moves at random.
TEST(PagePool, agrees_with_a_count_by_hand) {
    constexpr uint32_t kPages = 17;
    PagePool pool(kPages);
    reference::DataStream data(5);
    std::map<uint32_t, uint32_t> owners;                   // of pages that have some
    std::multimap<uint64_t, uint32_t> on_their_way;        // by turn
    std::map<uint32_t, uint32_t> may_go;                   // owners that have not retired
    uint64_t turn = 1;
    for (int move = 0; move < 20000; ++move) {
        const uint32_t what = data.bits() % 4;
        if (what == 0) {
            const auto page = pool.take();
            ASSERT_EQ(page.has_value(), owners.size() < kPages);
            if (!page) continue;
            ASSERT_FALSE(owners.contains(*page)) << "a page in use was given away";
            owners[*page] = may_go[*page] = 1;
        } else if (what == 3) {
            pool.collect(turn);
            for (auto at = on_their_way.begin(); at != on_their_way.end() && at->first <= turn; at = on_their_way.erase(at))
                if (--owners[at->second] == 0) owners.erase(at->second);
            turn += data.bits() % 3;
        } else if (!may_go.empty()) {
            auto at = std::next(may_go.begin(), data.bits() % may_go.size());
            if (what == 1) {
                pool.share(at->first);
                owners[at->first] += 1;
                at->second += 1;
            } else {
                const uint64_t last = turn + data.bits() % 3;
                pool.retire(at->first, last);
                on_their_way.emplace(last, at->first);
                if (--at->second == 0) may_go.erase(at);
            }
        }
        ASSERT_EQ(pool.n_free(), kPages - owners.size());
        for (const auto& [page, n] : owners) ASSERT_EQ(pool.n_owners(page), n);
    }
}

} // namespace
} // namespace auspex::page_pool_test
