// The file is read event by event, as a tree of it would cost twenty times its size: vocabulary and merges go straight
// into BpeParts, the few small settings become a bounded tree, everything else is passed over.
#include "tokens/bpe/tokenizer_json.h"

#include "formats/json.h"
#include "tokens/bpe/pre_tokenizer.h"
#include "tokens/tokenizer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace auspex {
namespace {

using nlohmann::json;

constexpr size_t kMaxFileBytes = 64u << 20; // Llama 3: 9 MB, 17 MB in the newer spelling of merges
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxSmallValues = 16384; // of one collected setting; real ones have a few dozen

Status unsupported(const std::string& path, const std::string& found, const std::string& expected) {
    return {Code::unsupported,
            path + ": found " + found + ", expected " + expected + "; other kinds of tokenizers are not supported"};
}

// One value of the file as a tree, built from events.
class SmallTree {
  public:
    void begin(json* root, json opened) {
        *root = std::move(opened);
        open_ = {root};
        n_values_ = 0;
    }
    bool active() const { return !open_.empty(); }
    bool full() const { return n_values_ > kMaxSmallValues || open_.size() > kMaxDepth; }
    void key(const std::string& key) { key_ = key; }
    void close() { open_.pop_back(); }
    void add(json value) {
        ++n_values_;
        const bool opens = value.is_structured();
        json& parent = *open_.back();
        json& child = parent.is_object() ? parent[key_] : parent.emplace_back();
        child = std::move(value);
        if (opens) open_.push_back(&child);
    }

  private:
    std::vector<json*> open_; // from the root to the value being filled; only the last grows, so none moves
    std::string key_;
    size_t n_values_ = 0;
};

struct AddedToken {
    uint32_t id = 0;
    std::string content;
    bool special = false;
};

// What the events leave behind, before it is judged.
struct Collected {
    BpeParts parts;
    std::vector<AddedToken> added;
    json settings = json::object(); // normalizer, pre_tokenizer, post_processor, and model without vocab and merges
    bool has_vocab = false, has_merges = false;
};

class Events : public nlohmann::json_sax<json> {
  public:
    Events(const std::string& path, Collected& out) : path_(path), out_(out) {
        out_.settings["model"] = json::object();
    }

    const Status& status() const { return status_; }

