// What the readers of vocabularies share: the facts that stand beside the tokens, and one function for each kind of
// file. open_tokenizer.cpp chooses among them.
#pragma once

#include "base/status.h"
#include "tokens/tokenizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

struct BpeModel;
struct SentencePieceModel;
struct TokenizerJson;

// A token that a vocabulary's own file may lack.
struct AddedWord {
    uint32_t id = 0; // below kMaxAddedId
    std::string spelling; // not empty
    bool special = false; // a control token
    const char* file = ""; // that names it, for messages
};
inline constexpr uint32_t kMaxAddedId = 1u << 18;

// Of tokenizer_config.json, chat_template.jinja and added_tokens.json; absent files and keys leave fields empty.
struct TokenizerSettings {
    std::optional<bool> add_bos;
    std::string bos_spelling, eos_spelling; // of control tokens, e.g. "<|begin_of_text|>"
    std::string chat_template;              // Jinja text
    std::vector<AddedWord> added;           // by ascending ids, which all differ, as the spellings do

    bool names(std::string_view spelling) const {
        return !spelling.empty() && (spelling == bos_spelling || spelling == eos_spelling);
    }
};
// bad_file: not JSON, one of these keys of another type, an id or a word of an added token twice.
Result<TokenizerSettings> read_tokenizer_settings(const std::string& folder);

// What a tokenizer is beside its tokens.
struct VocabularyTraits {
    std::optional<uint32_t> bos;
    bool add_bos = false;                   // only where there is a bos
    std::vector<uint32_t> end_ids;          // named by keys; well-known spellings are added by the tokenizer
    std::vector<std::string> end_spellings; // control tokens that end an answer, by spelling
    std::string chat_template;
};

Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(SentencePieceModel model, VocabularyTraits traits,
                                                                const std::string& path);
// The ids and spellings that traits name, and control tokens whose spelling says so. Ascending.
std::vector<uint32_t> all_end_ids(const VocabularyTraits& traits, const SpelledTokens& controls);
Status text_too_long(size_t bytes);

// `folder`/tokenizer.model or tokenizer.json, with the words beside it. bad_file: one of those is in the way of another
// word, or has two ids.
Result<SentencePieceModel> read_sentencepiece_model(const std::string& folder, const TokenizerSettings& settings);
Result<TokenizerJson> read_tokenizer_json(const std::string& folder, const TokenizerSettings& settings);

// `folder`/tokenizer.json.
Result<std::unique_ptr<Tokenizer>> open_json_tokenizer(const std::string& folder);
// A GGUF file's own vocabulary.
Result<std::unique_ptr<Tokenizer>> open_gguf_tokenizer(const std::string& path);

// Whether a file named tokenizer.model is a tiktoken vocabulary (Meta's own Llama 3 files): lines of base64, a space
// and a rank. `start` is its beginning.
bool looks_like_tiktoken(std::string_view start);

} // namespace auspex
