// Opens, compares and trims.
#include "session/models/open_models.h"

#include "model/checkpoint/tensor_roles.h"
#include "tensor/device_format.h"

#include <algorithm>
#include <array>
#include <map>

namespace auspex {

namespace {

class TrimmedCheckpoint : public Checkpoint {
  public:
    TrimmedCheckpoint(std::unique_ptr<Checkpoint> source, uint32_t vocab_size) : source_(std::move(source)), config_(source_->config()) {
        config_.vocab_size = vocab_size;
        for (const char* name : {kEmbeddingRole.huggingface, kHeadRole.huggingface}) {
            const TensorInfo* whole = source_->find(name);
            // Another shape is the loader's to complain of.
            if (!whole || whole->shape.size() != 2 || whole->shape[0] != source_->config().vocab_size) continue;
            TensorInfo info = *whole;
            info.bytes = info.bytes / info.shape[0] * vocab_size;
            info.shape[0] = vocab_size;
            trimmed_.emplace(name, std::move(info));
        }
    }

    const LlamaConfig& config() const override { return config_; }
    const std::string& name() const override { return source_->name(); }
    const TensorInfo* find(std::string_view tensor_name) const override {
        const auto found = trimmed_.find(tensor_name);
        return found != trimmed_.end() ? &found->second : source_->find(tensor_name);
    }
    Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
        const TensorInfo* whole = source_->find(tensor.name);
        if (!whole) return {Code::internal, name() + ": read of a tensor that is not there: " + in_quotes(tensor.name)};
        return source_->read(*whole, offset, out); // the first rows are the first bytes
    }
    std::optional<RandomMatrix> made_on_device(const TensorInfo& tensor) const override {
        const TensorInfo* whole = source_->find(tensor.name);
        return whole ? source_->made_on_device(*whole) : std::nullopt;
    }
    void release(const TensorInfo& tensor) const override {
        if (const TensorInfo* whole = source_->find(tensor.name)) source_->release(*whole);
    }

  private:
    std::unique_ptr<Checkpoint> source_;
    LlamaConfig config_;
    std::map<std::string, TensorInfo, std::less<>> trimmed_;
};

Result<std::unique_ptr<Checkpoint>> open_one(const ModelSource& source) {
    if (source.synthetic && source.synthetic->on_device && source.type) { // made in that type; there is nothing to convert
        SyntheticModel model = *source.synthetic;
        model.dtype = *source.type;
        return make_synthetic_checkpoint(model);
    }
    AUSPEX_TRY_ASSIGN(opened, source.synthetic ? make_synthetic_checkpoint(*source.synthetic) : open_checkpoint(source.path));
    if (!source.type) return opened;
    return quantize_checkpoint(std::move(opened), *source.type);
}

// Tokens without a row can be neither said nor read. Control words that were added to the vocabulary and never to the model
// do no harm (Llama 2's "<pad>"), unless they are what an answer ends with.
Status check_rows(const Checkpoint& model, const Tokenizer& tokenizer) {
    const std::vector<uint32_t>& ends = tokenizer.end_ids();
    for (uint32_t id = model.config().vocab_size; id < tokenizer.vocab_size(); ++id)
        if (!tokenizer.piece(id).empty() || std::binary_search(ends.begin(), ends.end(), id))
            return {Code::mismatch, model.name() + ": found a vocabulary of " + std::to_string(tokenizer.vocab_size()) + " tokens (" + std::to_string(id) + " is " +
                                        in_quotes(tokenizer.spelling(id)) + "), expected at most the " + std::to_string(model.config().vocab_size) +
                                        " rows (vocab_size) of the model"};
    return ok_status();
}

// Without the token that it names an answer would never end, and nobody would know why.
Status check_named_ids(const Checkpoint& model, const Tokenizer& tokenizer) {
    const auto check = [&](const char* key, uint32_t id) -> Status {
        if (id < tokenizer.vocab_size() && !(tokenizer.piece(id).empty() && tokenizer.spelling(id).empty())) return ok_status();
        return {Code::bad_file, model.name() + ": found " + key + " " + std::to_string(id) + " in config.json or generation_config.json, expected the id of a token: " +
                                    "the vocabulary knows 0 to " + std::to_string(tokenizer.vocab_size() - 1) +
                                    "; added_tokens.json or tokenizer_config.json, which would name it, is missing or incomplete"};
    };
    for (uint32_t id : model.config().eos_ids) AUSPEX_TRY(check("eos_token_id", id));
    const uint32_t bos = model.config().bos_id;
    return bos == LlamaConfig().bos_id ? ok_status() : check("bos_token_id", bos); // the default nobody need have said
}

std::optional<DType> type_of(SelfDraft self) {
    switch (self) {
    case SelfDraft::q4_0: return DType::q4_0;
    case SelfDraft::q4_k: return DType::q4_k;
    case SelfDraft::q8_0: return DType::q8_0;
    case SelfDraft::none:
    case SelfDraft::as_is: break;
    }
    return std::nullopt;
}

// From the target's own files, whatever the target itself is converted to.
Result<std::unique_ptr<Checkpoint>> open_self_draft(const ModelSource& target, SelfDraft self, const Checkpoint& opened) {
    ModelSource source = target;
    if (const auto type = type_of(self)) source.type = type;
    AUSPEX_TRY_ASSIGN(draft, open_one(source));
    draft = trim_vocabulary(std::move(draft), opened.config().vocab_size);
    const uint64_t whole = summarize_weights(opened).pass_matrix_bytes, copy = summarize_weights(*draft).pass_matrix_bytes;
    if (self != SelfDraft::as_is && copy > whole / 4 * 3)
        return Status(Code::invalid_argument, opened.name() + ": self_draft_weights as " + std::string(dtype_name(*source.type)) + " would take " + std::to_string(copy) +
                                                  " bytes where the target's matrices take " + std::to_string(whole) + ", expected to save at least a quarter");
    return draft;
}

} // namespace

