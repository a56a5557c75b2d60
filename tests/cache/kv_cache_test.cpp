// Pages: mapping, giving back late, sharing, copying, running out. Counts are checked after every step.
#include "cache/kv_cache.h"

#include "gpu_test.h"
#include "reference/random.h"

#include <algorithm>
#include <set>

namespace auspex {
namespace {

constexpr uint32_t kPage = 4; // tokens

class KvCacheTest : public GpuTest {
  protected:
    static CacheShape shape(uint32_t n_slots, uint32_t n_pages, uint32_t max_rows = 40, DType dtype = DType::f16) {
        return {.n_layers = 2,
                .n_heads = 6,
                .n_kv_heads = 2,
                .head_dim = 32,
                .dtype = dtype,
                .n_slots = n_slots,
                .max_rows = max_rows,
                .page_size = kPage,
                .n_pages = n_pages};
    }
    std::unique_ptr<KvCache> new_cache(const CacheShape& shape) {
        auto uploader = Uploader::create(device(), memory());
        EXPECT_TRUE(uploader.ok());
        auto made = KvCache::create(device(), memory(), *uploader.value(), shape);
        EXPECT_TRUE(made.ok()) << made.status().message();
        return std::move(made).value();
    }
    std::vector<uint32_t> words(BufferView view) {
        Buffer copy = poisoned(view.size);
        run([&](Recorder& to) {
            to.cmd.copy(view, copy.view(0, view.size));
            to.cmd.transfer_barrier();
        });
        return read<uint32_t>(copy, view.size / 4);
    }
};

TEST_F(KvCacheTest, MapsAscendingPagesOnceAndTellsTheChanges) {
    auto cache = new_cache(shape(2, 20));
    EXPECT_EQ(cache->pages_per_slot(), 10u);
    EXPECT_EQ(cache->n_free_pages(), 20u);
    std::vector<PageChange> changes;
    ASSERT_TRUE(cache->map(1, 9, changes).ok());
    ASSERT_EQ(changes.size(), 3u); // ceil(9 / 4)
    std::set<uint32_t> pages;
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(changes[i].slot, 1u);
        EXPECT_EQ(changes[i].logical_page, i);
        EXPECT_LT(changes[i].page, 20u);
        pages.insert(changes[i].page);
    }
    EXPECT_EQ(pages.size(), 3u);
    changes.clear();
    ASSERT_TRUE(cache->map(1, 12, changes).ok()); // already there
    ASSERT_TRUE(cache->map(1, 0, changes).ok());
    EXPECT_TRUE(changes.empty());
    ASSERT_TRUE(cache->map(1, 13, changes).ok());
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].logical_page, 3u);
    EXPECT_EQ(cache->n_mapped_pages(1), 4u);
    EXPECT_EQ(cache->n_mapped_pages(0), 0u);
    EXPECT_EQ(cache->n_free_pages(), 16u);
}

TEST_F(KvCacheTest, TruncatedPagesComeBackWhenTheirTurnIsDone) {
    auto cache = new_cache(shape(1, 10));
    std::vector<PageChange> changes;
    ASSERT_TRUE(cache->map(0, 40, changes).ok());
    EXPECT_EQ(cache->n_free_pages(), 0u);
    cache->truncate(0, 39, 5); // within the last page
    EXPECT_EQ(cache->n_mapped_pages(0), 10u);
    cache->truncate(0, 36, 5);
    EXPECT_EQ(cache->n_mapped_pages(0), 9u);
    cache->truncate(0, 17, 7); // keeps 5 pages
    EXPECT_EQ(cache->n_mapped_pages(0), 5u);
    EXPECT_EQ(cache->n_free_pages(), 0u);
    cache->collect(4);
    EXPECT_EQ(cache->n_free_pages(), 0u);
    cache->collect(5);
    EXPECT_EQ(cache->n_free_pages(), 1u);
    cache->collect(6);
    EXPECT_EQ(cache->n_free_pages(), 1u);
    cache->collect(9);
    EXPECT_EQ(cache->n_free_pages(), 5u);
    cache->truncate(0, 0, 9);
    cache->collect(9);
    EXPECT_EQ(cache->n_free_pages(), 10u);
}

