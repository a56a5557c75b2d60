// An entry: "rows_agree": true, "timed": true, "wide": true, "texels": false, "norm_stage_rows": 1, "outs": 4, "many_outs": 4, "teams": 1,
// "ahead": 1, "many_ahead": 1, "staged_bytes": 0, "int8_drafts": false, "rows": [1, …], "block_rows": [1, …], "vocab_threads": 8, "attention_rows": 8, "matrices": false, "matrix_rows": 32, "matrix_outs": 64, "matrix_blocks": 1.
#include "session/tuning/tuning_store.h"

#include <nlohmann/json.hpp>

#include <exception>

namespace auspex {

namespace {

using nlohmann::json;

constexpr size_t kMaxRows = 16;
constexpr uint64_t kMaxSize = 65536; // larger than any number that may be chosen

EntryFile::Key fields(const TuningKey& key) {
    return {{"device", key.device}, {"driver", key.driver}, {"shaders", key.shaders}, {"formats", key.formats}, {"widths", key.widths}, {"numerics", key.numerics}};
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
                          read(entry, "texels", t.texels) && read(entry, "norm_stage_rows", t.norm_stage_rows) &&
                          read(entry, "outs", t.matvec_outs) && read(entry, "many_outs", t.matvec_many_outs) &&
                          read(entry, "teams", t.matvec_teams) && read(entry, "ahead", t.matvec_ahead) && read(entry, "many_ahead", t.matvec_many_ahead) &&
                          read(entry, "staged_bytes", t.matvec_staged_bytes) &&
                          read(entry, "int8_drafts", t.int8_drafts) &&
                          read(entry, "rows", t.matvec_rows) && read(entry, "block_rows", t.matvec_quant_rows) &&
                          read(entry, "vocab_threads", t.vocab_threads) && read(entry, "attention_rows", t.attention_rows) &&
                          read(entry, "matrix_rows", t.matrix_rows) && read(entry, "matrix_outs", t.matrix_outs) &&
                          read(entry, "matrix_blocks", t.matrix_blocks);
    bool matrices = false;
    if (!read_all || !read(entry, "matrices", matrices)) return std::nullopt;
    if (matrices && times_matrices(caps)) t = with_matrices(t, caps);
    if (matrices != t.prompts_use_matrices() || !may_choose(t, base, caps)) return std::nullopt;
    if (!stored.rows_agree && (t.matvec_rows.size() > 1 || t.matvec_quant_rows.size() > 1)) return std::nullopt;
    return stored;
}

} // namespace

std::optional<StoredTuning> TuningStore::load(const TuningKey& key, const Tuning& base, const DeviceCaps& caps, const Logger& log) const try {
    const auto entry = file_.find(fields(key), log);
    if (!entry) return std::nullopt;
    auto stored = read_entry(*entry, base, caps);
    if (!stored) log(LogLevel::warning, path() + ": found sizes that may not be chosen, expected what this program wrote; they are not used");
    return stored;
} catch (const std::exception& error) {
    log(LogLevel::warning, path() + ": " + in_quotes(error.what()));
    return std::nullopt;
}

bool TuningStore::save(const TuningKey& key, const StoredTuning& stored, const Logger& log) const try {
    const Tuning& t = stored.tuning;
    return file_.put(fields(key), {{"rows_agree", stored.rows_agree}, {"timed", stored.is_timed}, {"wide", t.wide}, {"texels", t.texels},
                                   {"norm_stage_rows", t.norm_stage_rows}, {"outs", t.matvec_outs}, {"many_outs", t.matvec_many_outs}, {"teams", t.matvec_teams}, {"ahead", t.matvec_ahead}, {"many_ahead", t.matvec_many_ahead},
                                   {"staged_bytes", t.matvec_staged_bytes}, {"int8_drafts", t.int8_drafts},
                                   {"rows", t.matvec_rows}, {"block_rows", t.matvec_quant_rows}, {"vocab_threads", t.vocab_threads},
                                   {"attention_rows", t.attention_rows}, {"matrices", t.prompts_use_matrices()}, {"matrix_rows", t.matrix_rows}, {"matrix_outs", t.matrix_outs}, {"matrix_blocks", t.matrix_blocks}}, log);
} catch (const std::exception& error) {
    log(LogLevel::warning, path() + ": " + in_quotes(error.what()));
    return false;
}

} // namespace auspex
