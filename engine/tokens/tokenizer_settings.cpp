// What lies beside a vocabulary: tokenizer_config.json, chat_template.jinja and added_tokens.json, as untrusted text.
#include "tokens/open_tokenizer.h"

#include "base/platform.h"
#include "formats/json.h"
#include "tokens/chat_template.h"
#include "tokens/spelled_tokens.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace auspex {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxSettingsBytes = 16u << 20; // tokenizer_config.json may list added tokens
constexpr size_t kMaxSettingsValues = 1u << 17;   // of the keys that are kept; eight for each added token
constexpr uint64_t kMaxAddedBytes = 1u << 20;     // of added_tokens.json
constexpr size_t kMaxWordBytes = 1024;            // of an added token; as SentencePiece's pieces

Status wrong_type(const std::string& path, const std::string& key, const json& found, const std::string& expected) {
    return {Code::bad_file, path + ": found " + key + " that is " + json_found(found) + ", expected " + expected};
}

// The keys that matter; everything else in the file is dropped while it is read.
Result<json> read_kept_keys(const std::string& path) {
    AUSPEX_TRY_ASSIGN(text, read_text_file(path, kMaxSettingsBytes));
    size_t n_values = 0;
    const auto keep = [&](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key)
            return depth > 1 || parsed == "add_bos_token" || parsed == "bos_token" || parsed == "eos_token" ||
                   parsed == "chat_template" || parsed == "added_tokens_decoder";
        return depth <= 8 && ++n_values <= kMaxSettingsValues;
    };
    json root = json::parse(text, keep, /*allow_exceptions=*/false);
    if (!root.is_object())
        return Status(Code::bad_file, path + ": found no JSON object, expected one; fetch the file again");
    if (n_values > kMaxSettingsValues)
        return Status(Code::bad_file, path + ": found more than " + std::to_string(kMaxSettingsValues) +
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

constexpr const char* kAddedName = "added_tokens.json";
constexpr const char* kConfigName = "tokenizer_config.json";

Status wrong_word(const std::string& path, const std::string& found, const std::string& expected) {
    return {Code::bad_file, path + ": found " + found + ", expected " + expected};
}

Status check_word(const AddedWord& word, const std::string& path) {
    if (word.id >= kMaxAddedId)
        return wrong_word(path, "the id " + std::to_string(word.id) + " of the added token " + in_quotes(word.spelling),
                          "an id below " + std::to_string(kMaxAddedId));
    if (word.spelling.size() > kMaxWordBytes)
        return wrong_word(path, "an added token of " + std::to_string(word.spelling.size()) + " bytes with id " +
                                    std::to_string(word.id), "at most " + std::to_string(kMaxWordBytes));
    return ok_status();
}

// {"<|im_end|>": 32000, …}: the older of the two places, which does not say what a word is for.
Status read_added_tokens(const std::string& folder, std::vector<AddedWord>& out) {
    const std::string path = folder + "/" + kAddedName;
    if (!path_exists(path)) return ok_status();
    AUSPEX_TRY_ASSIGN(root, read_json_object(path, kMaxAddedBytes));
    for (const auto& [spelling, id] : root.items()) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX)
            return wrong_type(path, "the id of " + in_quotes(spelling), id,
                              "an integer from 0 to " + std::to_string(kMaxAddedId - 1));
        if (spelling.empty()) continue; // stands for nothing
        const bool in_brackets = (spelling.front() == '<' && spelling.back() == '>') ||
                                 (spelling.front() == '[' && spelling.back() == ']');
        out.push_back({id.get<uint32_t>(), spelling, in_brackets || is_control_spelling(spelling), kAddedName});
        AUSPEX_TRY(check_word(out.back(), path));
    }
    return ok_status();
}

Status read_decoder_flag(const json& entry, const char* name, const std::string& which, const std::string& path, bool& out) {
    const auto flag = entry.find(name);
    if (flag == entry.end()) return ok_status();
    if (!flag->is_boolean()) return wrong_type(path, std::string(name) + " of " + which, *flag, "true or false");
    out = flag->get<bool>();
    return ok_status();
}

