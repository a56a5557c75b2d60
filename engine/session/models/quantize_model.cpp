// Names, order and keys as llama.cpp's converter writes them (gguf-py/gguf/constants.py, LlamaModel of convert_hf_to_gguf.py).
#include "session/models/quantize_model.h"

#include "formats/gguf_writer.h"
#include "model/checkpoint/tensor_roles.h"
#include "session/models/open_models.h"
#include "tensor/quant_blocks.h"
#include "tokens/bpe/tokenizer_json.h"
#include "tokens/open_tokenizer.h"
#include "tokens/sentencepiece_model.h"

#include <algorithm>
#include <cmath>

namespace auspex {

namespace {

constexpr uint64_t kPieceBytes = 4u << 20; // of a tensor that is converted at a time
constexpr int32_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5; // tokenizer.ggml.token_type, as SentencePiece counts

struct OutTensor {
    std::string name;        // in the file
    const TensorInfo* from;
    uint32_t head_rows = 0;  // of q and k: their halves become adjacent pairs; 0: rows stay in order
    bool is_norm() const { return from->shape.size() == 1; }
    DType type() const { return is_norm() ? DType::f32 : from->dtype; }
    uint64_t bytes() const { return is_norm() ? from->shape[0] * 4 : from->bytes; }
};

Result<std::vector<OutTensor>> list_tensors(const Checkpoint& model) {
    const LlamaConfig& c = model.config();
    std::vector<OutTensor> list;
    auto add = [&](const std::string& to, const std::string& from, uint32_t head_rows) -> Status {
        const TensorInfo* info = model.find(from);
        if (!info) return {Code::bad_file, model.name() + ": tensor " + from + " is missing"};
        if (info->shape.size() > 2 || info->shape.empty() || (head_rows != 0 && (info->shape.size() != 2 || info->shape[0] % head_rows != 0)))
            return {Code::bad_file, model.name() + ": tensor " + from + " has another shape than the config says"};
        list.push_back({to, info, head_rows});
        return ok_status();
    };
    AUSPEX_TRY(add(kEmbeddingRole.gguf, kEmbeddingRole.huggingface, 0));
    for (uint32_t i = 0; i < c.n_layers; ++i)
        for (const TensorRole& role : kLayerRoles)
            AUSPEX_TRY(add(gguf_name(role, i), huggingface_name(role, i), role.order == RowOrder::same ? 0 : c.head_dim));
    AUSPEX_TRY(add(kNormRole.gguf, kNormRole.huggingface, 0));
    if (!c.tied_embedding) AUSPEX_TRY(add(kHeadRole.gguf, kHeadRole.huggingface, 0));
    return list;
}

// ---- keys -------------------------------------------------------------------------------------------------------------

// llama_ftype of include/llama.h.
uint32_t file_type(DType type) {
    switch (type) {
    case DType::f32: return 0;
    case DType::f16: return 1;
    case DType::q4_0: return 2;
    case DType::q4_1: return 3;
    case DType::q8_0: return 7;
    case DType::q5_0: return 8;
    case DType::q5_1: return 9;
    case DType::q2_k: return 10;
    case DType::q3_k: return 12;
    case DType::q4_k: return 15;
    case DType::q5_k: return 17;
    case DType::q6_k: return 18;
    default: return 32; // bf16
    }
}

void write_config(GgufWriter& file, const LlamaConfig& c, const std::string& name, DType type) {
    file.set_text("general.architecture", "llama");
    file.set_text("general.type", "model");
    file.set_text("general.name", name);
    file.set_u32("general.file_type", file_type(type));
    if (is_quantized(type)) file.set_u32("general.quantization_version", 2);
    file.set_u32("llama.block_count", c.n_layers);
    file.set_u32("llama.context_length", c.max_position);
    file.set_u32("llama.embedding_length", c.hidden_size);
    file.set_u32("llama.feed_forward_length", c.ffn_size);
    file.set_u32("llama.attention.head_count", c.n_heads);
    file.set_u32("llama.attention.head_count_kv", c.n_kv_heads);
    file.set_u32("llama.attention.key_length", c.head_dim);
    file.set_u32("llama.attention.value_length", c.head_dim);
    file.set_f32("llama.attention.layer_norm_rms_epsilon", c.rms_eps);
    file.set_f32("llama.rope.freq_base", c.rope_theta);
    file.set_u32("llama.rope.dimension_count", c.head_dim);
    file.set_u32("llama.vocab_size", c.vocab_size);
    if (c.rope_scaling.kind == RopeScaling::Kind::linear) {
        file.set_text("llama.rope.scaling.type", "linear");
        file.set_f32("llama.rope.scaling.factor", c.rope_scaling.factor);
    }
}

// Keys that write_config writes; the others under "general." say whose the model is and under which licence, which
// stays true of its copies.
bool is_of_the_weights(std::string_view key) {
    constexpr std::string_view keys[] = {"general.architecture", "general.type",    "general.name",
                                         "general.file_type",    "general.quantization_version"};
    return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

std::string last_name(std::string path) {
    while (path.size() > 1 && (path.back() == '/' || path.back() == '\\')) path.pop_back();
    return path.substr(path.find_last_of("/\\") + 1);
}

// rope_freqs.weight: what each frequency is divided by; empty where nothing but linear scaling is done.
std::vector<float> rope_divisors(const LlamaConfig& c) {
    if (!c.rope_divisors.empty() || c.rope_scaling.kind != RopeScaling::Kind::llama3) return c.rope_divisors;
    std::vector<float> divisors;
    const std::vector<double> scaled = rope_frequencies(c);
    for (size_t i = 0; i < scaled.size(); ++i)
        divisors.push_back(static_cast<float>(std::pow(static_cast<double>(c.rope_theta), -2.0 * static_cast<double>(i) / c.head_dim) / scaled[i]));
    return divisors;
}

// ---- vocabulary -------------------------------------------------------------------------------------------------------

struct Vocabulary {
    std::vector<std::string> tokens, merges;
    std::vector<float> scores;
    std::vector<int32_t> types;
};

void write_sentencepiece(GgufWriter& file, const SentencePieceModel& model) {
    Vocabulary out;
    uint32_t unknown = 0;
    for (const SentencePieceModel::Piece& piece : model.pieces) {
        if (piece.type == SentencePieceModel::Type::unknown) unknown = static_cast<uint32_t>(out.tokens.size());
        std::string spelling = piece.spelling;
        if (piece.type == SentencePieceModel::Type::user_defined) // written as text
            for (size_t at = 0; (at = spelling.find(kSpaceSymbol, at)) != std::string::npos;) spelling.replace(at, kSpaceSymbol.size(), " ");
        out.tokens.push_back(std::move(spelling));
        out.scores.push_back(piece.score);
        out.types.push_back(static_cast<int32_t>(piece.type));
    }
    file.set_text("tokenizer.ggml.model", "llama");
    file.set_text("tokenizer.ggml.pre", "default");
    file.set_texts("tokenizer.ggml.tokens", out.tokens);
    file.set_f32s("tokenizer.ggml.scores", out.scores);
    file.set_i32s("tokenizer.ggml.token_type", out.types);
    file.set_u32("tokenizer.ggml.unknown_token_id", unknown);
    file.set_bool("tokenizer.ggml.add_space_prefix", model.add_dummy_prefix);
}

void write_bpe(GgufWriter& file, const BpeModel& model) {
    Vocabulary out;
    for (const BpeModel::Token& token : model.tokens) {
        const bool normal = token.kind == BpeKind::normal;
        out.tokens.push_back(normal ? alphabet_spelling(token.bytes) : token.bytes);
        out.types.push_back(normal ? kNormal : token.kind == BpeKind::control ? kControl : token.kind == BpeKind::user_defined ? kUserDefined : kUnused);
    }
    std::vector<std::pair<uint32_t, std::string>> by_rank;
    for (uint32_t left = 0; left + 1 < model.merge_begin.size(); ++left)
        for (uint32_t i = model.merge_begin[left]; i < model.merge_begin[left + 1]; ++i)
            by_rank.emplace_back(model.merges[i].rank, out.tokens[left] + " " + out.tokens[model.merges[i].right]);
    std::sort(by_rank.begin(), by_rank.end());
    for (auto& [rank, merge] : by_rank) out.merges.push_back(std::move(merge));
    file.set_text("tokenizer.ggml.model", "gpt2");
    file.set_text("tokenizer.ggml.pre", "llama-bpe");
    file.set_texts("tokenizer.ggml.tokens", out.tokens);
    file.set_i32s("tokenizer.ggml.token_type", out.types);
    file.set_texts("tokenizer.ggml.merges", out.merges);
}

// The vocabulary of a Hugging Face folder, from the file that the tokenizer itself was read from.
Status write_folder_vocabulary(GgufWriter& file, const std::string& folder, const Tokenizer& tokenizer, const LlamaConfig& config) {
    const bool sentencepiece = tokenizer.has_dummy_prefix() || !path_exists(folder + "/tokenizer.json");
    AUSPEX_TRY_ASSIGN(settings, read_tokenizer_settings(folder));
    if (sentencepiece) {
        AUSPEX_TRY_ASSIGN(model, read_sentencepiece_model(folder, settings));
        write_sentencepiece(file, model);
    } else {
        AUSPEX_TRY_ASSIGN(parsed, read_tokenizer_json(folder, settings));
        write_bpe(file, parsed.model);
    }
    std::optional<uint32_t> eos = tokenizer.control_token(settings.eos_spelling);
    if (!eos && !config.eos_ids.empty()) eos = config.eos_ids.front();
    if (tokenizer.add_bos() || tokenizer.bos_id() != 0) file.set_u32("tokenizer.ggml.bos_token_id", tokenizer.bos_id());
    if (eos) file.set_u32("tokenizer.ggml.eos_token_id", *eos);
    file.set_bool("tokenizer.ggml.add_bos_token", tokenizer.add_bos());
    file.set_bool("tokenizer.ggml.add_eos_token", false);
    if (!tokenizer.chat_template().empty()) file.set_text("tokenizer.chat_template", tokenizer.chat_template());
    return ok_status();
}

// ---- tensors ----------------------------------------------------------------------------------------------------------

// The model's row that stands at `row` of the file: heads rotate halves here and adjacent pairs there.
uint64_t source_row(uint64_t row, uint32_t head_rows) {
    if (head_rows == 0) return row;
    const uint64_t in_head = row % head_rows;
    return row - in_head + in_head % 2 * (head_rows / 2) + in_head / 2;
}

Status write_tensor(GgufWriter& file, const Checkpoint& model, const OutTensor& tensor, const std::function<void(uint64_t)>& wrote) {
    std::vector<std::byte> piece;
    if (tensor.is_norm()) {
        piece.resize(tensor.from->bytes);
        AUSPEX_TRY(model.read(*tensor.from, 0, piece));
        std::vector<float> values(tensor.from->shape[0]);
        dequantize_blocks(tensor.from->dtype, piece, values);
        wrote(values.size() * 4);
        return file.write(std::as_bytes(std::span(values)));
    }
    const uint64_t rows = tensor.from->shape[0], row_bytes = tensor.from->bytes / rows;
    const uint64_t step = std::max<uint64_t>(1, kPieceBytes / std::max<uint64_t>(1, row_bytes));
    for (uint64_t first = 0; first < rows; first += step) {
        const uint64_t n = std::min(step, rows - first);
        piece.resize(n * row_bytes);
        if (tensor.head_rows == 0) AUSPEX_TRY(model.read(*tensor.from, first * row_bytes, piece));
        else
            for (uint64_t i = 0; i < n; ++i)
                AUSPEX_TRY(model.read(*tensor.from, source_row(first + i, tensor.head_rows) * row_bytes, std::span(piece).subspan(i * row_bytes, row_bytes)));
        AUSPEX_TRY(file.write(piece));
        wrote(piece.size());
    }
    return ok_status();
}

} // namespace

Status quantize_model(const std::string& path, const std::string& gguf_path, std::optional<DType> type,
                      const std::function<void(float)>& progress, const Logger& log) {
    AUSPEX_TRY_ASSIGN(opened, open_models({.path = path, .synthetic = {}, .type = type}, {}));
    const Checkpoint& model = *opened.target;
    const LlamaConfig& config = model.config();
    AUSPEX_TRY_ASSIGN(tensors, list_tensors(model));
    GgufWriter file(gguf_path);
    const DType main_type = summarize_weights(model).matrix_type;
    if (path_exists(path + "/config.json")) {
        write_config(file, config, last_name(path), main_type);
        AUSPEX_TRY(write_folder_vocabulary(file, path, *opened.tokenizer, config));
    } else { // everything that the file says of its vocabulary and of its origin
        AUSPEX_TRY_ASSIGN(source, GgufFile::open(path));
        const auto name = source.contents().text_value("general.name");
        write_config(file, config, name ? std::string(*name) : last_name(path), main_type);
        for (const GgufContents::Entry& entry : source.contents().entries)
            if (entry.key.starts_with("tokenizer.") || (entry.key.starts_with("general.") && !is_of_the_weights(entry.key)))
                file.copy(entry);
    }
    const std::vector<float> divisors = rope_divisors(config);
    uint64_t total = 0, done = 0;
    for (const OutTensor& tensor : tensors) {
        file.add_tensor(tensor.name, static_cast<uint32_t>(dtype_info(tensor.type()).ggml_id), tensor.from->shape, tensor.bytes());
        total += tensor.bytes();
    }
    const uint64_t n_divisors = divisors.size();
    if (n_divisors > 0) file.add_tensor("rope_freqs.weight", static_cast<uint32_t>(dtype_info(DType::f32).ggml_id), std::span(&n_divisors, 1), n_divisors * 4);
    AUSPEX_TRY(file.begin());
    for (const OutTensor& tensor : tensors) {
        AUSPEX_TRY(write_tensor(file, model, tensor, [&](uint64_t bytes) {
            done += bytes;
            if (progress) progress(static_cast<float>(static_cast<double>(done) / static_cast<double>(total)));
        }));
        model.release(*tensor.from);
    }
    if (n_divisors > 0) AUSPEX_TRY(file.write(std::as_bytes(std::span(divisors))));
    AUSPEX_TRY(file.finish([&](const std::string& written) -> Status {
        const auto again = open_models({.path = written, .synthetic = {}, .type = {}}, {});
        if (again.ok()) return ok_status();
        return {again.status().code(), gguf_path + ": not written, as it could not be read again: " + again.status().message()};
    }));
    log(LogLevel::info, gguf_path + ": " + std::to_string(tensors.size()) + " tensors in " + std::to_string(file.file_bytes()) + " bytes");
    return ok_status();
}

} // namespace auspex
