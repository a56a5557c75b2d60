// A Hugging Face folder as a checkpoint: config.json beside one model.safetensors, mapped and read in place.
#include "base/platform.h"
#include "model/checkpoint.h"
#include "model/safetensors.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>

namespace auspex {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view weights_name = "model.safetensors";

class HuggingfaceCheckpoint : public Checkpoint {
  public:
    HuggingfaceCheckpoint(std::string folder, LlamaConfig config, SafetensorsFile file)
        : name_(std::move(folder)), config_(std::move(config)), file_(std::move(file)) {
        for (const SafetensorsEntry& entry : file_.entries()) // sorted by name, so tensors_ is
            if (entry.dtype) tensors_.push_back({entry.name, *entry.dtype, entry.shape, entry.end - entry.begin});
    }

    const LlamaConfig& config() const override { return config_; }
    const std::string& name() const override { return name_; }

    const TensorInfo* find(std::string_view tensor_name) const override {
        const auto it =
            std::lower_bound(tensors_.begin(), tensors_.end(), tensor_name,
                             [](const TensorInfo& tensor, std::string_view key) { return tensor.name < key; });
        return it == tensors_.end() || it->name != tensor_name ? nullptr : &*it;
    }

    Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
        const SafetensorsEntry* entry = file_.find(tensor.name);
        if (!entry || offset > entry->end - entry->begin || out.size() > entry->end - entry->begin - offset)
            return {Code::internal, name_ + ": read outside of tensor " + in_quotes(tensor.name)};
        if (!out.empty()) std::memcpy(out.data(), file_.bytes(*entry).data() + offset, out.size());
        return ok_status();
    }

  private:
    std::string name_;
    LlamaConfig config_;
    SafetensorsFile file_;
    std::vector<TensorInfo> tensors_; // sorted by name
};

bool ends_with_gguf(const std::string& path) {
    return path.ends_with(".gguf") || path.ends_with(".GGUF");
}

// The file in `folder` that a user may have meant, or an empty text. Looks at a bounded number of entries.
std::string other_weights(const std::string& folder) {
    constexpr int max_looked_at = 4096;
    std::string best;
    std::error_code error;
    fs::directory_iterator it(folder, error), end;
    for (int i = 0; !error && it != end && i < max_looked_at; ++i, it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (name == "model.safetensors.index.json") return name;
        const bool pickle = name.ends_with(".pth") || (name.starts_with("pytorch_model") && name.ends_with(".bin"));
        if (ends_with_gguf(name) || (pickle && best.empty())) best = name;
    }
    return best;
}

// Says which file is missing, and what lies there instead.
Status check_folder(const std::string& folder) {
    const std::string weights = folder + "/" + std::string(weights_name);
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        if (ends_with_gguf(folder) && path_exists(folder))
            return {Code::unsupported, folder + ": found a GGUF file, expected a Hugging Face folder; GGUF is not "
                                                "supported yet"};
        return {Code::not_found, folder + ": found no such folder, expected one with config.json and " +
                                     std::string(weights_name) + "; check the path"};
    }
    if (path_exists(weights)) return ok_status();
    const std::string other = other_weights(folder);
    if (other.empty())
        return {Code::not_found,
                weights + ": found no such file, expected the weights; check that the download is complete"};
    const std::string what = other.ends_with(".json") ? ", weights in several files (shards),"
                             : ends_with_gguf(other)  ? ", a GGUF file,"
                                                      : ", a PyTorch pickle,";
    return {Code::unsupported, weights + ": found " + in_quotes(other) + what +
                                   " instead, expected one safetensors file; other formats are not supported yet"};
}

// Tensors in other types may be there (older files carry integer buffers), but not as weights.
Status check_weight_types(const SafetensorsFile& file, const std::string& path) {
    for (const SafetensorsEntry& entry : file.entries())
        if (!entry.dtype && entry.name.ends_with(".weight"))
            return {Code::unsupported, path + ": found type " + entry.type + " at tensor " + in_quotes(entry.name) +
                                           ", expected BF16, F16 or F32; convert the checkpoint to one of them"};
    return ok_status();
}

} // namespace

Result<std::unique_ptr<Checkpoint>> open_huggingface_checkpoint(const std::string& folder) {
    try {
        AUSPEX_TRY(check_folder(folder));
        AUSPEX_TRY_ASSIGN(config, read_llama_config(folder));
        const std::string path = folder + "/" + std::string(weights_name);
        AUSPEX_TRY_ASSIGN(file, SafetensorsFile::open(path));
        AUSPEX_TRY(check_weight_types(file, path));
        return std::unique_ptr<Checkpoint>(
            std::make_unique<HuggingfaceCheckpoint>(folder, std::move(config), std::move(file)));
    } catch (const std::bad_alloc&) {
        return Status(Code::out_of_host_memory, folder + ": found no memory to open it");
    } catch (const std::exception& error) {
        return Status(Code::internal, folder + ": " + in_quotes(error.what()));
    }
}

} // namespace auspex