TEST_F(KvCacheTest, ExhaustionChangesNothing) {
    auto cache = new_cache(shape(2, 12));
    std::vector<PageChange> changes;
    ASSERT_TRUE(cache->map(0, 40, changes).ok());
    changes.clear();
    EXPECT_EQ(cache->map(1, 12, changes).code(), Code::capacity); // 3 pages of 2
    EXPECT_TRUE(changes.empty());
    EXPECT_EQ(cache->n_mapped_pages(1), 0u);
    EXPECT_EQ(cache->n_free_pages(), 2u);
    EXPECT_TRUE(cache->map(1, 8, changes).ok());
    changes.clear();
    EXPECT_EQ(cache->map(0, 41, changes).code(), Code::capacity); // beyond the page table
    std::vector<PageCopy> copies;
    auto tight = new_cache(shape(3, 10));
    ASSERT_TRUE(tight->map(0, 38, changes).ok());
    changes.clear();
    EXPECT_EQ(tight->fork(0, 1, 38, changes, copies).code(), Code::capacity); // the partial page has nowhere to go
    EXPECT_TRUE(changes.empty() && copies.empty());
    EXPECT_EQ(tight->n_mapped_pages(1), 0u);
    EXPECT_TRUE(tight->fork(0, 1, 36, changes, copies).ok()); // full pages only
    EXPECT_TRUE(copies.empty());
}

TEST_F(KvCacheTest, ForksShareFullPagesAndCopyThePartialOne) {
    auto cache = new_cache(shape(3, 30));
    std::vector<PageChange> changes, forked;
    std::vector<PageCopy> copies;
    ASSERT_TRUE(cache->map(0, 16, changes).ok());
    ASSERT_TRUE(cache->fork(0, 2, 11, forked, copies).ok()); // 2 full pages and 3 rows
    ASSERT_EQ(forked.size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(forked[i].slot, 2u);
    EXPECT_EQ(forked[0].page, changes[0].page);
    EXPECT_EQ(forked[1].page, changes[1].page);
    EXPECT_NE(forked[2].page, changes[2].page);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].from, changes[2].page);
    EXPECT_EQ(copies[0].to, forked[2].page);
    EXPECT_EQ(cache->n_free_pages(), 30u - 4 - 1);

    // A page goes when its last owner goes, whoever that is.
    cache->truncate(0, 0, 1);
    cache->collect(1);
    EXPECT_EQ(cache->n_free_pages(), 30u - 3);
    std::vector<PageChange> third;
    copies.clear();
    ASSERT_TRUE(cache->fork(2, 1, 8, third, copies).ok());
    EXPECT_TRUE(copies.empty());
    cache->truncate(2, 0, 2);
    cache->collect(2);
    EXPECT_EQ(cache->n_free_pages(), 30u - 2);
    cache->truncate(1, 0, 3);
    cache->collect(3);
    EXPECT_EQ(cache->n_free_pages(), 30u);
}

TEST_F(KvCacheTest, ForksOfUnmappedRowsOrIntoUsedSlotsAreRefused) {
    auto cache = new_cache(shape(2, 20));
    std::vector<PageChange> changes;
    std::vector<PageCopy> copies;
    ASSERT_TRUE(cache->map(0, 8, changes).ok());
    changes.clear();
    EXPECT_EQ(cache->fork(0, 1, 9, changes, copies).code(), Code::internal);
    EXPECT_EQ(cache->fork(0, 1, 12, changes, copies).code(), Code::internal);
    ASSERT_TRUE(cache->map(1, 1, changes).ok());
    changes.clear();
    EXPECT_EQ(cache->fork(0, 1, 8, changes, copies).code(), Code::internal);
    EXPECT_TRUE(changes.empty() && copies.empty());
    EXPECT_EQ(cache->n_free_pages(), 17u);
}

