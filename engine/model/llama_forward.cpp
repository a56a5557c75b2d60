// Touvron et al. 2023, figure by figure: embed, then per layer attention and feed-forward with pre-normalisation, head.
#include "model/llama_forward.h"

#include "kernels/embed.h"
#include "kernels/matmul.h"
#include "kernels/matvec.h"
#include "kernels/prompt_attention.h"
#include "kernels/rmsnorm.h"
#include "kernels/split_halves.h"
#include "kernels/swiglu.h"

#include <algorithm>
#include <cmath>

namespace auspex {

namespace {

// Bytes of the widest input of a linear layer, as halves.
uint64_t halves_bytes_per_row(const LlamaConfig& c, const Tuning& tuning) {
    if (!matmul_wants_halves(tuning)) return 0;
    return halves_bytes(std::max({padded_width(c.hidden_size), padded_width(c.ffn_size), c.n_heads * c.head_dim}));
}

// cos and sin of position · frequency, in double and rounded once.
std::vector<float> make_rope_table(const LlamaConfig& config, uint32_t max_context) {
    const std::vector<double> frequencies = rope_frequencies(config);
    std::vector<float> table;
    table.reserve(uint64_t(max_context) * config.head_dim);
    for (uint32_t position = 0; position < max_context; ++position)
        for (double frequency : frequencies) {
            const double angle = position * frequency;
            table.push_back(static_cast<float>(std::cos(angle)));
            table.push_back(static_cast<float>(std::sin(angle)));
        }
    return table;
}

} // namespace

uint64_t LlamaModel::activation_bytes_per_row(const LlamaConfig& c, const Tuning& tuning, uint32_t max_context) {
    uint64_t splits = ceil_div(max_context, tuning.attention_split);
    return halves_bytes_per_row(c, tuning) +
           4ull * (2ull * padded_width(c.hidden_size) + uint64_t(2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim +
                   uint64_t(c.n_heads) * splits * (c.head_dim + 2) + 3ull * padded_width(c.ffn_size));
}

Result<std::unique_ptr<LlamaModel>> LlamaModel::create(Device& device, MemoryPool& memory, Uploader& uploader,
                                                       const Tuning& tuning, LlamaWeights weights, const CacheShape& cache,
                                                       uint32_t max_rows) {
    std::unique_ptr<LlamaModel> model(new LlamaModel());
    model->weights_ = std::move(weights);
    const LlamaConfig& c = model->config();
    AUSPEX_TRY_ASSIGN(made_cache, KvCache::create(device, memory, uploader, cache));
    model->cache_ = std::move(made_cache);
    model->max_splits_ = ceil_div(cache.max_rows, tuning.attention_split);
    Activations& a = model->activations_;
    a.max_rows = max_rows;
    auto make = [&](Buffer& buffer, uint64_t row_floats) -> Status {
        AUSPEX_TRY_ASSIGN(made, memory.create(max_rows * row_floats * 4, MemoryUse::device));
        if (made.size() > device.caps.max_storage_buffer_range)
            return {Code::unsupported, "activations of " + std::to_string(max_rows) + " rows exceed the device's storage buffer range"};
        AUSPEX_TRY(uploader.zero_and_wait(made.view()));
        buffer = std::move(made);
        return ok_status();
    };
    AUSPEX_TRY(make(a.x, padded_width(c.hidden_size)));
    AUSPEX_TRY(make(a.normed, padded_width(c.hidden_size)));
    AUSPEX_TRY(make(a.qkv, uint64_t(c.n_heads + 2 * c.n_kv_heads) * c.head_dim));
    AUSPEX_TRY(make(a.partials, uint64_t(c.n_heads) * model->max_splits_ * (c.head_dim + 2)));
    AUSPEX_TRY(make(a.attended, uint64_t(c.n_heads) * c.head_dim));
    AUSPEX_TRY(make(a.gate_up, 2ull * c.ffn_size));
    AUSPEX_TRY(make(a.ffn, padded_width(c.ffn_size)));
    if (const uint64_t bytes = halves_bytes_per_row(c, tuning)) AUSPEX_TRY(make(a.halves, bytes / 4));

    std::vector<float> table = make_rope_table(c, cache.max_rows);
    AUSPEX_TRY_ASSIGN(rope_table, memory.create(table.size() * 4, MemoryUse::device));
    AUSPEX_TRY(uploader.write_and_wait(rope_table.view(0, table.size() * 4), table.data()));
    model->rope_table_ = std::move(rope_table);
    return model;
}

void LlamaModel::record_linear(Recorder& to, const Pass& pass, const Linear& weight, const Buffer& x, const Buffer& y,
                               uint32_t y_stride, bool add) const {
    uint32_t first = 0;
    const bool halves = pass.kind == PassKind::prompt && matmul_wants_halves(to.tuning());
    if (halves) {
        record_split_halves(to, x.view(), activations_.halves.view(), pass.n_rows, weight.parts.at(0).padded_cols);
        to.cmd.barrier();
    }
    for (const Tensor& part : weight.parts) { // they write beside each other
        auto record = pass.kind == PassKind::prompt ? record_matmul : record_matvec;
        record(to, part, halves ? activations_.halves.view() : x.view(), y.view(), pass.n_rows, y_stride, add, first);
        first += part.rows;
    }
    to.cmd.barrier();
}

void LlamaModel::record_embedding(Recorder& to, const Pass& pass) const {
    record_embed(to, weights_.embedding, pass.rows, pass.n_rows, activations_.x.view(), padded_width(config().hidden_size));
    to.cmd.barrier();
}

void LlamaModel::record_layers(Recorder& to, const Pass& pass, uint32_t begin, uint32_t end) const {
    const LlamaConfig& c = config();
    const Activations& a = activations_;
    const AttentionShape attention = cache_->attention_shape();
    const RmsnormShape norm = {.width = c.hidden_size, .n_rows = pass.n_rows, .eps = c.rms_eps};
    const uint32_t d = padded_width(c.hidden_size);
    for (uint32_t i = begin; i < end; ++i) {
        const LlamaLayer& layer = weights_.layers[i];
        record_rmsnorm(to, a.x.view(), layer.attention_norm.view(), a.normed.view(), norm);
        to.cmd.barrier();
        record_linear(to, pass, layer.qkv, a.normed, a.qkv, (c.n_heads + 2 * c.n_kv_heads) * c.head_dim, false);
        record_rope_append(to, attention, a.qkv.view(), pass.rows, rope_table_.view(), cache_->page_table(), cache_->k(i),
                           cache_->v(i), pass.n_rows);
        to.cmd.barrier();
        if (pass.kind == PassKind::prompt)
            record_prompt_attention(to, attention, a.qkv.view(), pass.rows, cache_->page_table(), cache_->k(i), cache_->v(i),
                                    a.partials.view(), max_splits_, pass.counts, pass.n_rows);
        else
            record_attention(to, attention, a.qkv.view(), pass.rows, cache_->page_table(), cache_->k(i), cache_->v(i),
                             a.partials.view(), max_splits_, pass.counts);
        to.cmd.barrier();
        record_combine(to, attention, a.partials.view(), pass.rows, a.attended.view(), max_splits_, pass.n_rows);
        to.cmd.barrier();
        record_linear(to, pass, layer.output, a.attended, a.x, d, true);

        record_rmsnorm(to, a.x.view(), layer.ffn_norm.view(), a.normed.view(), norm);
        to.cmd.barrier();
        record_linear(to, pass, layer.gate_up, a.normed, a.gate_up, 2 * c.ffn_size, false);
        record_swiglu(to, a.gate_up.view(), a.ffn.view(), pass.n_rows, c.ffn_size);
        to.cmd.barrier();
        record_linear(to, pass, layer.down, a.ffn, a.x, d, true);
    }
}

void LlamaModel::record_head(Recorder& to, BufferView logits, const HeadRows& rows) const {
    const LlamaConfig& c = config();
    record_rmsnorm(to, activations_.x.view(), weights_.final_norm.view(), activations_.normed.view(),
                   {.width = c.hidden_size, .n_rows = rows.n, .eps = c.rms_eps, .x_first_row = rows.first_row, .x_row_step = rows.row_step});
    to.cmd.barrier();
    record_matvec(to, weights_.head(), activations_.normed.view(), logits, rows.n, rows.logits_stride, false, rows.logits_first);
    to.cmd.barrier();
}

} // namespace auspex
