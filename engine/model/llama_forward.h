// One forward pass of a Llama over a list of rows: the file that reads like the paper. Rows, their keys and lengths come
// from buffers, so a recorded pass stays valid as text grows. It does not sample and does not know of drafting.
#pragma once

#include "cache/kv_cache.h"
#include "kernels/normed_matvec.h"
#include "kernels/vocab.h"
#include "model/llama_weights.h"

namespace auspex {

// Which kernel family walks the weights. Every position has one family for life (design 3.5).
enum class PassKind { rows, prompt };

struct Pass {
    BufferView rows;   // (n_rows) Row
    BufferView counts; // 3 uint: attention grid
    uint32_t n_rows;
    PassKind kind = PassKind::rows;
    uint32_t rows_per_slot = 1; // neighbours of one slot, as a rule: they share what they read of its cache
    uint32_t slice_layers = 0;  // the segment is cut after each group of this many layers but the last; 0: nowhere

    bool by_rows(const Recorder& to) const { return kind == PassKind::rows || to.tuning().prompt_by_rows; }
};

// Scratch of one pass at a time; models take turns.
struct Activations {
    Buffer x;          // (max_rows, padded d) f32, the residual stream
    Buffer normed;     // (max_rows, padded d) f32
    Buffer norm_scales; // (max_rows) f32, and room for whole texels
    Buffer qkv;        // (max_rows, n_heads + 2 · n_kv_heads, head_dim) f32
    Buffer partials;   // (max_rows, n_heads, max_splits, head_dim + 2) f32
    Buffer splits_done; // (max_rows, n_kv_heads) uint, zero between passes
    Buffer attended;   // (max_rows, n_heads · head_dim) f32
    Buffer gate_up;    // (max_rows, 2 · ffn) f32, as the weights' rows lie
    Buffer ffn;        // (max_rows, padded ffn) f32
    Buffer halves;     // (max_rows) rows of split_halves, as wide as the widest x; only where matmul wants halves
    uint32_t max_rows = 0;
};

class LlamaModel {
  public:
    static Result<std::unique_ptr<LlamaModel>> create(Device& device, MemoryPool& memory, Uploader& uploader,
                                                      const Tuning& tuning, LlamaWeights weights, const CacheShape& cache,
                                                      uint32_t max_rows);
    // The same model by other matrices, as a rule in fewer bits: its passes read and write `of`'s cache, and take turns with it in its
    // scratch. Norms, rotations and the embedding table are those of `of`, which outlives this.
    // rounds_x: see below.
    static std::unique_ptr<LlamaModel> create_copy(LlamaWeights matrices, LlamaModel& of, bool rounds_x);
    bool is_copy() const { return of_ != nullptr; }
    // Whether x may be rounded to 8 bits in passes that only draft; not by a copy of equal weights, whose every draft is to be accepted.
    bool rounds_x() const { return rounds_x_; }

    const LlamaConfig& config() const { return weights_.config; }
    const LlamaWeights& weights() const { return weights_; }
    KvCache& cache() { return of_ ? of_->cache() : *cache_; }
    const KvCache& cache() const { return of_ ? of_->cache() : *cache_; }
    uint32_t max_rows() const { return activations().max_rows; }
    // Pass::slice_layers for so many slices; of one layer at least.
    uint32_t slice_layers(uint32_t n_slices) const { return n_slices == 0 ? 0 : ceil_div(config().n_layers, n_slices); }

    // Stages of a pass; barriers lie between and after them.
    void record_embedding(Recorder& to, const Pass& pass) const;
    void record_layers(Recorder& to, const Pass& pass, uint32_t begin, uint32_t end) const;
    // Logits, in f32, of rows of the pass, as `shape` has them.
    void record_head(Recorder& to, BufferView logits, const VocabShape& shape) const;
    // For passes where only the best token of a row counts: writes candidates (key, id) for record_pick_best instead of logits, and
    // returns how many it wrote per row. `shape` says which rows.
    uint32_t record_best_head(Recorder& to, BestTokens bests, const VocabShape& shape) const;

    // Bytes of activations that one row needs, for choosing max_rows.
    static uint64_t activation_bytes_per_row(const LlamaConfig& config, const Tuning& tuning, uint32_t max_context);

  private:
    LlamaModel() = default;
    void record_linear(Recorder& to, const Pass& pass, const Linear& weight, const Buffer& x, const Buffer& y, uint32_t y_stride,
                       bool add) const;
    NormedRows normed(const Pass& pass, const Buffer& norm) const;
    NormedRows normed(const VocabShape& shape) const;
    // The norm as a stage, where the device wants that and the parts of the weight walk x in one way; else `rows` as they are.
    NormedRows record_norm(Recorder& to, std::span<const Tensor> weight, const NormedRows& rows) const;
    void record_normed_linear(Recorder& to, const Pass& pass, const Linear& weight, const NormedRows& x, const Buffer& y, uint32_t y_stride) const;
    // As few stages as fit the pass: x to q, with k and v cached; q and the cache to what the heads say; x to the
    // feed-forward's inner activations.
    void record_attention_input(Recorder& to, const Pass& pass, uint32_t layer) const;
    void record_attention_output(Recorder& to, const Pass& pass, uint32_t layer) const;
    void record_ffn_input(Recorder& to, const Pass& pass, uint32_t layer) const;
    const LlamaModel& owner() const { return of_ ? *of_ : *this; } // that owns what is no matrix
    const Activations& activations() const { return owner().activations_; }
    const LlamaLayer& norms(uint32_t layer) const { return owner().weights_.layers[layer]; }

    LlamaModel* of_ = nullptr; // of a copy
    bool rounds_x_ = true;
    LlamaWeights weights_;
    // Empty in a copy.
    std::unique_ptr<KvCache> cache_;
    Activations activations_;
    Buffer rope_table_; // (max_context, head_dim / 2, 2) f32: cos, sin
    uint32_t max_splits_ = 0;
};

} // namespace auspex
