// Touvron et al. 2023, figure by figure: embed, then per layer attention and feed-forward with pre-normalisation, head.
#include "model/llama_forward.h"

#include "kernels/embed.h"
#include "kernels/gate_up.h"
#include "kernels/matmul.h"
#include "kernels/matvec.h"
#include "kernels/normed_matvec.h"
#include "kernels/prenorm.h"
#include "kernels/prompt_attention.h"
#include "kernels/qkv.h"
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
           4ull * (2ull * padded_width(c.hidden_size) + 4 + uint64_t(2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim +
                   uint64_t(c.n_heads) * splits * (c.head_dim + 2) + c.n_kv_heads + 3ull * padded_width(c.ffn_size));
}

Result<std::unique_ptr<LlamaModel>> LlamaModel::create(Device& device, MemoryPool& memory, Uploader& uploader,
                                                       const Tuning& tuning, LlamaWeights weights, const CacheShape& cache,
                                                       uint32_t max_rows) {
    std::unique_ptr<LlamaModel> model(new LlamaModel());
    model->weights_ = std::move(weights);
    const LlamaConfig& c = model->config();
    AUSPEX_TRY_SET(model->cache_, KvCache::create(device, memory, uploader, cache));
    model->max_splits_ = ceil_div(cache.max_rows, tuning.attention_split);
    Activations& a = model->activations_;
    a.max_rows = max_rows;
    auto make = [&](Buffer& buffer, uint64_t row_floats) -> Status {
        AUSPEX_TRY_SET(buffer, memory.create(max_rows * row_floats * 4, MemoryUse::device));
        if (buffer.size() > device.caps.max_storage_buffer_range)
            return {Code::unsupported, "activations of " + std::to_string(max_rows) + " rows exceed the device's storage buffer range"};
        return uploader.zero_and_wait(buffer.view());
    };
    AUSPEX_TRY(make(a.x, padded_width(c.hidden_size)));
    AUSPEX_TRY(make(a.normed, padded_width(c.hidden_size)));
    AUSPEX_TRY(make(a.norm_scales, 4));
    AUSPEX_TRY(make(a.qkv, uint64_t(c.n_heads + 2 * c.n_kv_heads) * c.head_dim));
    AUSPEX_TRY(make(a.partials, uint64_t(c.n_heads) * model->max_splits_ * (c.head_dim + 2)));
    AUSPEX_TRY(make(a.splits_done, c.n_kv_heads));
    AUSPEX_TRY(make(a.attended, uint64_t(c.n_heads) * c.head_dim));
    AUSPEX_TRY(make(a.gate_up, 2ull * c.ffn_size));
    AUSPEX_TRY(make(a.ffn, padded_width(c.ffn_size)));
    if (const uint64_t bytes = halves_bytes_per_row(c, tuning)) AUSPEX_TRY(make(a.halves, bytes / 4));

    std::vector<float> table = make_rope_table(c, cache.max_rows);
    AUSPEX_TRY_SET(model->rope_table_, memory.create(table.size() * 4, MemoryUse::device));
    AUSPEX_TRY(uploader.write_and_wait(model->rope_table_, std::as_bytes(std::span(table))));
    return model;
}

std::unique_ptr<LlamaModel> LlamaModel::create_copy(LlamaWeights matrices, LlamaModel& of, bool rounds_x) {
    std::unique_ptr<LlamaModel> model(new LlamaModel());
    model->weights_ = std::move(matrices);
    model->of_ = &of;
    model->rounds_x_ = rounds_x;
    return model;
}

void LlamaModel::record_linear(Recorder& to, const Pass& pass, const Linear& weight, const Buffer& x, const Buffer& y,
                               uint32_t y_stride, bool add) const {
    uint32_t first = 0;
    const bool halves = pass.kind == PassKind::prompt && matmul_wants_halves(to.tuning());
    if (halves) {
        record_split_halves(to, x.view(), activations().halves.view(), pass.n_rows, weight.parts.at(0).padded_cols);
        to.cmd.barrier();
    }
    for (const Tensor& part : weight.parts) { // they write beside each other
        auto record = pass.kind == PassKind::prompt ? record_matmul : record_matvec;
        record(to, part, halves ? activations().halves.view() : x.view(), y.view(), pass.n_rows, y_stride, add, first);
        first += part.rows;
    }
    to.cmd.barrier();
}

