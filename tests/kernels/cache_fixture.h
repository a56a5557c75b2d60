// A paged K/V pool on the device beside plain vectors that say what it should hold.
#pragma once

#include "gpu_test.h"
#include "reference/half.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

namespace auspex {

// A block of 32 elements by the q8_0 cache's rule, in double.
struct CacheBlock {
    uint16_t scale = 0; // f16
    std::array<int8_t, 32> codes{};

    explicit CacheBlock(std::span<const float> values) {
        float largest = 0;
        bool finite = true;
        for (float value : values) {
            largest = std::max(largest, std::abs(value));
            finite = finite && std::isfinite(value);
        }
        if (!finite) {
            scale = 0x7e00;
            return;
        }
        if (largest <= 0x1p-25f) return;
        const float exact = largest * (1.0f / 127.0f);
        scale = std::min<uint16_t>(reference::float_to_half(exact), 0x7bff);
        if (scale < 0x7bff && reference::half_to_float(scale) < exact) ++scale; // the least half that is not below
        const double step = double(reference::half_to_float(scale));
        for (size_t i = 0; i < 32; ++i)
            codes[i] = static_cast<int8_t>(std::clamp(std::nearbyint(double(values[i]) / step), -127.0, 127.0));
    }
};

struct PagedCache {
    AttentionShape shape;
    uint32_t n_slots;
    std::vector<uint32_t> pages; // (n_slots, pages_per_slot), shuffled over the pool; two pages belong to nobody
    Buffer page_buffer, k, v;

    uint64_t page_bytes(const Buffer& pool) const {
        return cache_page_bytes(shape.cache_dtype, &pool == &k ? CacheSide::k : CacheSide::v, shape.page_size, shape.head_dim);
    }
    uint32_t words(const Buffer& pool) const { return static_cast<uint32_t>(shape.n_kv_heads * shape.n_pages * page_bytes(pool) / 4); }
    bool is_f32() const { return shape.cache_dtype == DType::f32; }
    bool is_q8() const { return shape.cache_dtype == DType::q8_0; }

    size_t element(uint32_t slot, uint32_t kv_head, uint32_t kv_index, uint32_t d) const {
        const uint32_t page = pages[slot * shape.pages_per_slot + kv_index / shape.page_size];
        return ((size_t{kv_head} * shape.n_pages + page) * shape.page_size + kv_index % shape.page_size) *
                   shape.head_dim +
               d;
    }
    float get(const Buffer& pool, size_t at) const {
        if (is_q8()) return reference::half_to_float(*scale(pool, at)) * static_cast<float>(*code(pool, at));
        if (is_f32()) return reinterpret_cast<const float*>(pool.mapped())[at];
        return reference::half_to_float(reinterpret_cast<const uint16_t*>(pool.mapped())[at]);
    }
    bool is_poison(const Buffer& pool, size_t at) const { // not of q8_0: any byte may be a code
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
    void set_vector(const Buffer& pool, uint32_t slot, uint32_t kv_head, uint32_t kv_index, std::span<const float> values) const {
        const size_t first = element(slot, kv_head, kv_index, 0);
        for (uint32_t d = 0; d < shape.head_dim; ++d) {
            if (is_f32()) reinterpret_cast<float*>(pool.mapped())[first + d] = values[d];
            else if (!is_q8()) reinterpret_cast<uint16_t*>(pool.mapped())[first + d] = reference::float_to_half(values[d]);
            else if (d % 32 == 0) {
                const CacheBlock block(values.subspan(d, 32));
                *scale(pool, first + d) = block.scale;
                std::copy(block.codes.begin(), block.codes.end(), code(pool, first + d));
            }
        }
    }

  private:
    // Where shared/cache_layout.h says they lie, in its words rather than by its functions.
    int8_t* code(const Buffer& pool, size_t at) const {
        const size_t page_elements = size_t{shape.page_size} * shape.head_dim;
        return reinterpret_cast<int8_t*>(pool.mapped()) + at / page_elements * page_bytes(pool) + at % page_elements;
    }
    uint16_t* scale(const Buffer& pool, size_t at) const {
        const size_t page_elements = size_t{shape.page_size} * shape.head_dim;
        auto* page = k.mapped() + at / page_elements * (page_elements + page_elements / 8);
        return reinterpret_cast<uint16_t*>(page + page_elements) + at % page_elements / 32 * 2 + (&pool == &k ? 0 : 1);
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
           "_" + std::string(dtype_name(c.cache_dtype)) + "_" + variant_name(c.variant);
}
// Every ratio, head_dim and dtype, not every combination. Large groups of wide heads go through shared memory: llvmpipe
// takes up to a minute to compile their unrolled variants.
inline std::vector<HeadCase> head_cases() {
    constexpr Variant kShared = Variant::shared;
    return {{1, 3, 32, DType::f16},          {1, 2, 128, DType::f16}, {3, 2, 32, DType::f32},
            {4, 2, 64, DType::f16},          {5, 1, 32, DType::f16},  {5, 1, 64, DType::f32, kShared},
            {3, 2, 128, DType::f16, kShared}};
}

inline std::vector<HeadCase> q8_cases() {
    return {{1, 3, 32, DType::q8_0}, {3, 2, 32, DType::q8_0}, {4, 2, 64, DType::q8_0}, {5, 1, 64, DType::q8_0, Variant::shared},
            {1, 2, 128, DType::q8_0}, {3, 2, 128, DType::q8_0, Variant::shared}};
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
        cache.k = output<uint32_t>(cache.words(cache.k));
        cache.v = output<uint32_t>(cache.words(cache.v));
        return cache;
    }
};

} // namespace auspex
