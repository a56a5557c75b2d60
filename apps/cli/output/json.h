// What the files that write JSON share. Absent values are null, keys keep the order they are written in.
#pragma once

#include "cli/values.h"

#include <nlohmann/json.hpp>

namespace auspex::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kSchema = 1;

Json or_null(std::optional<double> value);
Json or_null(const std::string& text); // "" is absent
Json device_json(const auspex_engine_info& engine);
Json tuning_json(const auspex_tuning_report& report);
void print(const Json& json); // one line on stdout

} // namespace auspex::cli
