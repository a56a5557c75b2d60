// K and V of one model for all its slots: fixed-size pages in one pool, a page table in device memory. Contents beyond a
// slot's length are garbage by contract. Who walks the keys is not its business.
#pragma once

#include "cache/page_pool.h"
#include "kernels/rope_append.h"
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

// A page table entry that the GPU must learn before it touches the rows behind it.
struct PageChange {
    uint32_t slot;
    uint32_t logical_page;
    uint32_t page;
};
struct PageCopy {
    uint32_t from, to; // physical pages
};

class KvCache {
  public:
    static Result<std::unique_ptr<KvCache>> create(Device& device, MemoryPool& memory, Uploader& uploader, const CacheShape& shape);

    // Maps pages for rows [0, n_rows) of a slot and appends what changed. capacity: the pool is empty now; nothing changed.
    Status map(uint32_t slot, uint32_t n_rows, std::vector<PageChange>& changes);
    // Gives back pages wholly beyond n_rows. They become free when collect() is told that `turn` is complete.
    void truncate(uint32_t slot, uint32_t n_rows, uint64_t turn);
    // Slot `to` (which holds nothing) gets the first n_rows of `from`: full pages shared, the partial one copied.
    Status fork(uint32_t from, uint32_t to, uint32_t n_rows, std::vector<PageChange>& changes, std::vector<PageCopy>& copies);
    void collect(uint64_t completed_turn);

    // Copies pages of every layer; record between transfer barriers.
    void record_copy(Recording& cmd, const PageCopy& copy) const;

    AttentionShape attention_shape() const;
    BufferView k(uint32_t layer) const { return k_[layer].view(); } // (n_kv_heads, n_pages) pages: shared/cache_layout.h
    BufferView v(uint32_t layer) const { return v_[layer].view(); } // as k
    BufferView page_table() const { return page_table_.view(); }    // (n_slots, pages_per_slot) uint
    const CacheShape& shape() const { return shape_; }
    uint32_t pages_per_slot() const { return pages_per_slot_; }
    uint32_t n_free_pages() const { return pool_.n_free(); }
    uint32_t n_mapped_pages(uint32_t slot) const { return static_cast<uint32_t>(slots_[slot].size()); }

    uint64_t bytes() const { return bytes_per_token(shape_) * shape_.page_size * shape_.n_pages; } // of the pools
    static uint64_t bytes_per_token(const CacheShape& shape); // K and V, all layers

  private:
    explicit KvCache(const CacheShape& shape) : shape_(shape), pool_(shape.n_pages), slots_(shape.n_slots) {}
    uint64_t page_bytes(CacheSide side) const { return cache_page_bytes(shape_.dtype, side, shape_.page_size, shape_.head_dim); }
    CacheShape shape_;
    uint32_t pages_per_slot_ = 0;
    std::vector<Buffer> k_, v_; // one per layer
    Buffer page_table_;
    PagePool pool_;
    std::vector<std::vector<uint32_t>> slots_; // physical page of each logical one
};

} // namespace auspex
