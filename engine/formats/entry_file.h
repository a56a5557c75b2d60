// A small JSON file of entries, each under a key of texts: what is measured and kept between runs.
// {"format": 1, "entries": [{key fields …, value fields …}, …]}, the latest entry last. Only a hint: a file that is
// damaged is logged and left behind. What an entry's values may be is its owner's affair.
#pragma once

#include "base/log.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace auspex {

class EntryFile {
  public:
    static constexpr size_t kMaxEntries = 32;
    using Key = std::vector<std::pair<const char*, std::string>>; // field, text of any bytes

    // Empty path: nothing is kept. kept_thing, for messages: "what was measured of devices".
    EntryFile(std::string path, uint64_t max_bytes, const char* kept_thing) : path_(std::move(path)), max_bytes_(max_bytes), kept_thing_(kept_thing) {}

    const std::string& path() const { return path_; }

    // The entry of exactly this key. Throws what nlohmann::json throws; so does put.
    std::optional<nlohmann::json> find(const Key& key, const Logger& log) const;
    // Entries of other keys stay, as many as fit; the oldest go first. False: it could not be written, and the log says why.
    bool put(const Key& key, const nlohmann::json& values, const Logger& log) const;

  private:
    nlohmann::json read(const Logger& log) const;
    std::string path_;
    uint64_t max_bytes_;
    const char* kept_thing_;
};

} // namespace auspex
