// One bounded parse with a watcher: depth, duplicate keys and zero bytes are caught while the text is read, and every
// failure of the parser becomes one line that names the file. What keys mean is the business of others.
#include "formats/json.h"

#include "base/catching.h"
#include "base/platform.h"

#include <algorithm>
#include <set>

namespace auspex {
namespace {

using nlohmann::json;

constexpr int kMaxJsonDepth = 64;

} // namespace

std::string json_found(const json& value) {
    switch (value.type()) {
    case json::value_t::null:
        return "null";
    case json::value_t::object:
        return "an object";
    case json::value_t::array:
        return "a list";
    case json::value_t::string:
        return "the text " + in_quotes(value.get_ref<const std::string&>());
    default:
        return value.dump(); // numbers and booleans
    }
}

namespace {

// Duplicate keys are refused at the top level, where the keys that matter stand: readers disagree about which one counts.
Result<json> parse_json_file(const std::string& path, uint64_t max_bytes) {
    AUSPEX_TRY_ASSIGN(text, read_text_file(path, max_bytes));
    if (text.find('\0') != std::string::npos) // would end the parser's input early
        return Status(Code::bad_file, path + ": found a zero byte, expected JSON; fetch the file again");
    bool too_deep = false;
    std::string last_key, duplicate;
    std::set<std::string> top_keys;
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key) {
            last_key = parsed.get_ref<const std::string&>();
            if (depth == 1 && !top_keys.insert(last_key).second) duplicate = last_key;
        }
        const bool opens = event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
        if (opens && depth >= kMaxJsonDepth) too_deep = true;
        return !too_deep;
    };
    json root;
    try {
        root = json::parse(text, watch);
    } catch (const json::parse_error& error) {
        const size_t at = std::min(text.size(), error.byte > 8 ? error.byte - 8 : 0);
        return Status(Code::bad_file, path + ": found " + in_quotes(text.substr(at, 16), 16) + " at byte " +
                                          std::to_string(error.byte) +
                                          (last_key.empty() ? "" : " (key " + in_quotes(last_key) + ")") +
                                          ", expected JSON; NaN and Infinity are not JSON either");
    } catch (const json::exception&) { // a number beyond the range of double
        return Status(Code::bad_file, path + ": found a number too large to represent (key " + in_quotes(last_key) +
                                          "), expected a finite number");
    }
    if (too_deep)
        return Status(Code::bad_file, path + ": found JSON nested deeper than " + std::to_string(kMaxJsonDepth) +
                                          " levels, expected a model's file");
    if (!duplicate.empty())
        return Status(Code::bad_file,
                      path + ": found the key " + in_quotes(duplicate) + " twice, expected once; remove one of them");
    if (!root.is_object())
        return Status(Code::bad_file, path + ": found " + json_found(root) + ", expected a JSON object");
    return root;
}

} // namespace

Result<json> read_json_object(const std::string& path, uint64_t max_bytes) {
    return catching(path, "to read it", [&] { return parse_json_file(path, max_bytes); });
}

} // namespace auspex