// {"32000": {"content": "<|im_end|>", "special": true, …}, …}
Status read_decoder(const json& root, const std::string& path, std::vector<AddedWord>& out) {
    const auto decoder = root.find("added_tokens_decoder");
    if (decoder == root.end() || decoder->is_null()) return ok_status();
    if (!decoder->is_object()) return wrong_type(path, "added_tokens_decoder", *decoder, "an object");
    for (const auto& [key, entry] : decoder->items()) {
        AddedWord word{0, {}, false, kConfigName};
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), word.id);
        if (key.empty() || error != std::errc() || end != key.data() + key.size())
            return wrong_word(path, "the key " + in_quotes(key) + " in added_tokens_decoder",
                              "an integer from 0 to " + std::to_string(kMaxAddedId - 1));
        const std::string which = "token " + key + " in added_tokens_decoder";
        if (!entry.is_object()) return wrong_type(path, which, entry, "an object");
        const auto content = entry.find("content");
        if (content == entry.end() || !content->is_string())
            return wrong_word(path, which + " without a text \"content\"", "the token's text");
        word.spelling = content->get<std::string>();
        if (word.spelling.empty()) continue;
        AUSPEX_TRY(read_decoder_flag(entry, "special", which, path, word.special));
        AUSPEX_TRY(check_word(word, path));
        out.push_back(std::move(word));
    }
    return ok_status();
}

// Both lists as one: what the newer place says counts, but an id has one word, and a word one id.
Status join_words(const std::string& folder, std::vector<AddedWord>& words) {
    std::stable_sort(words.begin(), words.end(), [](const AddedWord& a, const AddedWord& b) { return a.id < b.id; });
    std::vector<AddedWord> joined;
    std::set<std::string_view> spellings;
    for (AddedWord& word : words) {
        if (joined.empty() || joined.back().id != word.id) {
            joined.push_back(std::move(word));
            continue;
        }
        if (joined.back().spelling != word.spelling)
            return wrong_word(folder + "/" + word.file, "the id " + std::to_string(word.id) + " for " +
                                  in_quotes(word.spelling) + " and for " + in_quotes(joined.back().spelling) + " (" +
                                  joined.back().file + ")", "one word for each id");
        joined.back() = std::move(word); // tokenizer_config.json's stand after those of added_tokens.json
    }
    for (const AddedWord& word : joined)
        if (!spellings.insert(word.spelling).second)
            return wrong_word(folder + "/" + word.file, "the added token " + in_quotes(word.spelling) + " with id " +
                                  std::to_string(word.id) + " and with another", "one id for each word");
    words = std::move(joined);
    return ok_status();
}

} // namespace

Result<TokenizerSettings> read_tokenizer_settings(const std::string& folder) {
    TokenizerSettings settings;
    std::vector<AddedWord> from_decoder;
    const std::string path = folder + "/tokenizer_config.json", template_path = folder + "/chat_template.jinja";
    if (path_exists(path)) {
        AUSPEX_TRY_ASSIGN(root, read_kept_keys(path));
        if (const auto value = root.find("add_bos_token"); value != root.end() && !value->is_null()) {
            if (!value->is_boolean())
                return Status(Code::bad_file,
                              path + ": found add_bos_token that is neither true nor false, expected one of them");
            settings.add_bos = value->get<bool>();
        }
        AUSPEX_TRY_SET(settings.bos_spelling, spelling_setting(root, "bos_token", path));
        AUSPEX_TRY_SET(settings.eos_spelling, spelling_setting(root, "eos_token", path));
        AUSPEX_TRY_SET(settings.chat_template, template_setting(root, path));
        AUSPEX_TRY(read_decoder(root, path, from_decoder));
    }
    AUSPEX_TRY(read_added_tokens(folder, settings.added));
    settings.added.insert(settings.added.end(), std::make_move_iterator(from_decoder.begin()), std::make_move_iterator(from_decoder.end()));
    AUSPEX_TRY(join_words(folder, settings.added));
    for (AddedWord& word : settings.added)
        if (settings.names(word.spelling)) word.special = true;
    if (path_exists(template_path)) { // the newer place; transformers prefers it too
        AUSPEX_TRY_SET(settings.chat_template, read_text_file(template_path, kMaxTemplateBytes));
    }
    return settings;
}

} // namespace auspex
