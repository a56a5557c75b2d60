// Which reader a path belongs to. The vocabularies and what lies beside them are read elsewhere.
#include "tokens/open_tokenizer.h"

#include "base/catching.h"
#include "base/platform.h"
#include "formats/gguf.h"
#include "tokens/bpe/bpe_tokenizer.h"
#include "tokens/bpe/tokenizer_json.h"
#include "tokens/spelled_tokens.h"

#include <algorithm>

namespace auspex {
namespace {

bool has_gguf_magic(const std::string& path) {
    const auto file = MappedFile::open(path);
    if (!file.ok() || file.value().bytes().size() < 4) return false;
    return std::string_view(reinterpret_cast<const char*>(file.value().bytes().data()), 4) == "GGUF";
}

Result<std::unique_ptr<Tokenizer>> open_in_folder(const std::string& folder) {
    const std::string sentencepiece = folder + "/tokenizer.model";
    if (path_exists(folder + "/tokenizer.json")) {
        if (!path_exists(sentencepiece)) return open_json_tokenizer(folder);
        AUSPEX_TRY_ASSIGN(file, MappedFile::open(sentencepiece));
        const auto bytes = file.bytes();
        if (looks_like_tiktoken({reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 256)}))
            return open_json_tokenizer(folder);
    } else if (!path_exists(sentencepiece)) {
        if (!path_exists(folder)) return no_such_model(folder);
        return Status(Code::not_found, folder + ": found neither tokenizer.model nor tokenizer.json, expected one of "
                                                "them; check that the download is complete");
    }
    return open_sentencepiece_tokenizer(folder);
}

} // namespace

std::vector<uint32_t> all_end_ids(const VocabularyTraits& traits, const SpelledTokens& controls) {
    std::vector<uint32_t> ids = traits.end_ids;
    const auto& named = traits.end_spellings;
    for (const auto& [spelling, token] : controls.entries())
        if (is_end_spelling(spelling) || std::find(named.begin(), named.end(), spelling) != named.end())
            ids.push_back(token);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
}

Status text_too_long(size_t bytes) {
    return {Code::invalid_argument, "text: found " + std::to_string(bytes) + " bytes, expected at most " +
                                        std::to_string(kMaxTextBytes) + "; encode it in parts"};
}

Result<TokenizerJson> read_tokenizer_json(const std::string& folder, const TokenizerSettings& settings) {
    const std::string path = folder + "/tokenizer.json";
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    return parse_tokenizer_json(file.bytes(), path, settings);
}

Result<std::unique_ptr<Tokenizer>> open_json_tokenizer(const std::string& folder) {
    AUSPEX_TRY_ASSIGN(settings, read_tokenizer_settings(folder));
    AUSPEX_TRY_ASSIGN(parsed, read_tokenizer_json(folder, settings));
    const auto& bos_spelling = settings.bos_spelling.empty() ? parsed.opening_token : settings.bos_spelling;
    VocabularyTraits traits;
    for (uint32_t id = 0; id < parsed.model.tokens.size(); ++id)
        if (parsed.model.tokens[id].kind == BpeKind::control && parsed.model.tokens[id].bytes == bos_spelling)
            traits.bos = id;
    traits.add_bos = settings.add_bos.value_or(!parsed.opening_token.empty());
    if (!settings.eos_spelling.empty()) traits.end_spellings.push_back(settings.eos_spelling);
    traits.chat_template = std::move(settings.chat_template);
    return make_bpe_tokenizer(std::move(parsed.model), std::move(traits));
}

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& model_path) {
    return catching(model_path, "to read the tokenizer", [&]() -> Result<std::unique_ptr<Tokenizer>> {
        if (is_gguf_path(model_path) && !path_exists(model_path)) return no_such_model(model_path);
        if (is_gguf_path(model_path) || has_gguf_magic(model_path)) return open_gguf_tokenizer(model_path);
        return open_in_folder(model_path);
    });
}

} // namespace auspex
