// A safetensors file: the promises of its reader, and the checkpoint that it makes with a good config.json.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/safetensors.h"

#include <algorithm>

namespace auspex::test {

void fuzz_safetensors(FuzzInput input) {
    constexpr std::string_view config =
        R"({"model_type":"llama","hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,"num_attention_heads":2,)"
        R"("num_key_value_heads":1,"head_dim":32,"vocab_size":16,"max_position_embeddings":64})";
    clear_files();
    const std::string path = memory_folder() + "/model.safetensors";
    put_file(path, input);
    put_file(memory_folder() + "/config.json", config);
    const auto file = SafetensorsFile::open(path);
    if (!file.ok()) return check_refusal(file.status());
    uint64_t data_bytes = 0, first = input.size();
    const auto& entries = file.value().entries();
    for (size_t i = 0; i < entries.size(); ++i) {
        const auto& entry = entries[i];
        fuzz_check(i == 0 || entries[i - 1].name < entry.name, "names are sorted and differ");
        fuzz_check(entry.begin <= entry.end && entry.end <= input.size(), "ranges lie inside the file");
        fuzz_check(file.value().find(entry.name) == &entry, "every name is found");
        for (std::byte b : file.value().bytes(entry).first(std::min<uint64_t>(entry.end - entry.begin, 8)))
            fuzz_check(std::to_integer<int>(b) < 256, "bytes are there"); // touches them under the sanitizer
        data_bytes += entry.end - entry.begin;
        first = std::min(first, entry.begin);
    }
    fuzz_check(data_bytes == input.size() - first, "ranges cover the data");

    const auto model = open_huggingface_checkpoint(memory_folder());
    if (!model.ok()) return check_refusal(model.status());
    for (const auto& entry : entries) {
        const TensorInfo* info = model.value()->find(entry.name);
        fuzz_check((info != nullptr) == entry.dtype.has_value(), "tensors of known types are there");
        if (!info) continue;
        std::byte byte;
        fuzz_check(info->bytes == entry.end - entry.begin, "a tensor is as long as its range");
        fuzz_check(elements_of(info->shape) * dtype_bytes(info->dtype) == static_cast<double>(info->bytes),
                   "a tensor is as long as its shape and type");
        fuzz_check(info->bytes == 0 || model.value()->read(*info, info->bytes - 1, {&byte, 1}).ok(), "it can be read");
        fuzz_check(!model.value()->read(*info, info->bytes, {&byte, 1}).ok(), "and not beyond its end");
    }
}

} // namespace auspex::test
