// Random weights of a given shape, for measuring and testing shapes without a file. Fast enough to be made while they
// are uploaded: one hash per four elements, each 16 bits of it choosing from a table of normal quantiles.
#include "base/catching.h"
#include "model/checkpoint/checkpoint.h"
#include "tensor/half.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

namespace auspex {
namespace {

constexpr uint32_t kTableBits = 12;
constexpr uint32_t kTableSize = 1u << kTableBits; // 8 KiB in 16 bits: stays in the first-level cache
constexpr uint64_t kBlock = 4;                     // elements per hash

// The i-th of kTableSize equally likely values: the standard normal quantile at (i + 0.5) / kTableSize. Symmetric, so
// the mean is exactly 0; the variance is 0.9997.
std::array<double, kTableSize> normal_quantiles() {
    std::array<double, kTableSize> table{};
    for (uint32_t i = 0; i < kTableSize / 2; ++i) {
        const double p = (i + 0.5) / kTableSize; // lower half: x < 0
        double low = -8.0, high = 0.0;
        for (int step = 0; step < 44; ++step) { // down to 1e-12
            const double x = 0.5 * (low + high);
            (0.5 * std::erfc(-x * std::sqrt(0.5)) < p ? low : high) = x;
        }
        table[i] = low;
        table[kTableSize - 1 - i] = -low;
    }
    return table;
}

// splitmix64's finaliser (Steele, Lea, Flood 2014): a bijection that scatters neighbouring counters.
uint64_t scatter(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t name_key(uint64_t seed, std::string_view name) {
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (char c : name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return scatter(hash ^ scatter(seed));
}

template <typename Element> struct Tables {
    std::array<Element, kTableSize> matrix; // scale × z
    std::array<Element, kTableSize> norm;   // 1 + scale/10 × z
};

template <typename Element>
void make_block(const std::array<Element, kTableSize>& table, uint64_t key, uint64_t index, Element out[kBlock]) {
    const uint64_t hash = scatter(key + index);
    for (uint32_t i = 0; i < kBlock; ++i)
        out[i] = table[hash >> (16 * i) & (kTableSize - 1)];
}

// Bytes [offset, offset + out.size()) of the endless tensor `key`; offset may cut an element in two.
template <typename Element>
void make_bytes(const std::array<Element, kTableSize>& table, uint64_t key, uint64_t offset, std::span<std::byte> out) {
    Element elements[kBlock];
    uint64_t index = offset / sizeof elements;
    size_t skip = offset % sizeof elements;
    while (!out.empty()) {
        make_block(table, key, index++, elements);
        const size_t n = std::min(out.size(), sizeof elements - skip);
        if (n == sizeof elements) {
            std::memcpy(out.data(), elements, sizeof elements); // the constant size makes this one store
        } else {
            std::memcpy(out.data(), reinterpret_cast<const std::byte*>(elements) + skip, n);
        }
        out = out.subspan(n);
        skip = 0;
    }
}

class SyntheticCheckpoint : public Checkpoint {
  public:
    explicit SyntheticCheckpoint(const SyntheticModel& model)
        : model_(model), name_("synthetic d=" + std::to_string(model.config.hidden_size) +
                               ",layers=" + std::to_string(model.config.n_layers)) {
        table_dtype_ = is_quantized(model.dtype) ? DType::f16 : model.dtype;
        make_tables();
        list_tensors();
    }

    const LlamaConfig& config() const override { return model_.config; }
    const std::string& name() const override { return name_; }

    const TensorInfo* find(std::string_view tensor_name) const override {
        const auto it =
            std::lower_bound(tensors_.begin(), tensors_.end(), tensor_name,
                             [](const TensorInfo& tensor, std::string_view key) { return tensor.name < key; });
        return it == tensors_.end() || it->name != tensor_name ? nullptr : &*it;
    }

    Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
        if (offset > tensor.bytes || out.size() > tensor.bytes - offset)
            return {Code::internal, name_ + ": read outside of tensor " + in_quotes(tensor.name)};
        if (made_on_device(tensor))
            return {Code::internal, name_ + ": tensor " + in_quotes(tensor.name) + " is made on the device and cannot be read"};
        const uint64_t distinct_rows = has_token_rows(tensor) ? model_.distinct_tokens : 0;
        if (distinct_rows == 0) {
            make(tensor, offset, out);
            return ok_status();
        }
        const uint64_t period = tensor.bytes / tensor.shape[0] * distinct_rows;
        while (!out.empty()) {
            const uint64_t within = offset % period;
            const auto n = static_cast<size_t>(std::min<uint64_t>(out.size(), period - within));
            make(tensor, within, out.first(n));
            out = out.subspan(n);
            offset += n;
        }
        return ok_status();
    }

    std::optional<RandomMatrix> made_on_device(const TensorInfo& tensor) const override {
        if (!model_.on_device || tensor.shape.size() != 2) return std::nullopt;
        return RandomMatrix{name_key(model_.seed, tensor.name), model_.scale};
    }

  private:
    static bool has_token_rows(const TensorInfo& tensor) {
        return tensor.name == "model.embed_tokens.weight" || tensor.name == "lm_head.weight";
    }

    void make(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
        const uint64_t key = name_key(model_.seed, tensor.name);
        const bool norm = tensor.shape.size() == 1;
        if (table_dtype_ == DType::f32) {
            make_bytes(norm ? wide_->norm : wide_->matrix, key, offset, out);
        } else {
            make_bytes(norm ? narrow_->norm : narrow_->matrix, key, offset, out);
        }
    }

    void make_tables() {
        const auto quantiles = normal_quantiles();
        (table_dtype_ == DType::f32 ? void(wide_ = std::make_unique<Tables<float>>())
                                    : void(narrow_ = std::make_unique<Tables<uint16_t>>()));
        for (uint32_t i = 0; i < kTableSize; ++i) {
            const auto matrix = static_cast<float>(model_.scale * quantiles[i]);
            const auto norm = static_cast<float>(1.0 + 0.1 * model_.scale * quantiles[i]);
            if (table_dtype_ == DType::f32) {
                wide_->matrix[i] = matrix;
                wide_->norm[i] = norm;
            } else {
                const auto round = table_dtype_ == DType::f16 ? float_to_half : float_to_bfloat;
                narrow_->matrix[i] = round(matrix);
                narrow_->norm[i] = round(norm);
            }
        }
    }

    void add(std::string name, std::vector<uint64_t> shape) {
        const uint64_t cols = shape.back();
        const DType dtype = shape.size() == 1 ? table_dtype_ : fitting_type(model_.dtype, cols);
        // At most 2^20 rows of 2^18 × 4 bytes by the config's ranges.
        const uint64_t bytes = (shape.size() == 1 ? 1 : shape[0]) * file_row_bytes(dtype, cols);
        tensors_.push_back({std::move(name), dtype, std::move(shape), bytes});
    }

    void list_tensors() {
        const LlamaConfig& c = model_.config;
        const uint64_t d = c.hidden_size, q = uint64_t{c.n_heads} * c.head_dim,
                       kv = uint64_t{c.n_kv_heads} * c.head_dim;
        add("model.embed_tokens.weight", {c.vocab_size, d});
        for (uint32_t i = 0; i < c.n_layers; ++i) {
            const std::string layer = "model.layers." + std::to_string(i) + ".";
            add(layer + "input_layernorm.weight", {d});
            add(layer + "self_attn.q_proj.weight", {q, d});
            add(layer + "self_attn.k_proj.weight", {kv, d});
            add(layer + "self_attn.v_proj.weight", {kv, d});
            add(layer + "self_attn.o_proj.weight", {d, q});
            add(layer + "post_attention_layernorm.weight", {d});
            add(layer + "mlp.gate_proj.weight", {c.ffn_size, d});
            add(layer + "mlp.up_proj.weight", {c.ffn_size, d});
            add(layer + "mlp.down_proj.weight", {d, c.ffn_size});
        }
        add("model.norm.weight", {d});
        if (!c.tied_embedding) add("lm_head.weight", {c.vocab_size, d});
        std::sort(tensors_.begin(), tensors_.end(),
                  [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
    }

    SyntheticModel model_;
    std::string name_;
    DType table_dtype_ = DType::f32;           // of what is read
    std::vector<TensorInfo> tensors_;          // sorted by name
    std::unique_ptr<Tables<float>> wide_;      // f32
    std::unique_ptr<Tables<uint16_t>> narrow_; // f16 or bf16
};

} // namespace

Result<std::unique_ptr<Checkpoint>> make_synthetic_checkpoint(const SyntheticModel& model) {
    const std::string where = "synthetic model";
    const Status config = check_llama_config(model.config, where);
    if (config.code() == Code::bad_file) return Status(Code::invalid_argument, config.message()); // there is no file
    AUSPEX_TRY(config);
    if (model.on_device && (model.dtype == DType::u32 || static_cast<size_t>(model.dtype) >= std::size(kDtypeInfos)))
        return Status(Code::invalid_argument, where + ": found a dtype that no weights have");
    if (model.on_device && model.distinct_tokens > 0)
        return Status(Code::invalid_argument, where + ": found distinct tokens and weights made on the device, expected one of them");
    if (!model.on_device && model.dtype != DType::f32 && model.dtype != DType::f16 && model.dtype != DType::bf16)
        return Status(Code::invalid_argument, where + ": found dtype " + std::string(dtype_name(model.dtype)) +
                                                  ", expected f16, bf16 or f32");
    if (!(model.scale > 0.0f && model.scale <= 100.0f))
        return Status(Code::invalid_argument, where + ": found scale " + std::to_string(model.scale) +
                                                  ", expected a number above 0 and at most 100");
    if (model.distinct_tokens > model.config.vocab_size)
        return Status(Code::invalid_argument, where + ": found " + std::to_string(model.distinct_tokens) +
                                                  " distinct tokens, expected at most the vocabulary's " +
                                                  std::to_string(model.config.vocab_size));
    return catching(where, "for its list of tensors", [&]() -> Result<std::unique_ptr<Checkpoint>> {
        return std::unique_ptr<Checkpoint>(std::make_unique<SyntheticCheckpoint>(model));
    });
}

} // namespace auspex
