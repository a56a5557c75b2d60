// Names to tensors. Everything a file claims is compared with the config before memory is reserved for it.
#include "model/llama_weights.h"

#include "kernels/random_fill.h"
#include "model/checkpoint/tensor_roles.h"
#include "tensor/quant_blocks.h"

#include <algorithm>
#include <span>

namespace auspex {

namespace {

std::string layer_prefix(uint32_t layer) { return "model.layers." + std::to_string(layer) + "."; }

std::string shape_text(const std::vector<uint64_t>& shape) {
    std::string text = "(";
    for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + ")";
}

Result<const TensorInfo*> expect(const Checkpoint& checkpoint, const std::string& name, const std::vector<uint64_t>& shape) {
    const TensorInfo* tensor = checkpoint.find(name);
    if (!tensor) return Status(Code::bad_file, checkpoint.name() + ": tensor " + name + " is missing, expected shape " + shape_text(shape));
    if (tensor->shape != shape)
        return Status(Code::bad_file, checkpoint.name() + ": tensor " + name + " has shape " + shape_text(tensor->shape) +
                                          ", expected " + shape_text(shape) + " from config.json");
    return tensor;
}

class Loader {
  public:
    Loader(Device& device, MemoryPool& memory, Uploader& uploader, const Checkpoint& checkpoint, KernelLibrary* kernels)
        : device_(device), memory_(memory), uploader_(uploader), checkpoint_(checkpoint), kernels_(kernels) {}

    struct Part {
        std::string name;
        uint32_t rows;
        uint32_t rotated_head_dim = 0; // of q and k: the halves of each head go in turn
    };
    // Matrices stacked by rows; in_turn: those of one type do not follow each other whole but row by row.
    Result<Linear> linear(const std::vector<Part>& parts, uint32_t cols, bool in_turn = false) {
        std::vector<const TensorInfo*> infos;
        for (const Part& part : parts) {
            AUSPEX_TRY_ASSIGN(info, expect(checkpoint_, part.name, {part.rows, cols}));
            infos.push_back(info);
        }
        Linear stacked;
        for (size_t begin = 0, end = 0; begin < infos.size(); begin = end) {
            std::vector<RowSource> rows;
            for (; end < infos.size() && infos[end]->dtype == infos[begin]->dtype; ++end)
                for (uint32_t row = 0; row < parts[end].rows; ++row)
                    rows.push_back({infos[end], source_row(row, parts[end].rotated_head_dim)});
            if (in_turn && begin == 0 && end == infos.size()) take_turns(rows, infos.size());
            AUSPEX_TRY_ASSIGN(tensor, gather(infos[begin]->dtype, rows, cols));
            for (size_t i = begin; i < end; ++i) checkpoint_.release(*infos[i]);
            stacked.parts.push_back(std::move(tensor));
        }
        return stacked;
    }

    Result<Tensor> matrix(const std::string& name, uint32_t rows, uint32_t cols) {
        AUSPEX_TRY_ASSIGN(whole, linear({{name, rows}}, cols));
        return std::move(whole.parts[0]);
    }

    Result<Buffer> vector(const std::string& name, uint32_t width) {
        AUSPEX_TRY_ASSIGN(info, expect(checkpoint_, name, {width}));
        if (is_quantized(info->dtype))
            return Status(Code::unsupported, checkpoint_.name() + ": tensor " + name + " is " + std::string(dtype_name(info->dtype)) +
                                                 ", expected f32, f16 or bf16");
        std::vector<std::byte> raw(info->bytes);
        AUSPEX_TRY(checkpoint_.read(*info, 0, raw));
        std::vector<float> values(width);
        dequantize_blocks(info->dtype, raw, values);
        values.resize(padded_width(width), 0.0f);
        AUSPEX_TRY_ASSIGN(buffer, memory_.create(values.size() * 4, MemoryUse::device));
        AUSPEX_TRY(uploader_.write_and_wait(buffer, std::as_bytes(std::span(values))));
        return buffer;
    }

  private:
    struct RowSource {
        const TensorInfo* info;
        uint32_t row;
    };
    static uint32_t source_row(uint32_t row, uint32_t head_dim) {
        if (head_dim == 0) return row;
        const uint32_t i = row % head_dim;
        return row - i + i / 2 + i % 2 * (head_dim / 2);
    }
    // n matrices of equal height, one after the other, become rows in turn.
    static void take_turns(std::vector<RowSource>& rows, size_t n) {
        std::vector<RowSource> stacked = std::move(rows);
        rows.clear();
        for (size_t i = 0; i < stacked.size(); ++i) rows.push_back(stacked[i % n * (stacked.size() / n) + i / n]);
    }

    // Row by row from where each lies.
    Result<Tensor> gather(DType dtype, const std::vector<RowSource>& rows, uint32_t cols) {
        AUSPEX_TRY_ASSIGN(tensor, create_tensor(device_, memory_, dtype, static_cast<uint32_t>(rows.size()), cols, kernels_ && kernels_->tuning().tiles_weights));
        if (const std::optional<RandomMatrix> random = checkpoint_.made_on_device(*rows[0].info)) { // all of them are, then
            AUSPEX_TRY(make_on_device(tensor, *random));
            return tensor;
        }
        const uint64_t row_bytes = file_row_bytes(dtype, cols);
        const Uploader::Fill read = [&](uint64_t offset, std::span<std::byte> out) {
            while (!out.empty()) {
                const RowSource& source = rows[offset / row_bytes];
                const uint64_t skip = offset % row_bytes, n = std::min<uint64_t>(out.size(), row_bytes - skip);
                AUSPEX_TRY(checkpoint_.read(*source.info, source.row * row_bytes + skip, out.first(n)));
                out = out.subspan(n);
                offset += n;
            }
            return ok_status();
        };
        AUSPEX_TRY(upload_tensor(uploader_, tensor, read));
        return tensor;
    }

