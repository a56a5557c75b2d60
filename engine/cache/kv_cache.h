// K and V of one model for all its slots: fixed-size pages in one pool, a page table in device memory. Contents beyond a
// slot's length are garbage by contract. Whose a page is, and who walks the keys, is not its business.
#pragma once

#include "cache/page_list.h"
#include "kernels/attention_shape.h"
#include "tensor/upload.h"

#include <cstdint>
#include <vector>

namespace auspex {

struct CacheShape {
    uint32_t n_layers;
    uint32_t n_heads; // of the queries that will read it
    uint32_t n_kv_heads;
    uint32_t head_dim;
    DType dtype;        // f16, f32 or q8_0
    uint32_t n_slots;
    uint32_t max_rows;  // per slot
    uint32_t page_size; // tokens
    uint32_t n_pages;   // in the pool; at least one slot's worth
};

class KvCache {
  public:
    static Result<std::unique_ptr<KvCache>> create(Device& device, MemoryPool& memory, Uploader& uploader, const CacheShape& shape);

    // A slot's pages: none yet. Whoever owns the list tells the GPU what changes in it.
    PageList new_list() { return PageList(pool_, shape_.page_size, pages_per_slot_); }
    PagePool& pool() { return pool_; }

    // Copies pages of every layer; record between transfer barriers.
    void record_copy(Recording& cmd, const PageCopy& copy) const;

    AttentionShape attention_shape() const;
    BufferView k(uint32_t layer) const { return k_[layer].view(); } // (n_kv_heads, n_pages) pages: shared/cache_layout.h
    BufferView v(uint32_t layer) const { return v_[layer].view(); } // as k
    BufferView page_table() const { return page_table_.view(); }    // (n_slots, pages_per_slot) uint
    const CacheShape& shape() const { return shape_; }
    uint32_t pages_per_slot() const { return pages_per_slot_; }
    uint32_t n_free_pages() const { return pool_.n_free(); }

    uint64_t bytes() const { return bytes_per_token(shape_) * shape_.page_size * shape_.n_pages; } // of the pools
    static uint64_t bytes_per_token(const CacheShape& shape); // K and V, all layers

  private:
    explicit KvCache(const CacheShape& shape) : shape_(shape), pool_(shape.n_pages) {}
    uint64_t page_bytes(CacheSide side) const { return cache_page_bytes(shape_.dtype, side, shape_.page_size, shape_.head_dim); }
    CacheShape shape_;
    uint32_t pages_per_slot_ = 0;
    std::vector<Buffer> k_, v_; // one per layer
    Buffer page_table_;
    PagePool pool_;
};

} // namespace auspex
