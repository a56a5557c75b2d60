// Lines of batch files.
#include "openai/batch_line.h"

#include "openai/answer.h"
#include "openai/fields.h"
#include "openai/json_text.h"

#include <charconv>

namespace auspex::openai {

namespace {

constexpr size_t kMaxCustomIdBytes = 512;
constexpr std::string_view kIdPrefix = "batch_req_";
constexpr size_t kIdDigits = 12;

bool is_custom_id(const std::string& text) {
    return !text.empty() && text.size() <= kMaxCustomIdBytes;
}

std::string id_of(uint64_t line) {
    const std::string digits = std::to_string(line);
    return std::string(kIdPrefix) + std::string(kIdDigits - std::min(digits.size(), kIdDigits), '0') + digits;
}

std::optional<uint64_t> line_of(std::string_view id) {
    if (!id.starts_with(kIdPrefix)) return std::nullopt;
    id.remove_prefix(kIdPrefix.size());
    uint64_t line = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), line);
    return error == std::errc() && end == id.data() + id.size() ? std::optional(line) : std::nullopt;
}

} // namespace

BatchLine parse_batch_line(std::string_view text) {
    const Json line = parse_json(text);
    if (!line.is_object()) throw RequestError("", "expected a JSON object on the line, " + found(line));
    const Fields fields(line);
    const Json* custom_id = fields.find("custom_id");
    if (!custom_id || !custom_id->is_string() || !is_custom_id(*custom_id))
        fields.refuse("custom_id", "a string of 1 to " + std::to_string(kMaxCustomIdBytes) + " bytes");
    if (const Json* method = fields.find("method"); !method || *method != "POST") fields.refuse("method", "\"POST\"");
    const Json* url = fields.find("url");
    const auto endpoint = url && url->is_string() ? endpoint_of(url->get_ref<const std::string&>()) : std::nullopt;
    if (!endpoint || *endpoint == Endpoint::completion) fields.refuse("url", "\"/v1/completions\" or \"/v1/chat/completions\"");
    const Json* body = fields.find("body");
    if (!body || !body->is_object()) fields.refuse("body", "an object");
    if (Fields(*body).boolean("stream").value_or(false))
        throw RequestError("stream", "expected false: an answer comes whole");
    return {*custom_id, *endpoint, *body};
}

std::optional<std::string> custom_id_of(std::string_view text) {
    std::optional<std::string> custom_id = find_string(text, "custom_id");
    return custom_id && is_custom_id(*custom_id) ? custom_id : std::nullopt;
}

std::string to_text(const ResultLine& result) {
    return to_text(
        Json{{"id", id_of(result.line)},
             {"custom_id", result.custom_id ? Json(*result.custom_id) : Json()},
             {"response", {{"status_code", result.status}, {"request_id", random_id("req_")}, {"body", result.body}}},
             {"error", nullptr}});
}

std::optional<ResultKey> parse_result_line(std::string_view text) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return std::nullopt;
    const Json id = json.value("id", Json()), custom_id = json.value("custom_id", Json());
    const auto line = id.is_string() ? line_of(id.get_ref<const std::string&>()) : std::nullopt;
    if (!line || !json.contains("custom_id") || !json.contains("response")) return std::nullopt;
    ResultKey key{.line = *line};
    if (custom_id.is_string()) key.custom_id = custom_id.get<std::string>();
    const Json::json_pointer code("/response/body/error/code");
    key.is_duplicate = json.contains(code) && json[code] == kDuplicateId;
    return key;
}

} // namespace auspex::openai
