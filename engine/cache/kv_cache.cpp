// Memory for pages, and the way from one to another.
#include "cache/kv_cache.h"

namespace auspex {

Result<std::unique_ptr<KvCache>> KvCache::create(Device& device, MemoryPool& memory, Uploader& uploader, const CacheShape& shape) {
    std::unique_ptr<KvCache> cache(new KvCache(shape));
    cache->pages_per_slot_ = ceil_div(shape.max_rows, shape.page_size);
    if (!is_cache_dtype(shape.dtype))
        return Status(Code::unsupported, "a cache of type " + std::string(dtype_name(shape.dtype)) + " was asked for, expected f16, f32 or q8_0");
    uint64_t pages = uint64_t(shape.n_kv_heads) * shape.n_pages;
    uint64_t bytes = pages * cache->page_bytes(CacheSide::k); // the larger side
    if (bytes > device.caps.max_storage_buffer_range)
        return Status(Code::unsupported, "one layer's K cache of " + std::to_string(bytes) + " bytes exceeds the device's storage buffer range of " +
                                             std::to_string(device.caps.max_storage_buffer_range) + " bytes; ask for a smaller context or fewer sequences");
    for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
        for (CacheSide side : {CacheSide::k, CacheSide::v}) {
            AUSPEX_TRY_ASSIGN(buffer, create_zeroed(memory, uploader, pages * cache->page_bytes(side)));
            (side == CacheSide::k ? cache->k_ : cache->v_).push_back(std::move(buffer));
        }
    }
    AUSPEX_TRY_SET(cache->page_table_, create_zeroed(memory, uploader, uint64_t(shape.n_slots) * cache->pages_per_slot_ * 4));
    return cache;
}

void KvCache::record_copy(Recording& cmd, const PageCopy& copy) const {
    for (uint32_t layer = 0; layer < shape_.n_layers; ++layer)
        for (uint32_t head = 0; head < shape_.n_kv_heads; ++head)
            for (CacheSide side : {CacheSide::k, CacheSide::v}) {
                const BufferView pool = side == CacheSide::k ? k(layer) : v(layer);
                const uint64_t bytes = page_bytes(side), base = uint64_t(head) * shape_.n_pages;
                cmd.copy(pool.sub((base + copy.from) * bytes, bytes), pool.sub((base + copy.to) * bytes, bytes));
            }
}

AttentionShape KvCache::attention_shape() const {
    return {.n_heads = shape_.n_heads,
            .n_kv_heads = shape_.n_kv_heads,
            .head_dim = shape_.head_dim,
            .page_size = shape_.page_size,
            .n_pages = shape_.n_pages,
            .pages_per_slot = pages_per_slot_,
            .cache_dtype = shape_.dtype};
}

uint64_t KvCache::bytes_per_token(const CacheShape& shape) {
    uint64_t head = cache_page_bytes(shape.dtype, CacheSide::k, 1, shape.head_dim) + cache_page_bytes(shape.dtype, CacheSide::v, 1, shape.head_dim);
    return head * shape.n_layers * shape.n_kv_heads;
}

} // namespace auspex
