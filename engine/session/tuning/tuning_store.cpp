// {"format": 1, "entries": [{"device": …, …, "rows_agree": true, "timed": true, "wide": true, "outs": 4, "teams": 1,
// "rows": [1, …], "block_rows": [1, …], "vocab_threads": 8}, …]}, the latest entry last.
#include "session/tuning/tuning_store.h"

#include "base/platform.h"
#include "base/replace_file.h"
#include "formats/json.h"

#include <exception>

namespace auspex {

namespace {

using nlohmann::json;

constexpr uint64_t kMaxBytes = 64 << 10;
constexpr size_t kMaxEntries = 32, kMaxRows = 16, kMaxText = 300;
constexpr int kFormat = 1;
constexpr uint64_t kMaxSize = 1024; // larger than any number that may be chosen

json key_fields(const TuningKey& key) {
    const auto text = [](const std::string& part) { return in_quotes(part, kMaxText); }; // ASCII, as JSON wants it
    return {{"device", text(key.device)}, {"driver", text(key.driver)}, {"shaders", text(key.shaders)},
            {"formats", text(key.formats)}, {"numerics", text(key.numerics)}};
}

bool has_key(const json& entry, const json& key) {
    if (!entry.is_object()) return false;
    for (const auto& [name, text] : key.items())
        if (!entry.contains(name) || entry.at(name) != text) return false;
    return true;
}

bool read(const json& entry, const char* name, bool& out) {
    if (!entry.contains(name) || !entry.at(name).is_boolean()) return false;
    out = entry.at(name).get<bool>();
    return true;
}

bool read(const json& value, uint32_t& out) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxSize) return false;
    out = value.get<uint32_t>();
    return true;
}

bool read(const json& entry, const char* name, uint32_t& out) {
    return entry.contains(name) && read(entry.at(name), out);
}

bool read(const json& entry, const char* name, std::vector<uint32_t>& out) {
    if (!entry.contains(name) || !entry.at(name).is_array() || entry.at(name).size() > kMaxRows) return false;
    out.clear();
    for (const json& value : entry.at(name))
        if (!read(value, out.emplace_back())) return false;
    return true;
}

// All of an entry or nothing of it.
std::optional<StoredTuning> read_entry(const json& entry, const Tuning& base, const DeviceCaps& caps) {
    StoredTuning stored{.tuning = base};
    Tuning& t = stored.tuning;
    const bool read_all = read(entry, "rows_agree", stored.rows_agree) && read(entry, "timed", stored.is_timed) && read(entry, "wide", t.wide) &&
                          read(entry, "outs", t.matvec_outs) && read(entry, "teams", t.matvec_teams) && read(entry, "rows", t.matvec_rows) &&
                          read(entry, "block_rows", t.matvec_quant_rows) && read(entry, "vocab_threads", t.vocab_threads);
    if (!read_all || !may_choose(t, base, caps)) return std::nullopt;
    if (!stored.rows_agree && (t.matvec_rows.size() > 1 || t.matvec_quant_rows.size() > 1)) return std::nullopt;
    return stored;
}

json write_entry(const json& key, const StoredTuning& stored) {
    json entry = key;
    entry["rows_agree"] = stored.rows_agree;
    entry["timed"] = stored.is_timed;
    entry["wide"] = stored.tuning.wide;
    entry["outs"] = stored.tuning.matvec_outs;
    entry["teams"] = stored.tuning.matvec_teams;
    entry["rows"] = stored.tuning.matvec_rows;
    entry["block_rows"] = stored.tuning.matvec_quant_rows;
    entry["vocab_threads"] = stored.tuning.vocab_threads;
    return entry;
}

// The entries of a file that is there and sound; a damaged one is logged.
json read_entries(const std::string& path, const Logger& log) {
    if (!path_exists(path)) return json::array();
    auto file = read_json_object(path, kMaxBytes);
    if (!file.ok()) {
        log(LogLevel::warning, file.status().message() + "; what was measured of devices is not used");
        return json::array();
    }
    const json& root = file.value();
    if (!root.contains("format") || root["format"] != kFormat || !root.contains("entries") || !root["entries"].is_array() ||
        root["entries"].size() > kMaxEntries) {
        log(LogLevel::warning, path + ": found no list of at most " + std::to_string(kMaxEntries) + " entries of format 1; what was measured of devices is not used");
        return json::array();
    }
    return root["entries"];
}

} // namespace

std::optional<StoredTuning> TuningStore::load(const TuningKey& key, const Tuning& base, const DeviceCaps& caps, const Logger& log) const try {
    if (path_.empty()) return std::nullopt;
    const json fields = key_fields(key);
    for (const json& entry : read_entries(path_, log)) {
        if (!has_key(entry, fields)) continue;
        auto stored = read_entry(entry, base, caps);
        if (!stored) log(LogLevel::warning, path_ + ": found sizes that may not be chosen, expected what this program wrote; they are not used");
        return stored;
    }
    return std::nullopt;
} catch (const std::exception& error) {
    log(LogLevel::warning, path_ + ": " + in_quotes(error.what()));
    return std::nullopt;
}

bool TuningStore::save(const TuningKey& key, const StoredTuning& stored, const Logger& log) const try {
    if (path_.empty()) return false;
    const json fields = key_fields(key);
    json kept = json::array();
    for (const json& entry : read_entries(path_, log))
        if (entry.is_object() && !has_key(entry, fields)) kept.push_back(entry);
    while (kept.size() >= kMaxEntries) kept.erase(kept.begin());
    kept.push_back(write_entry(fields, stored));
    const auto text_of = [](const json& entries) {
        return json{{"format", kFormat}, {"entries", entries}}.dump(-1, ' ', true, json::error_handler_t::replace);
    };
    std::string text = text_of(kept);
    while (text.size() > kMaxBytes && kept.size() > 1) {
        kept.erase(kept.begin());
        text = text_of(kept);
    }
    const Status written = replace_file(path_, text);
    if (!written.ok()) log(LogLevel::warning, written.message() + "; what was measured of this device is not kept");
    return written.ok();
} catch (const std::exception& error) {
    log(LogLevel::warning, path_ + ": " + in_quotes(error.what()));
    return false;
}

} // namespace auspex
