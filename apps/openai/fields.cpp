// Fields of JSON objects.
#include "openai/fields.h"

#include "openai/json_text.h"

#include <cmath>

namespace auspex::openai {

namespace {

std::string shown(double value) {
    return to_text(value == std::floor(value) ? Json(static_cast<int64_t>(value)) : Json(value));
}

} // namespace

std::string found(const Json& value) {
    constexpr size_t most = 40;
    if (value.is_array()) return value.empty() ? "found an empty array" : "found an array";
    if (value.is_object()) return "found an object";
    const std::string text = to_text(value);
    return "found " + (text.size() <= most ? text : value.is_string() ? "a long string" : "a long number");
}

const Json* Fields::find(const char* name) const {
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
}

void Fields::refuse(const char* name, const std::string& expected) const {
    const Json* value = find(name);
    throw RequestError(param(name), "expected " + expected + ", " + (value ? found(*value) : "found nothing"));
}

std::optional<bool> Fields::boolean(const char* name) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) refuse(name, "true or false");
    return value->get<bool>();
}

std::optional<int64_t> Fields::whole(const char* name, int64_t lowest, int64_t highest) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    const bool fits = value->is_number_unsigned() ? value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                                  : value->is_number_integer();
    if (!fits || value->get<int64_t>() < lowest || value->get<int64_t>() > highest)
        refuse(name, "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
    return value->get<int64_t>();
}

std::optional<double> Fields::number(const char* name, double lowest, double highest) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_number() || !(value->get<double>() >= lowest && value->get<double>() <= highest))
        refuse(name, "a number from " + shown(lowest) + " to " + shown(highest));
    return value->get<double>();
}

std::optional<std::string> Fields::text(const char* name, size_t most_bytes) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_string() || value->get_ref<const std::string&>().size() > most_bytes)
        refuse(name, "a string of at most " + std::to_string(most_bytes) + " bytes");
    return value->get<std::string>();
}

} // namespace auspex::openai