    bool null() override { return value(nullptr); }
    bool boolean(bool v) override { return value(v); }
    bool number_integer(number_integer_t v) override { return value(v); }
    bool number_unsigned(number_unsigned_t v) override { return value(v); }
    bool number_float(number_float_t v, const string_t&) override { return value(v); }
    bool string(string_t& v) override { return value(std::move(v)); }
    bool binary(binary_t&) override { return fail(bad_vocabulary(path_, "binary data", "JSON")); }
    bool start_object(size_t) override { return open(json::object()); }
    bool start_array(size_t) override { return open(json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(string_t& key) override {
        if (tree_.active()) {
            tree_.key(key);
        } else if (depth_ == 1) {
            if (!keys_.insert(key).second) return fail(twice(key));
            top_ = key;
        } else if (depth_ == 2 && top_ == "model") {
            if (!keys_.insert("model." + key).second) return fail(twice("model." + key));
            model_key_ = key;
        } else if (depth_ == 3) {
            spelling_ = std::move(key);
        }
        return true;
    }

    bool parse_error(size_t at, const std::string& last, const nlohmann::detail::exception&) override {
        return fail(bad_vocabulary(path_, in_quotes(last, 40) + " at byte " + std::to_string(at), "JSON"));
    }

  private:
    bool fail(Status status) {
        if (status_.ok()) status_ = std::move(status);
        return false;
    }
    bool keep(Status status) { return status.ok() || fail(std::move(status)); }
    Status twice(const std::string& key) const {
        return bad_vocabulary(path_, "the key " + in_quotes(key) + " twice", "once");
    }
    bool in_model(const char* key) const { return top_ == "model" && model_key_ == key; }
    bool is_setting() const { return top_ == "normalizer" || top_ == "pre_tokenizer" || top_ == "post_processor"; }

    bool value(json v) {
        if (tree_.active()) {
            tree_.add(std::move(v));
            return !tree_.full() || fail(too_large());
        }
        if (depth_ == 0) return fail(bad_vocabulary(path_, json_found(v), "a JSON object"));
        if (depth_ == 1) return top_value(std::move(v));
        if (depth_ == 2 && top_ == "added_tokens")
            return fail(bad_vocabulary(path_, "an added token " + json_found(v), "an object"));
        if (depth_ == 2 && top_ == "model") return model_value(std::move(v));
        if (depth_ == 3 && in_model("vocab")) return keep(add_token(v));
        if (depth_ >= 3 && in_model("merges")) return keep(add_merge_part(v));
        return true;
    }
    bool top_value(json v) {
        if (top_ == "model" || (top_ == "added_tokens" && !v.is_null()))
            return fail(bad_vocabulary(path_, top_ + " " + json_found(v), top_ == "model" ? "an object" : "a list"));
        if (is_setting()) out_.settings[top_] = std::move(v);
        return true;
    }
    bool model_value(json v) {
        if (model_key_ == "vocab" || model_key_ == "merges")
            return fail(bad_vocabulary(path_, "model." + model_key_ + " " + json_found(v), "the vocabulary"));
        if (model_key_ == "type" && v != "BPE")
            return fail(unsupported(path_, "model.type " + json_found(v), "\"BPE\""));
        out_.settings["model"][model_key_] = std::move(v);
        return true;
    }
    Status add_token(const json& id) {
        if (!id.is_number_unsigned())
            return bad_vocabulary(path_, "the id " + json_found(id) + " of token " + in_quotes(spelling_), "an integer from 0 on");
        return out_.parts.add_token(id.get<uint64_t>(), spelling_, BpeKind::normal, path_);
    }
    // "a b" in the list, or one of the two of ["a", "b"].
    Status add_merge_part(const json& text) {
        if (!text.is_string()) return bad_vocabulary(path_, "the merge " + json_found(text), "the texts of two tokens");
        const auto& part = text.get_ref<const std::string&>();
        if (depth_ == 3) return out_.parts.add_merge(part, path_);
        if (n_pair_ == 2 || part.find(' ') != std::string::npos)
            return bad_vocabulary(path_, "a merge with " + in_quotes(part), "the texts of two tokens");
        pair_ = n_pair_++ == 0 ? part : pair_ + ' ' + part;
        return n_pair_ == 2 ? out_.parts.add_merge(pair_, path_) : ok_status();
    }

    bool open(json opened) {
        const bool object = opened.is_object();
        if (tree_.active()) {
            tree_.add(std::move(opened));
            return !tree_.full() || fail(too_large());
        }
        if (depth_ == 0 && !object) return fail(bad_vocabulary(path_, "a list", "a JSON object"));
        if (depth_ == 1 && is_setting()) {
            tree_.begin(&out_.settings[top_], std::move(opened));
            return true;
        }
        if (depth_ == 1 && object != (top_ == "model") && (top_ == "model" || top_ == "added_tokens"))
            return fail(bad_vocabulary(path_, top_ + " " + json_found(opened), object ? "a list" : "an object"));
        if (depth_ == 2 && top_ == "added_tokens") {
            tree_.begin(&entry_, std::move(opened));
            return true;
        }
        if (depth_ == 2 && top_ == "model" && !open_in_model(object)) return false;
        if (depth_ == 3 && in_model("vocab"))
            return fail(bad_vocabulary(path_, json_found(opened) + " as the id of " + in_quotes(spelling_), "an integer"));
        if (depth_ >= 3 && in_model("merges") && (object || depth_ > 3))
            return fail(bad_vocabulary(path_, "a merge that is nested", "the texts of two tokens"));
        n_pair_ = 0;
        return ++depth_ <= kMaxDepth ||
               fail(bad_vocabulary(path_, "JSON nested deeper than " + std::to_string(kMaxDepth) + " levels", "a tokenizer"));
    }
    bool open_in_model(bool object) {
        if (model_key_ != "vocab" && model_key_ != "merges") return true; // passed over
        if (object != (model_key_ == "vocab"))
            return fail(unsupported(path_, "model." + model_key_ + (object ? " an object" : " a list"),
                                    object ? "a list" : "an object as in BPE models"));
        (object ? out_.has_vocab : out_.has_merges) = true;
        return true;
    }
    bool close() {
        if (tree_.active()) {
            tree_.close();
            return tree_.active() || top_ != "added_tokens" || keep(add_entry());
        }
        --depth_;
        return depth_ != 3 || !in_model("merges") || n_pair_ == 2 ||
               fail(bad_vocabulary(path_, "a merge of " + std::to_string(n_pair_) + " texts", "two"));
    }
    Status too_large() const {
        return bad_vocabulary(path_,
                   top_ + " with more than " + std::to_string(kMaxSmallValues) + " values or " +
                       std::to_string(kMaxDepth) + " levels",
                   "a few dozen");
    }
    Status add_entry() {
        const auto id = entry_.find("id"), content = entry_.find("content");
        if (!entry_.is_object() || id == entry_.end() || content == entry_.end() || !id->is_number_unsigned() ||
            id->get<uint64_t>() > UINT32_MAX || !content->is_string())
            return bad_vocabulary(path_, "an added token without a number \"id\" or a text \"content\"", "both");
        AddedToken token{id->get<uint32_t>(), content->get<std::string>(), false};
        for (const char* name : {"special", "single_word", "lstrip", "rstrip"}) {
            const auto flag = entry_.find(name);
            if (flag == entry_.end()) continue;
            if (!flag->is_boolean())
                return bad_vocabulary(path_,
                           std::string(name) + " " + json_found(*flag) + " of the added token " +
                               in_quotes(token.content),
                           "true or false");
            if (!flag->get<bool>()) continue;
            if (name == std::string_view("special")) {
                token.special = true;
            } else if (!token.special) {
                entry_special_needed_ = name;
            }
        }
        // Control tokens are never looked for in users' text, so the space around them does not matter there.
        if (!token.special && !entry_special_needed_.empty())
            return unsupported(path_, entry_special_needed_ + " true of the added token " + in_quotes(token.content),
                               "false");
        entry_special_needed_.clear();
        if (out_.added.size() >= 1u << 20) return bad_vocabulary(path_, "more than a million added tokens", "fewer");
        out_.added.push_back(std::move(token));
        return ok_status();
    }

    const std::string& path_;
    Collected& out_;
    Status status_;
    size_t depth_ = 0; // of what is open outside of tree_
    std::set<std::string> keys_;
    std::string top_, model_key_, spelling_, pair_, entry_special_needed_;
    int n_pair_ = 0; // texts of the merge being read
    SmallTree tree_;
    json entry_;
};

// ---- judging what was collected
// --------------------------------------------------------------------------------------

const json& member(const json& object, const char* key) {
    static const json null;
    if (!object.is_object()) return null;
    const auto at = object.find(key);
    return at == object.end() ? null : *at;
}

Status check_model(const Collected& file, const std::string& path) {
    const json& model = file.settings["model"];
    if (!file.has_vocab || !file.has_merges) return bad_vocabulary(path, "no model.vocab or no model.merges", "a BPE vocabulary");
    if (member(model, "byte_fallback") == true)
        return unsupported(path, "model.byte_fallback true",
                           "false; with tokenizer.model beside it the model can be read");
    const json& dropout = member(model, "dropout");
    if (!dropout.is_null() && dropout != 0.0) return unsupported(path, "model.dropout " + json_found(dropout), "null");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        const json& affix = member(model, key);
        if (!affix.is_null() && affix != "")
            return unsupported(path, std::string("model.") + key + " " + json_found(affix), "null");
    }
    const json& ignore_merges = member(model, "ignore_merges");
    if (!ignore_merges.is_null() && !ignore_merges.is_boolean())
        return bad_vocabulary(path, "model.ignore_merges " + json_found(ignore_merges), "true or false");
    return ok_status();
}

Status check_splitting(const json& settings, const std::string& path) {
    const json& normalizer = member(settings, "normalizer");
    if (!normalizer.is_null())
        return unsupported(path, "a normalizer of type " + json_found(member(normalizer, "type")), "none");
    const json& sequence = member(settings, "pre_tokenizer");
    const json& type = member(sequence, "type");
    const json& steps = member(sequence, "pretokenizers");
    if (type != "Sequence" || !steps.is_array() || steps.size() != 2)
        return unsupported(path, "a pre_tokenizer of type " + json_found(type),
                           "Llama 3's Sequence of Split and ByteLevel");
    const json &split = steps[0], &bytes = steps[1];
    if (member(split, "type") != "Split" || member(bytes, "type") != "ByteLevel")
        return unsupported(path,
                           "the pre_tokenizer steps " + json_found(member(split, "type")) + " and " +
                               json_found(member(bytes, "type")),
                           "Split and ByteLevel");
    const json& pattern = member(member(split, "pattern"), "Regex");
    if (pattern != kLlama3SplitPattern)
        return unsupported(path, "the split pattern " + json_found(pattern), "that of Llama 3");
    if (member(split, "behavior") != "Isolated" || member(split, "invert") == true)
        return unsupported(path,
                           "a Split with behavior " + json_found(member(split, "behavior")) + " and invert " +
                               json_found(member(split, "invert")),
                           "\"Isolated\" and false");
    if (member(bytes, "add_prefix_space") != false || member(bytes, "use_regex") != false)
        return unsupported(path,
                           "ByteLevel with add_prefix_space " + json_found(member(bytes, "add_prefix_space")) +
                               " and use_regex " + json_found(member(bytes, "use_regex")),
                           "false for both");
    return ok_status();
}

// The special token that a TemplateProcessing, alone or in a Sequence, puts before a single text.
std::string opening_token(const json& processor) {
    const auto first_of = [](const json& step) -> std::string {
        const json& single = member(step, "single");
        if (member(step, "type") != "TemplateProcessing" || !single.is_array() || single.empty()) return {};
        const json& id = member(member(single[0], "SpecialToken"), "id");
        return id.is_string() ? id.get<std::string>() : std::string();
    };
    if (const json& steps = member(processor, "processors"); steps.is_array())
        for (const json& step : steps)
            if (const auto first = first_of(step); !first.empty()) return first;
    return first_of(processor);
}

// Added tokens extend the vocabulary, or say something about a token that is in it already.
Status apply_added_tokens(Collected& file, const std::string& path, const TokenizerSettings& settings) {
    std::sort(file.added.begin(), file.added.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    for (size_t i = 0; i < file.added.size(); ++i) {
        const AddedToken& token = file.added[i];
        const bool special = token.special || settings.names(token.content);
        const BpeKind kind = special ? BpeKind::control : BpeKind::user_defined;
        auto& tokens = file.parts.tokens;
        const bool first = i == 0 || file.added[i - 1].id != token.id;
        if (first && token.id < tokens.size() && tokens[token.id].spelling == token.content) {
            tokens[token.id].kind = kind;
        } else {
            AUSPEX_TRY(file.parts.add_token(token.id, token.content, kind, path));
        }
    }
    return ok_status();
}

// Words that stand beside the file only, after its own ids. Ids between them that nobody names are unused.
Status add_words_beside(BpeParts& parts, const std::string& path, const TokenizerSettings& settings) {
    const size_t n_own = parts.tokens.size();
    std::map<std::string, size_t, std::less<>> own; // of the words below: where the file has them
    for (const AddedWord& word : settings.added)
        if (word.id >= n_own) own.emplace(word.spelling, SIZE_MAX);
    for (size_t id = 0; id < n_own; ++id)
        if (const auto found = own.find(parts.tokens[id].spelling); found != own.end()) found->second = id;
    parts.id_limit = kMaxAddedId;
    for (const AddedWord& word : settings.added) {
        if (word.id < n_own) continue;
        const std::string named_by = path.substr(0, path.rfind('/') + 1) + word.file;
        if (const size_t own_id = own.find(word.spelling)->second; own_id != SIZE_MAX)
            return bad_vocabulary(named_by, "the id " + std::to_string(word.id) + " for the token " + in_quotes(word.spelling),
                       std::to_string(own_id) + ", its id in tokenizer.json");
        for (size_t id = parts.tokens.size(); id < word.id; ++id)
            AUSPEX_TRY(parts.add_token(id, "", BpeKind::unused, named_by));
        AUSPEX_TRY(parts.add_token(word.id, word.spelling, word.special ? BpeKind::control : BpeKind::user_defined, named_by));
    }
    return ok_status();
}

} // namespace

Result<TokenizerJson> parse_tokenizer_json(std::span<const std::byte> file, const std::string& path,
                                           const TokenizerSettings& settings) {
    if (file.size() > kMaxFileBytes)
        return bad_vocabulary(path, std::to_string(file.size()) + " bytes", "at most " + std::to_string(kMaxFileBytes));
    const auto* text = reinterpret_cast<const char*>(file.data());
    if (!file.empty() && std::memchr(text, 0, file.size())) // would end the parser's input early
        return bad_vocabulary(path, "a zero byte", "JSON");
    Collected collected;
    // Ids have no gaps, and a token takes 6 bytes or more: ,"a":0
    collected.parts.id_limit = std::min<uint64_t>(collected.parts.id_limit, file.size() / 6 + 1);
    {
        Events events(path, collected);
        const bool complete = json::sax_parse(text, text + file.size(), &events);
        AUSPEX_TRY(events.status());
        if (!complete) return bad_vocabulary(path, "bytes that do not parse", "JSON");
    }
    AUSPEX_TRY(check_model(collected, path));
    AUSPEX_TRY(check_splitting(collected.settings, path));
    AUSPEX_TRY(apply_added_tokens(collected, path, settings));
    AUSPEX_TRY(add_words_beside(collected.parts, path, settings));
    collected.parts.ignore_merges = member(collected.settings["model"], "ignore_merges") == true;
    TokenizerJson out;
    out.opening_token = opening_token(member(collected.settings, "post_processor"));
    AUSPEX_TRY_SET(out.model, build_bpe_model(std::move(collected.parts), path));
    return out;
}

} // namespace auspex
