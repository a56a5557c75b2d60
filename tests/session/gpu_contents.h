// What the GPU holds, copied back between turns: caches by logical row whatever pages they lie on, slot states, logits.
#pragma once

#include "gpu_test.h"
#include "session/engine.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace auspex::test {

inline void run_recorded(Device& device, const std::function<void(Recording&)>& record) {
    auto made = Recording::create(device, 0);
    ASSERT_TRUE(made.ok()) << made.status().message();
    made.value()->begin_segment("test");
    record(*made.value());
    made.value()->end_segment();
    const Status status = made.value()->finish();
    ASSERT_TRUE(status.ok()) << status.message();
    submit_and_wait(device, *made.value());
}

template <typename T> std::vector<T> read_back(Device& device, BufferView view) {
    std::vector<T> out(view.size / sizeof(T));
    MemoryPool memory(device);
    auto made = memory.create(view.size, MemoryUse::readback);
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (!made.ok()) return out;
    Buffer host = std::move(made).value();
    run_recorded(device, [&](Recording& cmd) {
        cmd.transfer_barrier();
        cmd.copy(view, host.view(0, view.size));
        cmd.transfer_barrier();
    });
    std::memcpy(out.data(), host.mapped(), out.size() * sizeof(T));
    return out;
}

inline gpu::SlotState slot_state(Engine& engine, uint32_t slot) {
    return read_back<gpu::SlotState>(engine.device(), engine.buffers().state.view(slot * sizeof(gpu::SlotState), sizeof(gpu::SlotState)))[0];
}

// What one row holds of one head: its elements, and in K of a q8_0 cache the scales of both sides (shared/cache_layout.h).
inline uint64_t head_bytes(const CacheShape& shape, CacheSide side) { return cache_page_bytes(shape.dtype, side, 1, shape.head_dim); }

// Bits of K and V of a slot's first n_rows rows, whatever pages they lie on: (layer, K then V, row, kv_head, head_bytes).
inline std::vector<std::byte> cache_rows(Device& device, const KvCache& cache, uint32_t slot, uint32_t n_rows) {
    const CacheShape& shape = cache.shape();
    std::vector<std::byte> out;
    const uint64_t table_bytes = uint64_t(cache.pages_per_slot()) * 4;
    BufferView table = cache.page_table();
    const auto pages = read_back<uint32_t>(device, table.sub(slot * table_bytes, table_bytes));
    const uint64_t element_bytes = head_bytes(shape, CacheSide::v), scale_bytes = head_bytes(shape, CacheSide::k) - element_bytes;
    for (uint32_t layer = 0; layer < shape.n_layers; ++layer)
        for (CacheSide side : {CacheSide::k, CacheSide::v}) {
            const auto pool = read_back<std::byte>(device, side == CacheSide::k ? cache.k(layer) : cache.v(layer));
            const uint64_t page_bytes = head_bytes(shape, side) * shape.page_size;
            auto append = [&](uint64_t from, uint64_t bytes) {
                const auto at = pool.begin() + static_cast<ptrdiff_t>(from);
                out.insert(out.end(), at, at + static_cast<ptrdiff_t>(bytes));
            };
            for (uint32_t row = 0; row < n_rows; ++row)
                for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
                    const uint64_t page = (uint64_t(head) * shape.n_pages + pages[row / shape.page_size]) * page_bytes, in_page = row % shape.page_size;
                    append(page + in_page * element_bytes, element_bytes);
                    if (side == CacheSide::k) append(page + shape.page_size * element_bytes + in_page * scale_bytes, scale_bytes);
                }
        }
    return out;
}
inline std::vector<std::byte> cache_rows(Engine& engine, const LlamaModel& model, uint32_t slot, uint32_t n_rows) {
    return cache_rows(engine.device(), model.cache(), slot, n_rows);
}

// Greedy, in rounds that write logits: a bias wants them, and one of zero changes none.
inline SamplingParams keeping_logits() {
    SamplingParams sampling;
    sampling.biases = {{0, 0.0f}};
    return sampling;
}

// The logits of the last round, if it wrote them and its batch had one entry without drafts.
inline std::vector<float> last_logits(Engine& engine) {
    return read_back<float>(engine.device(), engine.buffers().target_logits.view(0, engine.target().config().vocab_size * 4));
}

// Where two such dumps differ first, in words; empty when they are equal.
inline std::string first_difference(const CacheShape& shape, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
    if (a.size() != b.size()) return std::to_string(a.size()) + " bytes against " + std::to_string(b.size());
    const uint64_t k_bytes = shape.n_kv_heads * head_bytes(shape, CacheSide::k), v_bytes = shape.n_kv_heads * head_bytes(shape, CacheSide::v);
    const uint64_t n_rows = std::max<uint64_t>(1, a.size() / (shape.n_layers * (k_bytes + v_bytes)));
    const uint64_t layer_bytes = n_rows * (k_bytes + v_bytes);
    for (size_t i = 0; i < a.size(); ++i)
        if (a[i] != b[i]) {
            const uint64_t in_layer = i % layer_bytes;
            const bool is_k = in_layer < n_rows * k_bytes;
            return "layer " + std::to_string(i / layer_bytes) + (is_k ? " K" : " V") + " row " +
                   std::to_string(is_k ? in_layer / k_bytes : (in_layer - n_rows * k_bytes) / v_bytes);
        }
    return "";
}

} // namespace auspex::test