    Status make_on_device(const Tensor& tensor, const RandomMatrix& random) {
        if (!kernels_) return {Code::internal, checkpoint_.name() + ": there are no kernels to make its weights with"};
        return uploader_.make_and_wait(tensor.bytes(), [&](Recording& cmd) {
            Recorder to = {cmd, *kernels_};
            record_random_fill(to, tensor, random.seed, random.spread);
        });
    }

    Device& device_;
    MemoryPool& memory_;
    Uploader& uploader_;
    const Checkpoint& checkpoint_;
    KernelLibrary* kernels_;
};

} // namespace

uint64_t Linear::bytes() const {
    uint64_t total = 0;
    for (const Tensor& part : parts) total += part.bytes();
    return total;
}

uint64_t LlamaWeights::bytes_per_pass() const {
    uint64_t total = head().bytes() + uint64_t(padded_width(config.hidden_size)) * 4;
    for (const LlamaLayer& layer : layers)
        total += layer.qkv.bytes() + layer.output.bytes() + layer.gate_up.bytes() + layer.down.bytes() + 8ull * padded_width(config.hidden_size);
    return total;
}

uint64_t LlamaWeights::bytes() const {
    uint64_t total = embedding.bytes() + lm_head.bytes() + final_norm.size();
    for (const LlamaLayer& layer : layers)
        total += layer.attention_norm.size() + layer.qkv.bytes() + layer.output.bytes() + layer.ffn_norm.size() + layer.gate_up.bytes() + layer.down.bytes();
    return total;
}

namespace {

// The matrices of every layer; norms stay empty.
Status load_layers(Loader& load, LlamaWeights& weights) {
    const LlamaConfig& c = weights.config;
    const uint32_t d = c.hidden_size, q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
    for (uint32_t i = 0; i < c.n_layers; ++i) {
        const std::string prefix = layer_prefix(i);
        LlamaLayer layer;
        AUSPEX_TRY_SET(layer.qkv, load.linear({{prefix + "self_attn.q_proj.weight", q, c.head_dim},
                                               {prefix + "self_attn.k_proj.weight", kv, c.head_dim},
                                               {prefix + "self_attn.v_proj.weight", kv}},
                                              d));
        AUSPEX_TRY_SET(layer.output, load.linear({{prefix + "self_attn.o_proj.weight", d}}, q));
        AUSPEX_TRY_SET(layer.gate_up, load.linear({{prefix + "mlp.gate_proj.weight", c.ffn_size}, {prefix + "mlp.up_proj.weight", c.ffn_size}}, d, true));
        AUSPEX_TRY_SET(layer.down, load.linear({{prefix + "mlp.down_proj.weight", d}}, c.ffn_size));
        weights.layers.push_back(std::move(layer));
    }
    return ok_status();
}

} // namespace

Result<LlamaWeights> load_llama_weights(Device& device, MemoryPool& memory, Uploader& uploader, const Checkpoint& checkpoint,
                                        KernelLibrary* kernels) {
    LlamaWeights weights;
    const LlamaConfig& c = weights.config = checkpoint.config();
    Loader load(device, memory, uploader, checkpoint, kernels);
    AUSPEX_TRY_SET(weights.embedding, load.matrix(kEmbeddingRole.huggingface, c.vocab_size, c.hidden_size));
    AUSPEX_TRY(load_layers(load, weights));
    for (uint32_t i = 0; i < c.n_layers; ++i) {
        AUSPEX_TRY_SET(weights.layers[i].attention_norm, load.vector(layer_prefix(i) + "input_layernorm.weight", c.hidden_size));
        AUSPEX_TRY_SET(weights.layers[i].ffn_norm, load.vector(layer_prefix(i) + "post_attention_layernorm.weight", c.hidden_size));
    }
    AUSPEX_TRY_SET(weights.final_norm, load.vector(kNormRole.huggingface, c.hidden_size));
    if (!c.tied_embedding) AUSPEX_TRY_SET(weights.lm_head, load.matrix(kHeadRole.huggingface, c.vocab_size, c.hidden_size));
    return weights;
}

Result<LlamaWeights> load_llama_matrices(Device& device, MemoryPool& memory, Uploader& uploader, const Checkpoint& checkpoint,
                                         KernelLibrary* kernels) {
    LlamaWeights weights;
    const LlamaConfig& c = weights.config = checkpoint.config();
    Loader load(device, memory, uploader, checkpoint, kernels);
    AUSPEX_TRY(load_layers(load, weights));
    AUSPEX_TRY_SET(weights.lm_head, load.matrix((c.tied_embedding ? kEmbeddingRole : kHeadRole).huggingface, c.vocab_size, c.hidden_size));
    weights.config.tied_embedding = false;
    return weights;
}

} // namespace auspex