// Random histories of all operations against plain sets of page owners.
TEST_F(KvCacheTest, NoPageIsEverLostOrOwnedTwice) {
    constexpr uint32_t kSlots = 6, kPages = 31;
    auto cache = new_cache(shape(kSlots, kPages));
    reference::DataStream random(99);
    std::vector<std::vector<uint32_t>> owned(kSlots); // pages by logical index
    std::vector<std::pair<uint32_t, uint64_t>> retired;
    uint64_t turn = 1;
    for (int step = 0; step < 5000; ++step) {
        const uint32_t slot = random.below(kSlots), rows = random.below(41);
        std::vector<PageChange> changes;
        std::vector<PageCopy> copies;
        switch (random.below(4)) {
        case 0:
            if (cache->map(slot, rows, changes).ok())
                for (const PageChange& change : changes) {
                    ASSERT_EQ(change.logical_page, owned[slot].size());
                    owned[slot].push_back(change.page);
                }
            break;
        case 1:
            cache->truncate(slot, rows, turn);
            while (owned[slot].size() > (rows + kPage - 1) / kPage) {
                retired.push_back({owned[slot].back(), turn});
                owned[slot].pop_back();
            }
            break;
        case 2: {
            const uint32_t to = random.below(kSlots);
            if (to != slot && cache->fork(slot, to, rows, changes, copies).ok())
                for (const PageChange& change : changes) owned[to].push_back(change.page);
            break;
        }
        case 3: {
            const uint64_t done = turn - random.below(2);
            cache->collect(done);
            std::erase_if(retired, [&](const auto& r) { return r.second <= done; });
            ++turn;
            break;
        }
        }
        std::map<uint32_t, uint32_t> first_owner; // logical index at which a page lies, the same for all that share it
        std::set<uint32_t> used;
        for (uint32_t s = 0; s < kSlots; ++s) {
            ASSERT_EQ(cache->n_mapped_pages(s), owned[s].size());
            for (uint32_t i = 0; i < owned[s].size(); ++i) {
                auto [at, fresh] = first_owner.emplace(owned[s][i], i);
                ASSERT_EQ(at->second, i) << "page " << owned[s][i] << " lies at two places";
                used.insert(owned[s][i]);
            }
        }
        for (const auto& [page, unused] : retired) used.insert(page);
        ASSERT_EQ(cache->n_free_pages(), kPages - used.size()) << "after step " << step;
    }
}

TEST_F(KvCacheTest, PoolsAndTableStartAsZeros) {
    memory(); // pages that earlier tests wrote come back from the driver
    for (DType dtype : {DType::f16, DType::f32, DType::q8_0}) {
        auto cache = new_cache(shape(3, 7, 20, dtype));
        for (uint32_t layer = 0; layer < 2; ++layer)
            for (BufferView side : {cache->k(layer), cache->v(layer)}) {
                EXPECT_GE(side.size, 2ull * 7 * kPage * 32 * (dtype == DType::q8_0 ? 1 : dtype_bytes(dtype)));
                const std::vector<uint32_t> found = words(side);
                EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](uint32_t w) { return w == 0; }));
                Buffer poison = poisoned(side.size); // the next cache may get this memory
                run([&](Recorder& to) { to.cmd.copy(poison.view(0, side.size), side); });
            }
        const std::vector<uint32_t> table = words(cache->page_table());
        EXPECT_TRUE(std::all_of(table.begin(), table.end(), [](uint32_t w) { return w == 0; }));
    }
}

