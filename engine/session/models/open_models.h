// A target, its draft and their vocabulary, opened and held against each other. Leaves weights where they are.
#pragma once

#include "model/checkpoint/checkpoint.h"
#include "tokens/tokenizer.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace auspex {

struct ModelSource {
    std::string path; // a GGUF file or a Hugging Face folder
    std::optional<SyntheticModel> synthetic; // instead of the path
    std::optional<DType> type; // of matrices; none: as they are
    bool named() const { return synthetic.has_value() || !path.empty(); }
};

// Matrices of the target in another precision, which draft for it. as_is: in the target's own, for tests.
enum class SelfDraft { none, as_is, q4_0, q4_k, q8_0 };

struct OpenedModels {
    std::unique_ptr<Checkpoint> target, draft; // draft: null when none was named, and no self-draft was asked for
    std::unique_ptr<Tokenizer> tokenizer;      // the target's; null for synthetic targets
    std::vector<uint32_t> end_ids;             // ascending, of the target's files and vocabulary
};

// The target comes back with the rows of its own vocabulary, the draft with those that both know. Embeddings often have more rows
// (padding); those are not loaded, so no such id can ever be drafted, accepted or sampled. Ids that only the target knows it says
// alone. mismatch: an id means different tokens to the two, or a model has fewer rows than its vocabulary.
// With a self-draft, which excludes a draft model, `draft` is the target again; invalid_argument: it saves less than a quarter of the bytes.
Result<OpenedModels> open_models(const ModelSource& target, const ModelSource& draft, SelfDraft self = SelfDraft::none);

// The same model with the first `vocab_size` rows of embedding and head only; at most what it has.
std::unique_ptr<Checkpoint> trim_vocabulary(std::unique_ptr<Checkpoint> source, uint32_t vocab_size);

// What load_llama_weights uploads; tensors that are absent count nothing.
struct WeightSummary {
    uint64_t device_bytes = 0;
    uint64_t pass_matrix_bytes = 0; // of these what a pass multiplies with: no norms, and the embedding table only where it is the head
    DType matrix_type = DType::f32; // that most bytes have
};
WeightSummary summarize_weights(const Checkpoint& checkpoint);

} // namespace auspex
