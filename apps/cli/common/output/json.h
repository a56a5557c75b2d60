// What the files that write JSON share. Absent values are null, keys keep the order they are written in.
#pragma once

#include "cli/common/output/speculation_report.h"

#include <nlohmann/json.hpp>

namespace auspex::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kSchema = 1;

Json or_null(std::optional<double> value);
Json or_null(const std::string& text); // "" is absent
Json device_json(const auspex_engine_info& engine);
Json models_json(const ModelOptions& models);
Json drafter_rounds_json(const std::array<uint64_t, kRoundDrafters>& rounds);
Json from_float(float value); // its own digits, not those of the nearest double
void print(const Json& json); // one line on stdout

} // namespace auspex::cli