std::unique_ptr<Checkpoint> trim_vocabulary(std::unique_ptr<Checkpoint> source, uint32_t vocab_size) {
    if (vocab_size >= source->config().vocab_size) return source;
    return std::make_unique<TrimmedCheckpoint>(std::move(source), vocab_size);
}

Result<OpenedModels> open_models(const ModelSource& target, const ModelSource& draft, SelfDraft self) {
    OpenedModels models;
    if (!target.named()) return Status(Code::invalid_argument, "target_path is not set; expected a GGUF file or a model folder");
    if (self != SelfDraft::none && draft.named()) return Status(Code::invalid_argument, "a draft model and self_draft_weights were both given, expected one of them");
    AUSPEX_TRY_SET(models.target, open_one(target));
    models.end_ids = models.target->config().eos_ids;
    if (draft.named()) AUSPEX_TRY_SET(models.draft, open_one(draft));
    uint32_t n_tokens = models.target->config().vocab_size;
    if (!target.synthetic) {
        AUSPEX_TRY_SET(models.tokenizer, open_tokenizer(target.path));
        AUSPEX_TRY(check_rows(*models.target, *models.tokenizer));
        AUSPEX_TRY(check_named_ids(*models.target, *models.tokenizer));
        n_tokens = std::min(n_tokens, models.tokenizer->vocab_size());
        const std::vector<uint32_t>& ends = models.tokenizer->end_ids();
        models.end_ids.insert(models.end_ids.end(), ends.begin(), ends.end());
    }
    if (models.draft) {
        uint32_t n_shared = n_tokens;
        if (models.tokenizer && !draft.synthetic) {
            AUSPEX_TRY_ASSIGN(tokenizer, open_tokenizer(draft.path));
            AUSPEX_TRY(check_same_vocabulary(*models.tokenizer, target.path, *tokenizer, draft.path));
            AUSPEX_TRY(check_rows(*models.draft, *tokenizer));
            n_shared = std::min(n_tokens, tokenizer->vocab_size());
        }
        models.draft = trim_vocabulary(std::move(models.draft), n_shared);
    }
    models.target = trim_vocabulary(std::move(models.target), n_tokens);
    if (self != SelfDraft::none) AUSPEX_TRY_SET(models.draft, open_self_draft(target, self, *models.target));
    std::sort(models.end_ids.begin(), models.end_ids.end());
    models.end_ids.erase(std::unique(models.end_ids.begin(), models.end_ids.end()), models.end_ids.end());
    std::erase_if(models.end_ids, [&](uint32_t id) { return id >= n_tokens; }); // never sampled
    return models;
}

WeightSummary summarize_weights(const Checkpoint& checkpoint) {
    std::array<uint64_t, std::size(kDtypeInfos)> by_type = {};
    WeightSummary summary;
    auto add = [&](std::string_view name) {
        const TensorInfo* tensor = checkpoint.find(name);
        if (!tensor || tensor->shape.empty()) return;
        if (tensor->shape.size() == 1) {
            summary.device_bytes += tensor->shape[0] * 4; // norms become f32
            return;
        }
        const uint64_t bytes = tensor->shape[0] * device_row_bytes(tensor->dtype, static_cast<uint32_t>(tensor->shape[1]));
        by_type[static_cast<uint32_t>(tensor->dtype)] += bytes;
        summary.device_bytes += bytes;
        summary.pass_matrix_bytes += bytes;
    };
    add(kEmbeddingRole.huggingface);
    if (!checkpoint.config().tied_embedding) {
        summary.pass_matrix_bytes = 0;
        add(kHeadRole.huggingface);
    }
    add(kNormRole.huggingface);
    for (uint32_t i = 0; i < checkpoint.config().n_layers; ++i)
        for (const TensorRole& role : kLayerRoles) add(huggingface_name(role, i));
    summary.matrix_type = static_cast<DType>(std::max_element(by_type.begin(), by_type.end()) - by_type.begin());
    return summary;
}

} // namespace auspex
