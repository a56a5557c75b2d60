// A paged K/V pool on the device beside plain vectors that say what it should hold.
#pragma once

#include "gpu_test.h"
#include "reference/half.h"

#include <bit>
#include <numeric>

namespace auspex {

struct PagedCache {
    AttentionShape shape;
    uint32_t n_slots;
    std::vector<uint32_t> pages; // (n_slots, pages_per_slot), shuffled over the pool; two pages belong to nobody
    Buffer page_buffer, k, v;

    uint32_t words() const {
        return shape.n_kv_heads * shape.n_pages * shape.page_size * shape.head_dim / (is_f32() ? 1 : 2);
    }
    bool is_f32() const { return shape.cache_dtype == DType::f32; }

    size_t element(uint32_t slot, uint32_t kv_head, uint32_t kv_index, uint32_t d) const {
        const uint32_t page = pages[slot * shape.pages_per_slot + kv_index / shape.page_size];
        return ((size_t{kv_head} * shape.n_pages + page) * shape.page_size + kv_index % shape.page_size) *
                   shape.head_dim +
               d;
    }
    float get(const Buffer& pool, size_t at) const {
        if (is_f32()) return reinterpret_cast<const float*>(pool.mapped())[at];
        return reference::half_to_float(reinterpret_cast<const uint16_t*>(pool.mapped())[at]);
    }
    void set(const Buffer& pool, size_t at, float value) const {
        if (is_f32())
            reinterpret_cast<float*>(pool.mapped())[at] = value;
        else
            reinterpret_cast<uint16_t*>(pool.mapped())[at] = reference::float_to_half(value);
    }
    bool is_poison(const Buffer& pool, size_t at) const {
        if (is_f32()) return reinterpret_cast<const uint32_t*>(pool.mapped())[at] == kPoison;
        return reinterpret_cast<const uint16_t*>(pool.mapped())[at] == (kPoison & 0xffffu);
    }
    // One head's vector at one index.
    std::vector<float> vector(const Buffer& pool, uint32_t slot, uint32_t kv_head, uint32_t kv_index) const {
        std::vector<float> out(shape.head_dim);
        for (uint32_t d = 0; d < shape.head_dim; ++d)
            out[d] = get(pool, element(slot, kv_head, kv_index, d));
        return out;
    }
};

struct HeadCase {
    uint32_t group; // query heads per KV head
    uint32_t n_kv_heads, head_dim;
    DType cache_dtype;
    Variant variant = Variant::native;
};
inline std::string head_case_name(const HeadCase& c) {
    return std::to_string(c.group) + "to1_dim" + std::to_string(c.head_dim) +
           (c.cache_dtype == DType::f32 ? "_f32_" : "_f16_") + variant_name(c.variant);
}
// Every ratio, head_dim and dtype, not every combination. Large groups of wide heads go through shared memory: llvmpipe
// takes up to a minute to compile their unrolled variants.
inline std::vector<HeadCase> head_cases() {
    constexpr Variant kShared = Variant::shared;
    return {{1, 3, 32, DType::f16},          {1, 2, 128, DType::f16}, {3, 2, 32, DType::f32},
            {4, 2, 64, DType::f16},          {5, 1, 32, DType::f16},  {5, 1, 64, DType::f32, kShared},
            {3, 2, 128, DType::f16, kShared}};
}

class CacheTest : public GpuTest {
  protected:
    // Pools full of poison.
    PagedCache make_cache(const HeadCase& c, uint32_t n_slots, uint32_t page_size, uint32_t pages_per_slot) {
        PagedCache cache;
        cache.shape = {c.group * c.n_kv_heads,       c.n_kv_heads,   c.head_dim,   page_size,
                       n_slots * pages_per_slot + 2, pages_per_slot, c.cache_dtype};
        cache.n_slots = n_slots;
        std::vector<uint32_t> order(cache.shape.n_pages);
        std::iota(order.begin(), order.end(), 0u);
        reference::DataStream data(99);
        for (uint32_t i = cache.shape.n_pages - 1; i > 0; --i)
            std::swap(order[i], order[data.below(i + 1)]);
        cache.pages.assign(order.begin(), order.begin() + n_slots * pages_per_slot);
        cache.page_buffer = upload(cache.pages);
        cache.k = output<uint32_t>(cache.words());
        cache.v = output<uint32_t>(cache.words());
        return cache;
    }
};

} // namespace auspex
