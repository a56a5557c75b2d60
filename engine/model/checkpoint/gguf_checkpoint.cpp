// GGUF files as a checkpoint: every tensor of a Llama found, checked for shape, type and place, and read in place under
// its Hugging Face name. The bytes of blocks stay as they are; decoding them is tensor/'s business.
#include "base/catching.h"
#include "base/checked.h"
#include "formats/gguf.h"
#include "model/checkpoint/mapped_checkpoint.h"
#include "model/checkpoint/tensor_roles.h"

#include <algorithm>
#include <cstring>

namespace auspex {
namespace {

uint64_t size_of(const LlamaConfig& c, Dim dim) {
    switch (dim) {
    case Dim::hidden:
        return c.hidden_size;
    case Dim::query:
        return uint64_t{c.n_heads} * c.head_dim;
    case Dim::key_value:
        return uint64_t{c.n_kv_heads} * c.head_dim;
    case Dim::ffn:
        return c.ffn_size;
    case Dim::vocab:
        return c.vocab_size;
    case Dim::half_head:
        return c.head_dim / 2;
    default:
        return 1;
    }
}

// Names of the types that Auspex does not read, for messages.
struct UnreadType {
    uint32_t id;
    const char* name;
};
constexpr UnreadType kUnreadTypes[] = {
    {9, "Q8_1"},    {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},   {35, "TQ2_0"},
    {39, "MXFP4"},  {40, "NVFP4"}, {41, "Q1_0"},    {42, "Q2_0"},
};

std::string type_text(uint32_t id) {
    for (const UnreadType& type : kUnreadTypes)
        if (type.id == id) return std::string(type.name) + " (" + std::to_string(id) + ")";
    return "number " + std::to_string(id);
}

std::optional<DType> dtype_of(uint32_t ggml_id) {
    for (uint32_t i = 0; i < std::size(kDtypeInfos); ++i)
        if (kDtypeInfos[i].ggml_id >= 0 && static_cast<uint32_t>(kDtypeInfos[i].ggml_id) == ggml_id)
            return static_cast<DType>(i);
    return std::nullopt;
}

std::string shape_text(const std::vector<uint64_t>& shape) {
    std::string text = "(";
    for (uint64_t dim : shape)
        text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
    return text + ")";
}

// ---- shards ---------------------------------------------------------------------------------------------------------

// "-00002-of-00004.gguf", as gguf-split names them; numbers count from 1.
std::string shard_ending(uint64_t number, uint64_t count) {
    const auto digits = [](uint64_t n) {
        const std::string text = std::to_string(n);
        return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
    };
    return "-" + digits(number) + "-of-" + digits(count) + ".gguf";
}

// split.no (from 0) and split.count of one file; 0 of 1 where it has no such keys.
struct Split {
    uint64_t number = 0, count = 1;
};
Result<Split> read_split(const GgufFile& file) {
    const GgufContents& contents = file.contents();
    if (!contents.find("split.count")) return Split{};
    const auto number = contents.unsigned_value("split.no"), count = contents.unsigned_value("split.count");
    if (!count || *count > kMaxShards)
        return Status(Code::bad_file, file.path() + ": found a split.count that is no integer up to " +
                                          std::to_string(kMaxShards) +
                                          ", expected the number of shards; split the model again");
    if (*count <= 1) return Split{};
    if (!number || *number >= *count)
        return Status(Code::bad_file, file.path() + ": found no split.no below split.count " + std::to_string(*count) +
                                          ", expected the number of this shard; split the model again");
    return Split{*number, *count};
}

// The file at `path` and, if it is the first of several, the others, which lie beside it.
Result<std::vector<GgufFile>> open_shards(const std::string& path) {
    AUSPEX_TRY_ASSIGN(first, GgufFile::open(path));
    AUSPEX_TRY_ASSIGN(split, read_split(first));
    std::vector<GgufFile> files;
    files.push_back(std::move(first));
    if (split.count == 1) return files;
    const std::string ending = shard_ending(split.number + 1, split.count);
    const std::string shard = "shard " + std::to_string(split.number + 1) + " of " + std::to_string(split.count);
    if (!path.ends_with(ending))
        return Status(Code::bad_file, path + ": found " + shard + ", expected a name that ends in " +
                                          in_quotes(ending) + "; give all shards the names they had");
    const std::string stem = path.substr(0, path.size() - ending.size());
    if (split.number != 0)
        return Status(Code::invalid_argument,
                      path + ": found " + shard + ", expected the first; name " + stem + shard_ending(1, split.count));
    uint64_t n_tensors = files[0].contents().tensors.size();
    for (uint64_t i = 1; i < split.count; ++i) {
        const std::string name = stem + shard_ending(i + 1, split.count);
        if (!path_exists(name))
            return Status(Code::not_found, name + ": found no such file, expected shard " + std::to_string(i + 1) +
                                               " of " + std::to_string(split.count) + " beside the first; fetch it");
        AUSPEX_TRY_ASSIGN(file, GgufFile::open(name));
        AUSPEX_TRY_ASSIGN(its, read_split(file));
        if (its.number != i || its.count != split.count)
            return Status(Code::bad_file, name + ": found shard " + std::to_string(its.number + 1) + " of " +
                                              std::to_string(its.count) +
                                              ", expected what its name says; fetch it again");
        n_tensors += file.contents().tensors.size();
        files.push_back(std::move(file));
    }
    const auto claimed = files[0].contents().unsigned_value("split.tensors.count");
    if (claimed != n_tensors)
        return Status(Code::bad_file, path + ": found " + std::to_string(n_tensors) +
                                          " tensors in all shards, expected " +
                                          (claimed ? std::to_string(*claimed) : "a split.tensors.count that says so") +
                                          "; they are not of one model, fetch them again");
    return files;
}

// ---- tensors --------------------------------------------------------------------------------------------------------

// All tensors of all files by name, each to be taken once.
class Index {
  public:
    Status add(const std::vector<GgufFile>& files) {
        for (const GgufFile& file : files)
            for (const GgufTensor& tensor : file.contents().tensors)
                entries_.push_back({&tensor, &file});
        std::sort(entries_.begin(), entries_.end(),
                  [](const Entry& a, const Entry& b) { return a.tensor->name < b.tensor->name; });
        for (size_t i = 1; i < entries_.size(); ++i)
            if (entries_[i].tensor->name == entries_[i - 1].tensor->name)
                return {Code::bad_file, entries_[i].file->path() + ": found the tensor " +
                                            in_quotes(entries_[i].tensor->name) + " also in " +
                                            entries_[i - 1].file->path() + ", expected it once; fetch both again"};
        return ok_status();
    }

