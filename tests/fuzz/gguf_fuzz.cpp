// A GGUF file from its first byte to tokens: container, config, tensors under their Hugging Face names, vocabulary.
#include "formats/gguf.h"
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "model/checkpoint/checkpoint.h"
#include "tokens/open_tokenizer.h"

#include <algorithm>
#include <array>
#include <bit>

namespace auspex::test {
namespace {

void check_contents(const GgufContents& contents, size_t file_bytes) {
    for (size_t i = 1; i < contents.entries.size(); ++i)
        fuzz_check(contents.entries[i - 1].key < contents.entries[i].key, "keys are sorted and differ");
    fuzz_check(contents.alignment >= 8 && std::has_single_bit(contents.alignment), "the alignment is a power of two");
    for (const auto& entry : contents.entries) {
        fuzz_check(contents.find(entry.key) == &entry, "every key is found");
        uint64_t items = 0;
        for_each_text(entry.array, [&](uint64_t, std::string_view) { return ++items > 0; });
        fuzz_check(entry.type != GgufType::array || entry.array.type != GgufType::string || items == entry.array.count,
                   "a list of texts has as many as it says");
        if (entry.type == GgufType::array && entry.array.count > 0) {
            static_cast<void>(integer_at(entry.array, entry.array.count - 1));
            static_cast<void>(real_at(entry.array, entry.array.count - 1));
        }
        fuzz_check(!integer_at(entry.array, entry.array.count), "nothing beyond the end of a list");
        static_cast<void>(contents.unsigned_value(entry.key));
        static_cast<void>(contents.real_value(entry.key));
    }
    for (const auto& tensor : contents.tensors)
        fuzz_check(tensor.room > 0 && tensor.offset < file_bytes && tensor.room <= file_bytes - tensor.offset &&
                       tensor.offset >= contents.data_begin &&
                       tensor.offset % contents.alignment == contents.data_begin % contents.alignment,
                   "a tensor lies inside the file");
    for (const auto& tensor : contents.tensors)
        fuzz_check(!tensor.shape.empty() && elements_of(tensor.shape) > 0 && elements_of(tensor.shape) < 0x1p63,
                   "a tensor has elements, and their number fits 63 bits");
}

void read_tensor(const Checkpoint& model, std::string_view name) {
    const TensorInfo* info = model.find(name);
    if (!info) return;
    const DTypeInfo& type = dtype_info(info->dtype);
    fuzz_check(elements_of(info->shape) / type.block_elements * type.block_bytes == static_cast<double>(info->bytes),
               "a tensor is as long as its shape and type");
    std::array<std::byte, 96> piece;
    for (const uint64_t offset : {uint64_t{0}, info->bytes / 3, info->bytes - 1}) {
        const auto out = std::span(piece).first(std::min<uint64_t>(piece.size(), info->bytes - offset));
        fuzz_check(model.read(*info, offset, out).ok(), "a tensor can be read");
        for (std::byte b : out)
            fuzz_check(std::to_integer<int>(b) < 256, "bytes are there"); // touches them under the sanitizer
    }
    fuzz_check(!model.read(*info, info->bytes, std::span(piece).first(1)).ok(), "nothing beyond the end of a tensor");
}

} // namespace

void fuzz_gguf(FuzzInput input) {
    clear_files();
    const std::string path = memory_folder() + "/m.gguf";
    put_file(path, input);
    const auto parsed = parse_gguf(input, path);
    if (!parsed.ok()) return check_refusal(parsed.status());
    check_contents(parsed.value(), input.size());

    const auto model = open_gguf_checkpoint(path);
    if (model.ok()) {
        const LlamaConfig& config = model.value()->config();
        fuzz_check(check_llama_config(config, path).ok(), "a config that was read is one that passes");
        for (const char* name : {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"})
            read_tensor(*model.value(), name);
        const std::string layer = "model.layers." + std::to_string(config.n_layers - 1) + ".";
        for (const char* name : {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "mlp.down_proj.weight"})
            read_tensor(*model.value(), layer + name);
        fuzz_check(rope_frequencies(config).size() == config.head_dim / 2, "one frequency for each pair");
    } else {
        check_refusal(model.status());
    }
    const auto tokenizer = open_gguf_tokenizer(path);
    if (!tokenizer.ok()) return check_refusal(tokenizer.status());
    const bool bpe = parsed.value().text_value("tokenizer.ggml.model") == "gpt2";
    use_tokenizer(*tokenizer.value(), bpe ? Fidelity::bytes : Fidelity::anything);
}

} // namespace auspex::test