TEST_F(KvCacheTest, ACopyMovesOnePageOfEveryHeadAndLayer) {
    auto value = [](uint32_t side, uint32_t i) { return side * 1'000'000 + i; };
    for (DType dtype : {DType::f16, DType::f32, DType::q8_0}) {
        const CacheShape s = shape(1, 5, 20, dtype);
        auto cache = new_cache(s);
        std::vector<BufferView> sides = {cache->k(0), cache->v(0), cache->k(1), cache->v(1)};
        // 32 elements a token; in K of q8_0 one more word of it: the scales of K and V.
        const uint32_t v_words = kPage * (dtype == DType::f32 ? 32 : dtype == DType::f16 ? 16 : 8);
        const uint32_t page_words[] = {dtype == DType::q8_0 ? v_words + kPage : v_words, v_words};
        for (uint32_t side = 0; side < 4; ++side) {
            std::vector<uint32_t> data(s.n_kv_heads * s.n_pages * page_words[side % 2]);
            for (uint32_t i = 0; i < data.size(); ++i) data[i] = value(side, i);
            Buffer from = upload(data);
            run([&](Recorder& to) { to.cmd.copy(from.view(0, 4 * data.size()), sides[side]); });
        }
        run([&](Recorder& to) { cache->record_copy(to.cmd, {.from = 1, .to = 4}); });
        for (uint32_t side = 0; side < 4; ++side) {
            const uint32_t words_per_page = page_words[side % 2], total = s.n_kv_heads * s.n_pages * words_per_page;
            const std::vector<uint32_t> found = words(sides[side]);
            ASSERT_GE(found.size(), total);
            uint32_t wrong = 0;
            for (uint32_t i = 0; i < total; ++i) {
                const uint32_t page = i / words_per_page % s.n_pages;
                wrong += found[i] != value(side, page == 4 ? i - 3 * words_per_page : i);
            }
            EXPECT_EQ(wrong, 0u) << dtype_name(dtype) << ", side " << side;
        }
    }
}

TEST_F(KvCacheTest, ALayerThatNoBindingHoldsIsRefusedWithBothNumbers) {
    auto own = Device::create({}, Logger{});
    ASSERT_TRUE(own.ok());
    own.value()->caps.max_storage_buffer_range = 10'000;
    MemoryPool pool(*own.value());
    auto uploader = Uploader::create(*own.value(), pool);
    ASSERT_TRUE(uploader.ok());
    auto made = KvCache::create(*own.value(), pool, *uploader.value(), shape(1, 30));
    EXPECT_EQ(made.status().code(), Code::unsupported);
    EXPECT_NE(made.status().message().find("10000"), std::string::npos) << made.status().message();
    EXPECT_NE(made.status().message().find(std::to_string(2 * 30 * kPage * 32 * 2)), std::string::npos) << made.status().message();
}

TEST_F(KvCacheTest, BytesPerTokenCountBothSidesOfAllLayers) {
    EXPECT_EQ(KvCache::bytes_per_token(shape(1, 1)), 2u * 2 * 2 * 32 * 2);
    EXPECT_EQ(KvCache::bytes_per_token(shape(1, 1, 40, DType::f32)), 2u * 2 * 2 * 32 * 4);
    EXPECT_EQ(KvCache::bytes_per_token(shape(1, 1, 40, DType::q8_0)), 2u * 2 * 2 * (32 + 2));
    CacheShape llama = shape(1, 1); // Llama-3.2 1B, then 3B
    llama.n_layers = 16, llama.n_kv_heads = 8, llama.head_dim = 64;
    EXPECT_EQ(KvCache::bytes_per_token(llama), 32u * 1024);
    llama.dtype = DType::q8_0;
    EXPECT_EQ(KvCache::bytes_per_token(llama), 17u * 1024);
    llama.n_layers = 28, llama.head_dim = 128;
    EXPECT_EQ(KvCache::bytes_per_token(llama), 119u * 512); // of 112 KiB in f16
}

TEST_F(KvCacheTest, TypesThatAreNotForCachesAreRefused) {
    auto uploader = Uploader::create(device(), memory());
    ASSERT_TRUE(uploader.ok());
    auto made = KvCache::create(device(), memory(), *uploader.value(), shape(1, 5, 20, DType::q4_0));
    EXPECT_EQ(made.status().code(), Code::unsupported);
    EXPECT_NE(made.status().message().find("q4_0"), std::string::npos) << made.status().message();
}

} // namespace
} // namespace auspex
