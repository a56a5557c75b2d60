// Reads whole, writes whole.
#include "formats/entry_file.h"

#include "base/platform.h"
#include "base/replace_file.h"
#include "formats/json.h"

namespace auspex {

namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kMaxText = 512; // bytes of one text of a key

json fields_of(const EntryFile::Key& key) {
    json fields = json::object();
    for (const auto& [name, text] : key) fields[name] = in_quotes(text, kMaxText); // ASCII, as JSON wants it
    return fields;
}

bool has_fields(const json& entry, const json& fields) {
    if (!entry.is_object()) return false;
    for (const auto& [name, text] : fields.items())
        if (!entry.contains(name) || entry.at(name) != text) return false;
    return true;
}

} // namespace

// The entries of a file that is there and sound.
json EntryFile::read(const Logger& log) const {
    if (!path_exists(path_)) return json::array();
    auto file = read_json_object(path_, max_bytes_);
    if (!file.ok()) {
        log(LogLevel::warning, file.status().message() + "; " + kept_thing_ + " is not used");
        return json::array();
    }
    const json& root = file.value();
    if (!root.contains("format") || root["format"] != kFormat || !root.contains("entries") || !root["entries"].is_array() ||
        root["entries"].size() > kMaxEntries) {
        log(LogLevel::warning, path_ + ": found no list of at most " + std::to_string(kMaxEntries) + " entries of format " +
                                   std::to_string(kFormat) + "; " + kept_thing_ + " is not used");
        return json::array();
    }
    return root["entries"];
}

std::optional<json> EntryFile::find(const Key& key, const Logger& log) const {
    if (path_.empty()) return std::nullopt;
    const json fields = fields_of(key);
    for (const json& entry : read(log))
        if (has_fields(entry, fields)) return std::make_optional(entry);
    return std::nullopt;
}

bool EntryFile::put(const Key& key, const json& values, const Logger& log) const {
    if (path_.empty()) return false;
    json entry = fields_of(key), kept = json::array();
    for (const json& other : read(log))
        if (other.is_object() && !has_fields(other, entry)) kept.push_back(other);
    while (kept.size() >= kMaxEntries) kept.erase(kept.begin());
    entry.update(values);
    kept.push_back(entry);
    const auto text_of = [](const json& entries) {
        return json{{"format", kFormat}, {"entries", entries}}.dump(-1, ' ', true, json::error_handler_t::replace);
    };
    std::string text = text_of(kept);
    while (text.size() > max_bytes_ && kept.size() > 1) {
        kept.erase(kept.begin());
        text = text_of(kept);
    }
    const Status written = replace_file(path_, text);
    if (!written.ok()) log(LogLevel::warning, written.message() + "; " + kept_thing_ + " is not kept");
    return written.ok();
}

} // namespace auspex
