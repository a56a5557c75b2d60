// A Hugging Face folder as a checkpoint: config.json beside model.safetensors, or beside shards and the index that
// names them. Files are mapped and read in place; what a safetensors header may claim is safetensors.cpp's business.
#include "base/catching.h"
#include "base/platform.h"
#include "base/system_path.h"
#include "formats/gguf.h"
#include "formats/json.h"
#include "model/checkpoint/mapped_checkpoint.h"
#include "model/checkpoint/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace auspex {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightsName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr uint64_t kMaxIndexBytes = 2u << 20; // of the largest Llama: 0.1 MB; the tree costs up to 30 times the text

// The file in `folder` that a user may have meant, or an empty text: GGUF before pickles, then the first by name. Looks
// at a bounded number of entries.
std::string other_weights(const std::string& folder) {
    constexpr int max_looked_at = 4096;
    std::string best;
    std::error_code error;
    fs::directory_iterator it(system_path(folder), error), end;
    for (int i = 0; !error && it != end && i < max_looked_at; ++i, it.increment(error)) {
        const std::string name = utf8_of(it->path().filename());
        const bool gguf = is_gguf_path(name), best_is_gguf = is_gguf_path(best);
        const bool pickle = name.ends_with(".pth") || (name.starts_with("pytorch_model") && name.ends_with(".bin"));
        if ((gguf && (!best_is_gguf || name < best)) || (pickle && (best.empty() || (!best_is_gguf && name < best))))
            best = name;
    }
    return best;
}

// Says which file is missing, and what lies there instead.
Status check_folder(const std::string& folder) {
    const std::string weights = folder + "/" + std::string(kWeightsName);
    std::error_code error;
    if (!fs::is_directory(system_path(folder), error)) {
        if (is_gguf_path(folder) && path_exists(folder))
            return {Code::unsupported, folder + ": found a GGUF file, expected a Hugging Face folder"};
        return {Code::not_found, folder + ": found no such folder, expected one with config.json and " +
                                     std::string(kWeightsName) + "; check the path"};
    }
    if (path_exists(weights) || path_exists(folder + "/" + std::string(kIndexName))) return ok_status();
    const std::string other = other_weights(folder);
    if (other.empty())
        return {Code::not_found,
                weights + ": found no such file, expected the weights; check that the download is complete"};
    if (is_gguf_path(other))
        return {Code::unsupported, weights + ": found " + in_quotes(other) +
                                       ", a GGUF file, instead; to use it, name the file itself instead of its folder"};
    return {Code::unsupported,
            weights + ": found " + in_quotes(other) +
                ", a PyTorch pickle, instead; pickles can run code and are not read, convert it to safetensors"};
}

// Tensors in other types may be there (older files carry integer buffers), but not as weights.
Status check_weight_types(const SafetensorsFile& file, const std::string& path) {
    for (const SafetensorsEntry& entry : file.entries()) {
        if (!entry.dtype && entry.name.ends_with(".weight"))
            return {Code::unsupported, path + ": found type " + entry.type + " at tensor " + in_quotes(entry.name) +
                                           ", expected BF16, F16 or F32; convert the checkpoint to one of them"};
        if (entry.name.ends_with(".qweight"))
            return {Code::unsupported, path + ": found the tensor " + in_quotes(entry.name) +
                                           ", weights quantised by GPTQ or AWQ, expected BF16, F16 or F32; use the "
                                           "unquantised checkpoint, or a GGUF file"};
    }
    return ok_status();
}

// ---- shards ---------------------------------------------------------------------------------------------------------

// Names in an index come from outside: a plain name of a safetensors file in the same folder, nothing that leads
// elsewhere.
bool is_plain_name(const std::string& name) {
    if (!name.ends_with(".safetensors") || name.starts_with(".") || name.size() > 255) return false;
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return c >= ' ' && c <= '~' && c != '/' && c != '\\' && c != ':'; });
}

// weight_map of the index: tensor to file.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
    AUSPEX_TRY_ASSIGN(root, read_json_object(path, kMaxIndexBytes));
    const auto map = root.find("weight_map");
    if (map == root.end() || !map->is_object())
        return Status(Code::bad_file, path + ": found " +
                                          (map == root.end() ? "no weight_map" : "weight_map " + json_found(*map)) +
                                          ", expected an object of tensors and their files; fetch it again");
    std::map<std::string, std::string> files;
    for (const auto& [tensor, file] : map->items()) {
        if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
            return Status(Code::bad_file, path + ": found " + json_found(file) + " as the file of tensor " +
                                              in_quotes(tensor) +
                                              ", expected the name of a safetensors file in the same folder");
        files.emplace(tensor, file.get<std::string>());
    }
    return files;
}

