// Where weights come from: named tensors whose bytes can be read in pieces. Readers check everything the file claims
// before the first byte is used; who uploads decides when and how much to read.
#pragma once

#include "base/status.h"
#include "model/llama_config.h"
#include "tensor/dtype.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace auspex {

struct TensorInfo {
    std::string name;            // Hugging Face name, e.g. "model.layers.0.mlp.down_proj.weight"
    DType dtype = DType::f32;    // u32 never; quantised types only for matrices whose rows are whole blocks
    std::vector<uint64_t> shape; // slowest dimension first
    uint64_t bytes = 0;          // rows × file_row_bytes, overflow-checked
};

// A matrix whose elements nobody reads: the loader makes them on the device (kernels/random_fill).
struct RandomMatrix {
    uint64_t seed; // of this tensor
    float spread;  // standard deviation
};

class Checkpoint {
  public:
    virtual ~Checkpoint() = default;
    virtual const LlamaConfig& config() const = 0;
    virtual const std::string& name() const = 0;                            // folder or description, for messages
    virtual const TensorInfo* find(std::string_view tensor_name) const = 0; // null when absent
    // Copies bytes [offset, offset + out.size()) of a tensor, rows in Hugging Face's order (q and k rotate halves); the
    // range lies inside it.
    virtual Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const = 0;
    // Not none: the tensor cannot be read, the device makes it.
    virtual std::optional<RandomMatrix> made_on_device(const TensorInfo&) const { return std::nullopt; }
    // The tensor was read and is not needed soon; reading it again is allowed.
    virtual void release(const TensorInfo&) const {}
};

// A model by its path: a GGUF file (of a sharded one the first file), or a Hugging Face folder.
Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path);

// GGUF v3 of architecture "llama"; shards "-00001-of-0000N.gguf" are found beside the first.
Result<std::unique_ptr<Checkpoint>> open_gguf_checkpoint(const std::string& path);

// `folder` holds config.json and model.safetensors, or shards with model.safetensors.index.json.
Result<std::unique_ptr<Checkpoint>> open_huggingface_checkpoint(const std::string& folder);

// `wanted`, or what a row of so many elements takes where it is not whole blocks of it.
DType fitting_type(DType wanted, uint64_t cols);

// The same model with its matrices in another type, converted as they are read; rows that are not whole blocks take
// q4_0, q8_0 or f16 instead. unsupported: a type that cannot be written (see can_quantize_to).
Result<std::unique_ptr<Checkpoint>> quantize_checkpoint(std::unique_ptr<Checkpoint> source, DType type);

// Random weights of a given shape, made as they are read and a pure function of (seed, tensor name, element index).
// `scale` is the standard deviation of matrix elements (norm weights are 1 plus a tenth of that). dtype: f16 or bf16 or
// f32. untied models get "lm_head.weight". distinct_tokens, unless 0: token i's rows of embedding and head are those of
// token i % distinct_tokens, so that logits tie exactly.
struct SyntheticModel {
    LlamaConfig config;
    DType dtype = DType::f16;
    uint64_t seed = 1;
    float scale = 0.02f;
    uint32_t distinct_tokens = 0; // ≤ vocab_size
    // Matrices are made on the device, in any dtype (rows that are not whole blocks: fitting_type): nothing is computed or
    // sent by the host, however large the model. Their elements are others than those of the same seed otherwise, and cannot
    // be read. distinct_tokens is 0 then.
    bool on_device = false;
};
Result<std::unique_ptr<Checkpoint>> make_synthetic_checkpoint(const SyntheticModel& model);

} // namespace auspex
