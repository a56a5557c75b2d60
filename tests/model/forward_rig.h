// A Llama on the test device, driven row by row without rounds: its own page table (pages in shuffled order, pools
// poisoned), passes over any list of rows, and what they leave in logits and cache.
#pragma once

#include "gpu_test.h"
#include "kernels/prompt_attention.h"
#include "model/checkpoint/checkpoint.h"
#include "model/llama_forward.h"
#include "session/gpu_contents.h"

namespace auspex::test {

constexpr uint32_t kRigSlots = 3, kRigContext = 160, kRigRows = 80;

class ForwardRig {
  public:
    ForwardRig(Device& device, MemoryPool& memory, KernelLibrary& kernels, const SyntheticModel& model, DType cache)
        : device_(device), kernels_(kernels) {
        auto uploader = Uploader::create(device, memory);
        auto checkpoint = make_synthetic_checkpoint(model);
        EXPECT_TRUE(uploader.ok() && checkpoint.ok()) << checkpoint.status().message();
        auto weights = load_llama_weights(device, memory, *uploader.value(), *checkpoint.value());
        EXPECT_TRUE(weights.ok()) << weights.status().message();
        const LlamaConfig& c = model.config;
        const CacheShape shape = {c.n_layers, c.n_heads, c.n_kv_heads, c.head_dim, cache, kRigSlots, kRigContext, 16, kRigSlots * 10 + 5};
        auto made = LlamaModel::create(device, memory, *uploader.value(), kernels.tuning(), std::move(weights).value(), shape, kRigRows);
        EXPECT_TRUE(made.ok()) << made.status().message();
        model_ = std::move(made).value();
        auto buffer = [&](uint64_t bytes) {
            auto made_buffer = memory.create(bytes, MemoryUse::readback);
            EXPECT_TRUE(made_buffer.ok());
            return std::move(made_buffer).value();
        };
        rows_ = buffer(kRigRows * sizeof(gpu::Row));
        counts_ = buffer(12);
        logits_ = buffer(uint64_t(kRigRows) * c.vocab_size * 4);
        table_ = buffer(model_->cache().page_table().size);
        // Slot s has every third page, from the end: no two neighbours are neighbours.
        for (uint32_t s = 0; s < kRigSlots; ++s)
            for (uint32_t i = 0; i < 10; ++i) {
                const uint32_t page = 5 + (9 - i) * kRigSlots + s;
                std::memcpy(table_.mapped() + (s * 10 + i) * 4, &page, 4);
            }
        clear();
    }

    // NaN in every page, as if nothing had been read.
    void clear() {
        run_recorded(device_, [&](Recording& cmd) {
            cmd.transfer_barrier();
            cmd.copy(table_.view(0, model_->cache().page_table().size), model_->cache().page_table());
            for (uint32_t layer = 0; layer < model_->config().n_layers; ++layer) {
                cmd.fill(model_->cache().k(layer), kPoison);
                cmd.fill(model_->cache().v(layer), kPoison);
            }
            cmd.transfer_barrier();
        });
    }

    // One pass; the logits of every row: (rows.size(), vocab), as `then`, with the rows, leaves them.
    using Then = std::function<void(Recorder&, BufferView logits, BufferView rows)>;
    std::vector<float> pass(const std::vector<gpu::Row>& rows, PassKind kind, const Then& then = {}) {
        const uint32_t n = static_cast<uint32_t>(rows.size()), vocab = model_->config().vocab_size;
        std::memcpy(rows_.mapped(), rows.data(), n * sizeof(gpu::Row));
        uint32_t end = 0;
        for (const gpu::Row& row : rows) end = std::max(end, row.live ? row.position + 1 : 0);
        const AttentionShape shape = model_->cache().attention_shape();
        const uint32_t tile = kind == PassKind::prompt ? prompt_tile_rows(kernels_.tuning(), shape, n) : attention_tile_rows(kernels_.tuning(), n);
        const uint32_t split = kernels_.tuning().attention_split, counts[3] = {ceil_div(end, split), shape.n_kv_heads, ceil_div(n, tile)};
        std::memcpy(counts_.mapped(), counts, 12);
        for (uint64_t at = 0; at < logits_.size(); at += 4) std::memcpy(logits_.mapped() + at, &kPoison, 4);
        run_recorded(device_, [&](Recording& cmd) {
            Recorder to = {cmd, kernels_};
            const Pass p = {rows_.view(0, n * sizeof(gpu::Row)), counts_.view(0, 12), n, kind, n};
            model_->record_embedding(to, p);
            model_->record_layers(to, p, 0, model_->config().n_layers);
            model_->record_head(to, logits_.view(0, uint64_t(kRigRows) * vocab * 4), {.vocab = vocab, .n_rows = n, .rows = p.rows});
            if (then) then(to, logits_.view(0, uint64_t(kRigRows) * vocab * 4), p.rows);
        });
        std::vector<float> out(uint64_t(n) * vocab);
        std::memcpy(out.data(), logits_.mapped(), out.size() * 4);
        return out;
    }

    std::vector<std::byte> cache(uint32_t slot, uint32_t n_rows) { return cache_rows(device_, model_->cache(), slot, n_rows); }
    LlamaModel& model() { return *model_; }

  private:
    Device& device_;
    KernelLibrary& kernels_;
    std::unique_ptr<LlamaModel> model_;
    Buffer rows_, counts_, logits_, table_;
};

} // namespace auspex::test
