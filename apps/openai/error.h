// A request that is refused, as OpenAI's interface tells it: {"error": {"message", "type", "param", "code"}}.
#pragma once

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace auspex::openai {

using Json = nlohmann::ordered_json;

class RequestError : public std::runtime_error {
  public:
    // param: the field that is wrong, "" for none; code: a word for programs, "" for none.
    RequestError(std::string param, const std::string& message, std::string code = {}, int status = 400)
        : std::runtime_error(param.empty() ? message : param + ": " + message), param_(std::move(param)),
          code_(std::move(code)), status_(status) {}
    int status() const { return status_; } // of HTTP
    const std::string& code() const { return code_; }

    Json body() const {
        const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
        return {{"error",
                 {{"message", what()}, {"type", type()}, {"param", or_null(param_)}, {"code", or_null(code_)}}}};
    }

  private:
    const char* type() const {
        switch (status_) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 429:
            return "rate_limit_error";
        case 500:
            return "server_error";
        case 503:
            return "unavailable_error";
        default:
            return "invalid_request_error";
        }
    }

    std::string param_, code_;
    int status_;
};

} // namespace auspex::openai