// Every file that the index names, once, in order of names. Tensors that only a shard's own header names count as well,
// as they do in transformers.
Result<std::vector<SafetensorsFile>> open_shards(const std::string& folder, std::vector<std::string>& paths) {
    const std::string index = folder + "/" + std::string(kIndexName);
    AUSPEX_TRY_ASSIGN(file_of, read_index(index));
    std::map<std::string, size_t> names; // to the place in `files`
    for (const auto& [tensor, file] : file_of)
        names.emplace(file, 0);
    if (names.empty() || names.size() > kMaxShards)
        return Status(Code::bad_file, index + ": found " + std::to_string(names.size()) + " shards, expected 1 to " +
                                          std::to_string(kMaxShards) + "; fetch it again");
    std::vector<SafetensorsFile> files;
    for (auto& [name, place] : names) {
        place = files.size();
        const std::string path = folder + "/" + name;
        if (!path_exists(path))
            return Status(Code::not_found, path + ": found no such file, expected a shard named in " +
                                               std::string(kIndexName) + "; check that the download is complete");
        AUSPEX_TRY_ASSIGN(file, SafetensorsFile::open(path));
        files.push_back(std::move(file));
        paths.push_back(path);
    }
    for (const auto& [tensor, name] : file_of)
        if (!files[names[name]].find(tensor))
            return Status(Code::bad_file, folder + "/" + name + ": found no tensor " + in_quotes(tensor) +
                                              ", expected it because " + std::string(kIndexName) +
                                              " says so; fetch both again");
    return files;
}

// The weights of all files by name, each in one file only.
Result<std::vector<MappedTensor>> list_tensors(const std::vector<SafetensorsFile>& files,
                                               const std::vector<std::string>& paths) {
    struct Placed {
        MappedTensor tensor;
        size_t file;
    };
    std::vector<Placed> placed;
    for (size_t i = 0; i < files.size(); ++i) {
        AUSPEX_TRY(check_weight_types(files[i], paths[i]));
        for (const SafetensorsEntry& entry : files[i].entries())
            if (entry.dtype)
                placed.push_back(
                    {{{entry.name, *entry.dtype, entry.shape, entry.end - entry.begin}, files[i].bytes(entry)}, i});
    }
    std::sort(placed.begin(), placed.end(),
              [](const Placed& a, const Placed& b) { return a.tensor.info.name < b.tensor.info.name; });
    std::vector<MappedTensor> tensors;
    for (size_t i = 0; i < placed.size(); ++i) {
        if (i > 0 && placed[i].tensor.info.name == tensors.back().info.name)
            return Status(Code::bad_file, paths[placed[i].file] + ": found the tensor " +
                                              in_quotes(tensors.back().info.name) + " also in " +
                                              paths[placed[i - 1].file] + ", expected it once; fetch both again");
        tensors.push_back(std::move(placed[i].tensor));
    }
    return tensors;
}

Result<std::unique_ptr<Checkpoint>> open_folder(const std::string& folder) {
    AUSPEX_TRY(check_folder(folder));
    AUSPEX_TRY_ASSIGN(config, read_llama_config(folder));
    std::vector<std::string> paths;
    std::vector<SafetensorsFile> files;
    if (const std::string whole = folder + "/" + std::string(kWeightsName);
        path_exists(whole)) { // before shards, as transformers
        AUSPEX_TRY_ASSIGN(file, SafetensorsFile::open(whole));
        files.push_back(std::move(file));
        paths.push_back(whole);
    } else {
        AUSPEX_TRY_SET(files, open_shards(folder, paths));
    }
    AUSPEX_TRY_ASSIGN(tensors, list_tensors(files, paths));
    return std::unique_ptr<Checkpoint>(std::make_unique<FilesCheckpoint<SafetensorsFile>>(
        folder, std::move(config), std::move(files), std::move(tensors)));
}

} // namespace

Result<std::unique_ptr<Checkpoint>> open_huggingface_checkpoint(const std::string& folder) {
    return catching(folder, "to open it", [&] { return open_folder(folder); });
}

} // namespace auspex