    struct Entry {
        const GgufTensor* tensor;
        const GgufFile* file;
        bool taken = false;
    };
    Entry* find(std::string_view name) {
        const auto it = std::lower_bound(entries_.begin(), entries_.end(), name,
                                         [](const Entry& one, std::string_view key) { return one.tensor->name < key; });
        return it == entries_.end() || it->tensor->name != name ? nullptr : &*it;
    }

    // What nobody took would change what the model says.
    Status check_all_taken() const {
        for (const Entry& entry : entries_) {
            const std::string& name = entry.tensor->name;
            if (entry.taken || name.ends_with(".attn_rot_embd.weight")) continue; // frequencies that nobody reads
            const std::string why = name.ends_with(".bias")                  ? "biases are not supported"
                                    : name.find("_exp") != std::string::npos ? "mixtures of experts are not supported"
                                                                             : "this kind of model is not supported";
            return {Code::unsupported, entry.file->path() + ": found the tensor " + in_quotes(name) +
                                           ", expected only those of a Llama; " + why};
        }
        return ok_status();
    }

  private:
    std::vector<Entry> entries_; // sorted by name
};

// Takes the tensor of a role, with everything it claims checked against the config.
Result<MappedTensor> take(Index& index, const LlamaConfig& config, const TensorRole& role,
                          const std::string& name_in_file, const std::string& name, const std::string& path) {
    std::vector<uint64_t> shape = {size_of(config, role.rows)};
    if (role.cols != Dim::none) shape.push_back(size_of(config, role.cols));
    Index::Entry* entry = index.find(name_in_file);
    if (!entry)
        return Status(Code::bad_file, path + ": found no tensor " + in_quotes(name_in_file) +
                                          ", expected one of shape " + shape_text(shape) +
                                          "; the file is incomplete or not a Llama's");
    entry->taken = true;
    const GgufTensor& tensor = *entry->tensor;
    const std::string at = " at tensor " + in_quotes(tensor.name);
    const std::string& file = entry->file->path();
    if (tensor.shape != shape)
        return Status(Code::bad_file, file + ": found shape " + shape_text(tensor.shape) + at + ", expected " +
                                          shape_text(shape) + " from the file's own keys; convert the model again");
    const auto dtype = dtype_of(tensor.type);
    if (!dtype)
        return Status(Code::unsupported,
                      file + ": found type " + type_text(tensor.type) + at +
                          ", expected F32, F16, BF16, Q4_0 to Q8_0 or Q2_K to Q6_K; use another quantisation");
    const bool vector = shape.size() == 1;
    if (vector && is_quantized(*dtype))
        return Status(Code::unsupported, file + ": found type " + std::string(dtype_name(*dtype)) + at +
                                             ", expected f32, f16 or bf16 for vectors; quantise the model again");
    const uint64_t cols = shape.back(), block = dtype_info(*dtype).block_elements;
    if (cols % block != 0)
        return Status(Code::bad_file, file + ": found rows of " + std::to_string(cols) + " elements" + at +
                                          ", expected a multiple of " + std::to_string(block) + " for " +
                                          std::string(dtype_name(*dtype)) + "; quantise the model again");
    const auto bytes = checked_mul(file_row_bytes(*dtype, cols), vector ? 1 : shape[0]);
    if (!bytes) return Status(Code::bad_file, file + ": found a size above 2^64" + at + ", expected a smaller tensor");
    AUSPEX_TRY_ASSIGN(place, entry->file->tensor_bytes(tensor, *bytes));
    return MappedTensor{
        {name, *dtype, std::move(shape), *bytes}, place, role.order == RowOrder::same ? 0 : config.head_dim};
}

Status read_divisors(Index& index, LlamaConfig& config, const std::string& path) {
    const Index::Entry* entry = index.find(kDivisorsRole.gguf);
    if (!entry) return ok_status();
    AUSPEX_TRY_ASSIGN(placed, take(index, config, kDivisorsRole, kDivisorsRole.gguf, kDivisorsRole.gguf, path));
    if (placed.info.dtype != DType::f32)
        return {Code::bad_file, entry->file->path() + ": found type " + std::string(dtype_name(placed.info.dtype)) +
                                    " at tensor " + in_quotes(kDivisorsRole.gguf) +
                                    ", expected f32; convert the model again"};
    config.rope_divisors.resize(placed.info.shape[0]);
    std::memcpy(config.rope_divisors.data(), placed.bytes.data(), placed.bytes.size());
    return ok_status();
}

// What only tensors say: the rows of the vocabulary, a tied output, rope divisors.
Status complete_config(Index& index, LlamaConfig& config, const std::string& path) {
    const Index::Entry* embedding = index.find(kEmbeddingRole.gguf);
    if (config.vocab_size == 0 && embedding) {
        const uint64_t rows = embedding->tensor->shape[0];
        config.vocab_size = static_cast<uint32_t>(std::min<uint64_t>(rows, ~uint32_t{0})); // its range is checked below
    }
    config.tied_embedding = index.find(kHeadRole.gguf) == nullptr;
    if (config.vocab_size != 0) AUSPEX_TRY(check_llama_config(config, path)); // else the tensor is reported missing
    AUSPEX_TRY(read_divisors(index, config, path));
    return config.rope_divisors.empty() ? ok_status() : check_llama_config(config, path);
}

Result<std::unique_ptr<Checkpoint>> open_files(const std::string& path) {
    AUSPEX_TRY_ASSIGN(files, open_shards(path));
    AUSPEX_TRY_ASSIGN(config, read_gguf_config(files[0].contents(), path));
    Index index;
    AUSPEX_TRY(index.add(files));
    AUSPEX_TRY(complete_config(index, config, path));
    std::vector<MappedTensor> tensors;
    const auto add = [&](const TensorRole& role, const std::string& name_in_file, const std::string& name) -> Status {
        AUSPEX_TRY_ASSIGN(tensor, take(index, config, role, name_in_file, name, path));
        tensors.push_back(std::move(tensor));
        return ok_status();
    };
    AUSPEX_TRY(add(kEmbeddingRole, kEmbeddingRole.gguf, kEmbeddingRole.huggingface));
    for (uint32_t i = 0; i < config.n_layers; ++i)
        for (const TensorRole& role : kLayerRoles)
            AUSPEX_TRY(add(role, gguf_name(role, i), huggingface_name(role, i)));
    AUSPEX_TRY(add(kNormRole, kNormRole.gguf, kNormRole.huggingface));
    if (!config.tied_embedding) AUSPEX_TRY(add(kHeadRole, kHeadRole.gguf, kHeadRole.huggingface));
    AUSPEX_TRY(index.check_all_taken());
    return std::unique_ptr<Checkpoint>(
        std::make_unique<FilesCheckpoint<GgufFile>>(path, std::move(config), std::move(files), std::move(tensors)));
}

} // namespace

Result<std::unique_ptr<Checkpoint>> open_gguf_checkpoint(const std::string& path) {
    return catching(path, "to open it", [&] { return open_files(path); });
}

} // namespace auspex
