// What the commands' JSON has in common.
#include "cli/common/output/json.h"

#include "cli/common/output/standard_output.h"

namespace auspex::cli {

Json or_null(std::optional<double> value) {
    return value ? Json(*value) : Json();
}

Json or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

void print(const Json& json) {
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    print_text(text + "\n");
}

Json device_json(const auspex_engine_info& engine) {
    return {{"name", engine.device_name},
            {"driver", engine.driver},
            {"api_version", format_api_version(engine.api_version)},
            {"memory_bytes", engine.device_memory_bytes}}; // reserved by this process
}

Json models_json(const ModelOptions& models) {
    return {{"target", or_null(models.target)}, {"draft", or_null(models.draft)}};
}

Json from_float(float value) {
    return std::stod(shortest(value));
}

Json drafter_rounds_json(const std::array<uint64_t, kRoundDrafters>& rounds) {
    Json json = Json::object();
    for (size_t i = 0; i < rounds.size(); ++i)
        json[round_drafter(i)] = rounds[i];
    return json;
}

} // namespace auspex::cli