void LlamaModel::record_embedding(Recorder& to, const Pass& pass) const {
    to.cmd.stage(Region::embedding);
    record_embed(to, owner().weights_.embedding, pass.rows, pass.n_rows, activations().x.view(), padded_width(config().hidden_size));
    to.cmd.barrier();
}

NormedRows LlamaModel::normed(const Pass& pass, const Buffer& norm) const {
    return {.x = activations().x.view(), .weight = norm.view(), .width = config().hidden_size, .eps = config().rms_eps, .n_rows = pass.n_rows};
}

NormedRows LlamaModel::record_norm(Recorder& to, std::span<const Tensor> weight, const NormedRows& rows) const {
    const bool in_blocks = is_quantized(weight[0].dtype);
    const bool walk_alike = std::all_of(weight.begin(), weight.end(), [&](const Tensor& part) { return is_quantized(part.dtype) == in_blocks; });
    if (!walk_alike || !to.tuning().norm_is_stage(rows.n_rows)) return rows;
    to.cmd.stage(Region::norm);
    const NormedRows prepared = record_prenorm(to, weight[0], rows, activations().normed.view(), activations().norm_scales.view());
    to.cmd.barrier();
    return prepared;
}

void LlamaModel::record_normed_linear(Recorder& to, const Pass& pass, const Linear& weight, const NormedRows& x, const Buffer& y, uint32_t y_stride) const {
    if (!pass.by_rows(to)) {
        record_rmsnorm(to, {.x = x.x, .weight = x.weight, .y = activations().normed.view()}, {.width = x.width, .n_rows = x.n_rows, .eps = x.eps});
        to.cmd.barrier();
        return record_linear(to, pass, weight, activations().normed, y, y_stride, false);
    }
    uint32_t first = 0;
    for (const Tensor& part : weight.parts) {
        record_normed_matvec(to, part, x, y.view(), y_stride, first);
        first += part.rows;
    }
    to.cmd.barrier();
}

