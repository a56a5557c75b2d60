// JSON files as untrusted text: bounded size and depth, no duplicate top-level keys, errors that name the file.
#pragma once

#include "base/status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace auspex {

// A small file (config.json, an index) as a tree; the tree costs up to 30 times the text.
Result<nlohmann::json> read_json_object(const std::string& path, uint64_t max_bytes);

// A value as it stands in the file, in a few words, for messages.
std::string json_found(const nlohmann::json& value);

} // namespace auspex
