// Which reader a path belongs to, and the settings that lie beside a vocabulary. The vocabularies themselves are read
// elsewhere.
#include "tokens/open_tokenizer.h"

#include "base/catching.h"
#include "base/platform.h"
#include "formats/gguf.h"
#include "formats/json.h"
#include "tokens/bpe/bpe_tokenizer.h"
#include "tokens/bpe/tokenizer_json.h"
#include "tokens/spelled_tokens.h"

#include <algorithm>

namespace auspex {
namespace {

using nlohmann::json;

constexpr uint64_t max_settings_bytes = 16u << 20; // tokenizer_config.json may list added tokens
constexpr uint64_t max_template_bytes = 1u << 20;  // Llama 3.2: 4 KB
constexpr size_t max_settings_values = 65536;      // of the keys that are kept

Status wrong_type(const std::string& path, const std::string& key, const json& found, const std::string& expected) {
    return {Code::bad_file, path + ": found " + key + " that is " + json_found(found) + ", expected " + expected};
}

// The keys that matter; everything else in the file is dropped while it is read.
Result<json> read_kept_keys(const std::string& path) {
    AUSPEX_TRY_ASSIGN(text, read_text_file(path, max_settings_bytes));
    size_t n_values = 0;
    const auto keep = [&](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key)
            return depth > 1 || parsed == "add_bos_token" || parsed == "bos_token" || parsed == "eos_token" ||
                   parsed == "chat_template";
        return depth <= 8 && ++n_values <= max_settings_values;
    };
    json root = json::parse(text, keep, /*allow_exceptions=*/false);
    if (!root.is_object())
        return Status(Code::bad_file, path + ": found no JSON object, expected one; fetch the file again");
    if (n_values > max_settings_values)
        return Status(Code::bad_file, path + ": found more than " + std::to_string(max_settings_values) +
                                          " values, expected a few hundred");
    return root;
}

// A token by its spelling: text, or an object with the text as its content. Absent, null, or without content: empty.
Result<std::string> spelling_setting(const json& root, const char* key, const std::string& path) {
    const auto value = root.find(key);
    if (value == root.end() || value->is_null()) return std::string();
    const json* text = &*value;
    if (value->is_object()) {
        const auto content = value->find("content");
        if (content == value->end()) return std::string();
        text = &*content;
    }
    if (!text->is_string()) return wrong_type(path, key, *text, "a token's text");
    return text->get<std::string>();
}

// Text, or a list of named ones of which "default" is meant.
Result<std::string> template_setting(const json& root, const std::string& path) {
    const auto value = root.find("chat_template");
    if (value == root.end() || value->is_null()) return std::string();
    if (value->is_string()) return value->get<std::string>();
    if (!value->is_array()) return wrong_type(path, "chat_template", *value, "text or a list of named texts");
    for (const json& entry : *value) {
        if (!entry.is_object() || !entry.contains("name") || !entry.contains("template") ||
            !entry["name"].is_string() || !entry["template"].is_string())
            return wrong_type(path, "an entry of chat_template", entry,
                              "an object with texts \"name\" and \"template\"");
        if (entry["name"] == "default") return entry["template"].get<std::string>();
    }
    return std::string();
}

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

Result<TokenizerSettings> read_tokenizer_settings(const std::string& folder) {
    TokenizerSettings settings;
    const std::string path = folder + "/tokenizer_config.json", template_path = folder + "/chat_template.jinja";
    if (path_exists(path)) {
        AUSPEX_TRY_ASSIGN(root, read_kept_keys(path));
        if (const auto value = root.find("add_bos_token"); value != root.end() && !value->is_null()) {
            if (!value->is_boolean())
                return Status(Code::bad_file,
                              path + ": found add_bos_token that is neither true nor false, expected one of them");
            settings.add_bos = value->get<bool>();
        }
        AUSPEX_TRY_ASSIGN(bos, spelling_setting(root, "bos_token", path));
        AUSPEX_TRY_ASSIGN(eos, spelling_setting(root, "eos_token", path));
        AUSPEX_TRY_ASSIGN(chat_template, template_setting(root, path));
        settings.bos_spelling = std::move(bos);
        settings.eos_spelling = std::move(eos);
        settings.chat_template = std::move(chat_template);
    }
    if (path_exists(template_path)) { // the newer place; transformers prefers it too
        AUSPEX_TRY_ASSIGN(text, read_text_file(template_path, max_template_bytes));
        settings.chat_template = std::move(text);
    }
    return settings;
}

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
                                        std::to_string(max_text_bytes) + "; encode it in parts"};
}

Result<std::unique_ptr<Tokenizer>> open_json_tokenizer(const std::string& folder) {
    const std::string path = folder + "/tokenizer.json";
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    AUSPEX_TRY_ASSIGN(parsed, parse_tokenizer_json(file.bytes(), path));
    AUSPEX_TRY_ASSIGN(settings, read_tokenizer_settings(folder));
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