void LlamaModel::record_attention_input(Recorder& to, const Pass& pass, uint32_t i) const {
    const Activations& a = activations();
    const LlamaLayer& layer = weights_.layers[i];
    const AttentionShape shape = cache().attention_shape();
    const ops::RopeAppend::Bindings b = {.qkv = a.qkv.view(),
                                         .rows = pass.rows,
                                         .table = owner().rope_table_.view(),
                                         .pages = cache().page_table(),
                                         .k_cache = cache().k(i),
                                         .v_cache = cache().v(i)};
    NormedRows x = normed(pass, norms(i).attention_norm);
    if (pass.by_rows(to)) x = record_norm(to, layer.qkv.parts, x);
    to.cmd.stage(Region::qkv);
    if (pass.by_rows(to) && shape.cache_dtype != DType::q8_0) {
        uint32_t first = 0;
        for (const Tensor& part : layer.qkv.parts) {
            record_qkv(to, part, x, shape, b, first);
            first += part.rows;
        }
        return to.cmd.barrier();
    }
    record_normed_linear(to, pass, layer.qkv, x, a.qkv, (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim);
    to.cmd.stage(Region::rope_append);
    record_rope_append(to, shape, b, pass.n_rows);
    to.cmd.barrier();
}

void LlamaModel::record_attention_output(Recorder& to, const Pass& pass, uint32_t i) const {
    const Activations& a = activations();
    const AttentionShape shape = cache().attention_shape();
    const AttentionBuffers buffers = {.qkv = a.qkv.view(),
                                      .pages = cache().page_table(),
                                      .k_cache = cache().k(i),
                                      .v_cache = cache().v(i),
                                      .partials = a.partials.view()};
    const CombineBuffers combine = {.y = a.attended.view(), .done = a.splits_done.view()};
    const bool combines = pass.by_rows(to) && to.tuning().attention_combines;
    const AttentionRows rows = {.rows = pass.rows, .counts = pass.counts, .n_rows = pass.n_rows, .rows_per_slot = pass.rows_per_slot};
    to.cmd.stage(Region::attention);
    if (pass.by_rows(to)) record_attention(to, shape, buffers, rows, owner().max_splits_, combines ? &combine : nullptr);
    else record_prompt_attention(to, shape, buffers, rows, owner().max_splits_);
    to.cmd.barrier();
    if (combines) return;
    to.cmd.stage(Region::combine);
    record_combine(to, shape, {.partials = a.partials.view(), .rows = pass.rows, .y = a.attended.view()}, owner().max_splits_, pass.n_rows);
    to.cmd.barrier();
}

void LlamaModel::record_ffn_input(Recorder& to, const Pass& pass, uint32_t i) const {
    const uint32_t ffn = config().ffn_size;
    const Activations& a = activations();
    const LlamaLayer& layer = weights_.layers[i];
    NormedRows x = normed(pass, norms(i).ffn_norm);
    if (pass.by_rows(to)) x = record_norm(to, layer.gate_up.parts, x);
    to.cmd.stage(Region::gate_up);
    if (pass.by_rows(to) && layer.gate_up_in_pairs()) {
        record_gate_up(to, layer.gate_up.parts[0], x, a.ffn.view(), padded_width(ffn));
        return to.cmd.barrier();
    }
    record_normed_linear(to, pass, layer.gate_up, x, a.gate_up, 2 * ffn);
    to.cmd.stage(Region::swiglu);
    record_swiglu(to, a.gate_up.view(), a.ffn.view(), pass.n_rows, ffn, layer.gate_up_in_pairs());
    to.cmd.barrier();
}

void LlamaModel::record_layers(Recorder& to, const Pass& pass, uint32_t begin, uint32_t end) const {
    const Activations& a = activations();
    const uint32_t d = padded_width(config().hidden_size);
    for (uint32_t i = begin; i < end; ++i) {
        const LlamaLayer& layer = weights_.layers[i];
        record_attention_input(to, pass, i);
        record_attention_output(to, pass, i);
        to.cmd.stage(Region::output);
        record_linear(to, pass, layer.output, a.attended, a.x, d, true);
        record_ffn_input(to, pass, i);
        to.cmd.stage(Region::down);
        record_linear(to, pass, layer.down, a.ffn, a.x, d, true);
        if (pass.slice_layers > 0 && (i + 1) % pass.slice_layers == 0 && i + 1 < config().n_layers) to.cmd.cut();
    }
}

NormedRows LlamaModel::normed(const VocabShape& shape) const {
    return {.x = activations().x.view(), .weight = owner().weights_.final_norm.view(), .width = config().hidden_size, .eps = config().rms_eps,
            .n_rows = shape.n_rows, .first_row = shape.first_row, .row_step = shape.row_step};
}

void LlamaModel::record_head(Recorder& to, BufferView logits, const VocabShape& shape) const {
    const NormedRows x = record_norm(to, {&weights_.head(), 1}, normed(shape));
    to.cmd.stage(Region::head);
    record_normed_matvec(to, weights_.head(), x, logits, shape.logits_step * shape.vocab, shape.first_logits * shape.vocab);
    to.cmd.barrier();
}

uint32_t LlamaModel::record_best_head(Recorder& to, BestTokens bests, const VocabShape& shape) const {
    const NormedRows x = record_norm(to, {&weights_.head(), 1}, normed(shape));
    bests.rows = shape.rows;
    bests.first_row = shape.first_row;
    bests.row_step = shape.row_step;
    to.cmd.stage(Region::head);
    const uint32_t n_bests = record_best_tokens(to, weights_.head(), x, bests);
    to.cmd.barrier();
    return n_bests;
}

} // namespace auspex
