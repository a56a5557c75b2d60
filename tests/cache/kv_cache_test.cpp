// The memory of a cache: what it holds at first, how pages are copied, how large it is.
#include "cache/kv_cache.h"

#include "gpu_test.h"
#include "reference/random.h"

#include <algorithm>
#include <set>

namespace auspex::kv_cache_test {
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
} // namespace auspex::kv_cache_test
