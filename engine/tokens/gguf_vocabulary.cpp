// The vocabulary inside a GGUF file: "llama" (SentencePiece) and "gpt2" (byte-level BPE) with Llama 3's split pattern.
// Both become the same plain data as the original files, and are checked and used the same way.
// Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include "formats/gguf.h"
#include "tokens/bpe/bpe_tokenizer.h"
#include "tokens/chat_template.h"
#include "tokens/open_tokenizer.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/spelled_tokens.h"
#include "tokens/tokenizer.h"

#include <algorithm>

namespace auspex {
namespace {

using Piece = SentencePieceModel::Piece;
using PieceType = SentencePieceModel::Type;

constexpr uint64_t kMaxTokens = 1u << 19; // of Llama 3: 128256; each costs up to 150 bytes

// The lists that every vocabulary has, with lengths that agree.
struct Lists {
    const GgufArray* tokens = nullptr;
    const GgufArray* types = nullptr;  // may be null: all normal
    const GgufArray* scores = nullptr; // may be null

    // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte: numbered as in SentencePiece. What has any
    // other type is nothing that we know how to use.
    PieceType type(uint64_t id) const {
        if (!types) return PieceType::normal;
        const int64_t type = integer_at(*types, id).value_or(0);
        return type >= 1 && type <= 6 ? static_cast<PieceType>(type) : PieceType::unused;
    }
};

Result<Lists> read_lists(const GgufContents& file, const std::string& path) {
    Lists lists;
    lists.tokens = file.array_value("tokenizer.ggml.tokens", GgufType::string);
    if (!lists.tokens || lists.tokens->count == 0)
        return bad_vocabulary(path, "no list of texts tokenizer.ggml.tokens", "the vocabulary");
    const uint64_t n = lists.tokens->count;
    if (n > kMaxTokens) return bad_vocabulary(path, std::to_string(n) + " tokens", "at most " + std::to_string(kMaxTokens));
    const auto list = [&](const char* key, std::initializer_list<GgufType> types, const GgufArray*& out) -> Status {
        if (!file.find(key)) return ok_status();
        for (GgufType type : types)
            if (!out) out = file.array_value(key, type);
        if (!out) return bad_vocabulary(path, std::string(key) + " of another type", "a list of numbers, one for each token");
        if (out->count != n)
            return bad_vocabulary(path, std::to_string(out->count) + " entries in " + key,
                       std::to_string(n) + " as in tokenizer.ggml.tokens");
        return ok_status();
    };
    AUSPEX_TRY(list("tokenizer.ggml.token_type", {GgufType::i32, GgufType::u32}, lists.types));
    AUSPEX_TRY(list("tokenizer.ggml.scores", {GgufType::f32}, lists.scores));
    return lists;
}

// An id that a key names; absent: nullopt.
Status read_id(const GgufContents& file, const char* key, uint64_t n_tokens, const std::string& path,
               std::optional<uint32_t>& out) {
    if (!file.find(key)) return ok_status();
    const auto value = file.unsigned_value(key);
    if (value == UINT32_MAX || file.is_minus_one(key)) return ok_status(); // how writers say "none"
    if (!value || *value >= n_tokens)
        return bad_vocabulary(path, std::string(key) + " " + (value ? std::to_string(*value) : "that is no token id"),
                   "an id below " + std::to_string(n_tokens));
    out = static_cast<uint32_t>(*value);
    return ok_status();
}

// llama.cpp's defaults: a "llama" vocabulary without keys has BOS 1 and EOS 2; text begins with BOS.
Result<VocabularyTraits> read_traits(const GgufContents& file, uint64_t n_tokens, bool sentencepiece,
                                     const std::string& path) {
    VocabularyTraits traits;
    if (sentencepiece && n_tokens > 2 && !file.find("tokenizer.ggml.bos_token_id")) traits.bos = 1;
    AUSPEX_TRY(read_id(file, "tokenizer.ggml.bos_token_id", n_tokens, path, traits.bos));
    for (const char* key :
         {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
        std::optional<uint32_t> id;
        AUSPEX_TRY(read_id(file, key, n_tokens, path, id));
        if (id) traits.end_ids.push_back(*id);
    }
    if (sentencepiece && n_tokens > 2 && !file.find("tokenizer.ggml.eos_token_id")) traits.end_ids.push_back(2);
    if (file.find("tokenizer.ggml.add_bos_token") && !file.bool_value("tokenizer.ggml.add_bos_token"))
        return bad_vocabulary(path, "tokenizer.ggml.add_bos_token of another type", "true or false");
    traits.add_bos = file.bool_value("tokenizer.ggml.add_bos_token").value_or(true);
    const auto chat_template = file.text_value("tokenizer.chat_template").value_or("");
    if (chat_template.size() > kMaxTemplateBytes)
        return bad_vocabulary(path, std::to_string(chat_template.size()) + " bytes in tokenizer.chat_template",
                   "at most " + std::to_string(kMaxTemplateBytes));
    traits.chat_template = chat_template;
    return traits;
}

// Files carry wrong types for these; a token that begins or ends texts is never text itself.
bool is_control_by_key(const VocabularyTraits& traits, uint64_t id) {
    return traits.bos == id || std::find(traits.end_ids.begin(), traits.end_ids.end(), id) != traits.end_ids.end();
}

Result<BpeParts> read_bpe_parts(const GgufContents& file, const Lists& lists, const VocabularyTraits& traits,
                                const std::string& path) {
    BpeParts parts;
    parts.ignore_merges = true; // with Llama 3's pattern, always
    parts.tokens.reserve(lists.tokens->count);
    Status status;
    for_each_text(*lists.tokens, [&](uint64_t id, std::string_view spelling) {
        const PieceType type = lists.type(id);
        const BpeKind kind = is_control_by_key(traits, id) || type == PieceType::control || type == PieceType::unknown
                                 ? BpeKind::control
                             : type == PieceType::user_defined ? BpeKind::user_defined
                             : type == PieceType::unused       ? BpeKind::unused
                                                               : BpeKind::normal;
        status = type == PieceType::byte
                     ? bad_vocabulary(path, "the byte token " + in_quotes(spelling) + " in a byte-level vocabulary", "none")
                     : parts.add_token(id, spelling, kind, path);
        return status.ok();
    });
    AUSPEX_TRY(std::move(status));
    const GgufArray* merges = file.array_value("tokenizer.ggml.merges", GgufType::string);
    if (!merges) return bad_vocabulary(path, "no list of texts tokenizer.ggml.merges", "the merges of a BPE vocabulary");
    for_each_text(*merges, [&](uint64_t, std::string_view merge) {
        status = parts.add_merge(merge, path);
        return status.ok();
    });
    AUSPEX_TRY(std::move(status));
    return parts;
}

Result<SentencePieceModel> read_pieces(const GgufContents& file, const Lists& lists, const VocabularyTraits& traits,
                                       const std::string& path) {
    if (!lists.scores) return bad_vocabulary(path, "no list tokenizer.ggml.scores", "a score for each token");
    if (file.bool_value("tokenizer.ggml.remove_extra_whitespaces").value_or(false))
        return Status(Code::unsupported, path + ": found tokenizer.ggml.remove_extra_whitespaces true, expected false; "
                                                "other SentencePiece models are not supported");
    const GgufArray* rules = file.array_value("tokenizer.ggml.precompiled_charsmap", GgufType::u8);
    if (rules && rules->count > 0)
        return Status(Code::unsupported, path + ": found text normalisation rules (precompiled_charsmap), expected "
                                                "none; other SentencePiece models are not supported");
    SentencePieceModel model;
    model.add_dummy_prefix = file.bool_value("tokenizer.ggml.add_space_prefix").value_or(true);
    std::optional<uint32_t> unknown = 0;
    AUSPEX_TRY(read_id(file, "tokenizer.ggml.unknown_token_id", lists.tokens->count, path, unknown));
    for_each_text(*lists.tokens, [&](uint64_t id, std::string_view spelling) {
        PieceType type = lists.type(id);
        if (!lists.types) // oldest files: told by spelling, as llama.cpp does
            type = id == unknown ? PieceType::unknown : byte_of_spelling(spelling) >= 0 ? PieceType::byte : type;
        if (is_control_by_key(traits, id) && type != PieceType::unknown) type = PieceType::control;
        if (type == PieceType::byte) model.byte_fallback = true;
        // Added words are written as text; the library looks for them in escaped text.
        const bool text = type == PieceType::user_defined;
        const auto score = static_cast<float>(*real_at(*lists.scores, id));
        model.pieces.push_back({text ? with_space_symbols(spelling) : std::string(spelling), score, type});
        return true;
    });
    AUSPEX_TRY(check_sentencepiece_model(model, path));
    if (traits.bos) model.bos_spelling = model.pieces[*traits.bos].spelling;
    return model;
}

} // namespace

Result<std::unique_ptr<Tokenizer>> open_gguf_tokenizer(const std::string& path) {
    AUSPEX_TRY_ASSIGN(opened, GgufFile::open(path));
    const GgufContents& file = opened.contents();
    const auto kind = file.text_value("tokenizer.ggml.model");
    if (!kind)
        return Status(Code::not_found, path + ": found no tokenizer.ggml.model, expected a vocabulary; of a model in "
                                              "several files, name the first");
    if (*kind != "llama" && *kind != "gpt2")
        return Status(Code::unsupported, path + ": found tokenizer.ggml.model " + in_quotes(*kind) +
                                             ", expected \"llama\" or \"gpt2\"; other tokenizers are not supported");
    AUSPEX_TRY_ASSIGN(lists, read_lists(file, path));
    AUSPEX_TRY_ASSIGN(traits, read_traits(file, lists.tokens->count, *kind == "llama", path));
    if (*kind == "llama") {
        AUSPEX_TRY_ASSIGN(model, read_pieces(file, lists, traits, path));
        return make_sentencepiece_tokenizer(std::move(model), std::move(traits), path);
    }
    const auto pattern = file.text_value("tokenizer.ggml.pre");
    if (pattern != "llama-bpe" && pattern != "llama3" && pattern != "llama-v3")
        return Status(Code::unsupported,
                      path + ": found " +
                          (pattern ? "tokenizer.ggml.pre " + in_quotes(*pattern) : "no tokenizer.ggml.pre") +
                          ", expected \"llama-bpe\", \"llama3\" or \"llama-v3\"; with another split the text would be "
                          "cut wrongly, so convert the model again");
    AUSPEX_TRY_ASSIGN(parts, read_bpe_parts(file, lists, traits, path));
    AUSPEX_TRY_ASSIGN(model, build_bpe_model(std::move(parts), path));
    return make_bpe_tokenizer(std::move(model), std::move(traits));
}

} // namespace auspex
