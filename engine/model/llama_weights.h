// A Llama checkpoint on the device: every shape checked against the config, q/k/v and gate/up joined so that one
// mat-vec reads them, weights kept in the types of the file, which may differ from tensor to tensor.
#pragma once

#include "kernels/kernel_library.h"
#include "model/checkpoint/checkpoint.h"
#include "tensor/upload.h"

namespace auspex {

// Matrices stacked by rows that share their input; neighbours of one type are one tensor, so that one dispatch reads them.
struct Linear {
    std::vector<Tensor> parts;

    uint64_t bytes() const;
};

// Norms: (padded d) f32, zero beyond d.
struct LlamaLayer {
    Buffer attention_norm;
    Linear qkv;    // ((n_heads + 2 · n_kv_heads) · head_dim, d): q, k, v; in a head of q and k the two elements that
                   // rotate together are neighbours, not half a head apart as in the file
    Linear output; // (d, n_heads · head_dim)
    Buffer ffn_norm;
    Linear gate_up; // (2 · ffn, d): gate and up rows in turn when they have one type, else gate, up
    Linear down;    // (d, ffn)

    bool gate_up_in_pairs() const { return gate_up.parts.size() == 1; }
};

struct LlamaWeights {
    LlamaConfig config;
    Tensor embedding; // (vocab, d)
    std::vector<LlamaLayer> layers;
    Buffer final_norm; // (padded d) f32
    Tensor lm_head;    // (vocab, d); empty when tied

    const Tensor& head() const { return config.tied_embedding ? embedding : lm_head; }
    uint64_t bytes() const;          // on the device
    uint64_t bytes_per_pass() const; // read by one pass of one row: everything but the embedding gather
};

// kernels: make what the checkpoint wants made on the device; null: such a checkpoint is refused.
Result<LlamaWeights> load_llama_weights(Device& device, MemoryPool& memory, Uploader& uploader, const Checkpoint& checkpoint,
                                        KernelLibrary* kernels = nullptr);

// The matrices that a pass multiplies with, of the same model in another precision, as a rule: no norms, no embedding table, and a head
// of their own where the model's is the embedding table.
Result<LlamaWeights> load_llama_matrices(Device& device, MemoryPool& memory, Uploader& uploader, const Checkpoint& checkpoint,
                                         KernelLibrary* kernels = nullptr);

} // namespace auspex
