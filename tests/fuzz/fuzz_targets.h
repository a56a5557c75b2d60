// One function for each kind of hostile input, and what they share: checks that end a run, and the use that everything
// which was read must survive. Who calls them is fuzz_main.cpp (libFuzzer) or fuzz_test.cpp (the suite).
#pragma once

#include "base/status.h"
#include "tokens/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex::test {

using FuzzInput = std::span<const std::byte>;

void fuzz_gguf(FuzzInput input);           // a file: container, config, tensors, vocabulary, chat template
void fuzz_safetensors(FuzzInput input);    // a file: header, and a checkpoint made of it
void fuzz_index_json(FuzzInput input);     // model.safetensors.index.json over two good shards
void fuzz_config_json(FuzzInput input);    // config.json, then generation_config.json
void fuzz_tokenizer_json(FuzzInput input); // tokenizer.json, then tokenizer_config.json and chat_template.jinja
void fuzz_sentencepiece(FuzzInput input);  // tokenizer.model
void fuzz_tokenizer_text(FuzzInput input); // a text, and a list of ids, for two good vocabularies
void fuzz_blocks(FuzzInput input);         // a type, a shape, and quantised blocks

struct FuzzTarget {
    const char* name;
    void (*run)(FuzzInput);
};
inline constexpr FuzzTarget fuzz_targets[] = {
    {"gguf", fuzz_gguf},
    {"safetensors", fuzz_safetensors},
    {"index_json", fuzz_index_json},
    {"config_json", fuzz_config_json},
    {"tokenizer_json", fuzz_tokenizer_json},
    {"sentencepiece", fuzz_sentencepiece},
    {"tokenizer_text", fuzz_tokenizer_text},
    {"blocks", fuzz_blocks},
};

// What a run may take beyond its input: 2 × its size + this, and seconds of processor time.
inline constexpr size_t fuzz_extra_bytes = 64u << 20;
inline constexpr double fuzz_max_seconds = 2.0;

// A promise was broken; whoever runs the target reports it.
struct FuzzFailure {
    std::string what;
};
inline void fuzz_check(bool holds, const char* promise) {
    if (!holds) throw FuzzFailure{promise};
}

// A refusal is one printable line of bounded length. `internal` would be an exception that nobody expected, and no file
// that fits into memory may ask for more than there is.
void check_refusal(const Status& status);

// The product of a shape, in a type that cannot overflow.
double elements_of(std::span<const uint64_t> shape);

// The input's files where it holds several: "\x1e" (which JSON cannot contain) stands between them.
std::vector<std::string_view> split_files(FuzzInput input);

// What comes out when a text is encoded and decoded: `bytes`, itself but for replacements of what is not UTF-8;
// `spaces`, the same with U+2581 as a space, as SentencePiece vocabularies write it; `anything`, UTF-8 that may lack
// characters.
enum class Fidelity { bytes, spaces, anything };
// Encodes, decodes and renders a chat.
void use_tokenizer(const Tokenizer& tokenizer, Fidelity fidelity);
// Encodes and decodes one text.
void check_encoding(const Tokenizer& tokenizer, std::string_view text, Fidelity fidelity);

} // namespace auspex::test
