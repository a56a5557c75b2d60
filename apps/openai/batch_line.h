// The lines of OpenAI's batch files: a request, and what came of it.
#pragma once

#include "openai/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace auspex::openai {

inline constexpr const char* kDuplicateId = "duplicate_custom_id"; // code of the error

// {"custom_id": …, "method": "POST", "url": …, "body": {…}}
struct BatchLine {
    std::string custom_id;
    Endpoint endpoint = Endpoint::completions;
    Json body;
};
// Throws RequestError.
BatchLine parse_batch_line(std::string_view text);
// As far as the line can be read; nullopt: it has none that is valid.
std::optional<std::string> custom_id_of(std::string_view text);

// {"id": …, "custom_id": …, "response": {"status_code": …, "request_id": …, "body": {…}}, "error": null}
struct ResultLine {
    uint64_t line = 0; // of the request in its file, from 1; it makes the id
    std::optional<std::string> custom_id{};
    int status = 200;
    Json body{};
};
std::string to_text(const ResultLine& result); // without a line end
// How each of them begins.
inline constexpr std::string_view kResultBegin = "{\"id\":\"batch_req_";

// Which request a line of results answers. nullopt: it is no such line.
struct ResultKey {
    uint64_t line = 0;
    std::optional<std::string> custom_id{};
    bool is_duplicate = false; // it says that the custom_id stands in an earlier line
};
std::optional<ResultKey> parse_result_line(std::string_view text);

} // namespace auspex::openai
