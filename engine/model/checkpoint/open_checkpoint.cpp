// Which reader a path is for, and what to say when there is none. Reading is theirs.
#include "base/catching.h"
#include "base/platform.h"
#include "base/system_path.h"
#include "formats/gguf.h"
#include "model/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>

namespace auspex {
namespace {

bool ends_with_any(const std::string& path, std::initializer_list<std::string_view> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return path.ends_with(ending); });
}

std::string folder_of(const std::string& path) {
    const std::string folder = utf8_of(system_path(path).parent_path());
    return folder.empty() ? "." : folder;
}

Result<std::unique_ptr<Checkpoint>> open_file(const std::string& path) {
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    const std::string_view start(reinterpret_cast<const char*>(file.bytes().data()),
                                 std::min<size_t>(file.bytes().size(), 4));
    if (is_gguf_path(path) || start == "GGUF") return open_gguf_checkpoint(path); // stores keep files under other names
    if (ends_with_any(path, {".safetensors", ".safetensors.index.json", "config.json"}))
        return Status(Code::invalid_argument,
                      path + ": found one file of a Hugging Face folder, expected the folder; name " + folder_of(path));
    if (ends_with_any(path, {".pth", ".pt", ".bin", ".ckpt"}))
        return Status(Code::unsupported,
                      path + ": found a PyTorch file, expected GGUF or safetensors; pickles can run code and are "
                             "not read, convert it with llama.cpp's convert_hf_to_gguf.py or transformers");
    return Status(Code::bad_file, path + ": found " +
                                      (start.empty() ? "an empty file" : in_quotes(start) + " at its start") +
                                      ", expected a GGUF file or a Hugging Face folder");
}

} // namespace

Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path) {
    return catching(path, "to open it", [&]() -> Result<std::unique_ptr<Checkpoint>> {
        std::error_code error;
        if (std::filesystem::is_directory(system_path(path), error)) return open_huggingface_checkpoint(path);
        if (!path_exists(path))
            return no_such_model(path);
        return open_file(path);
    });
}

} // namespace auspex
