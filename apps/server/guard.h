// Who may ask: keys, hosts, pages of others. Looked at before anything else of a request, and before its body is read.
#pragma once

#include "openai/error.h"
#include "server/settings.h"

#include <optional>

namespace auspex::server {

class Guard {
  public:
    explicit Guard(const Settings& settings) : settings_(settings) {}

    // Throws openai::RequestError. is_open: needs no key.
    void check(const http::Request& request, bool is_open) const;
    // Of settings.cors_origins the one that the request comes from; nullptr: from none of them.
    const std::string* cors_origin(const http::Request& request) const;
    // Which of settings.keys it has; none: no valid one.
    std::optional<size_t> key_of(const http::Request& request) const;

  private:
    bool is_host_allowed(const http::Request& request) const;

    const Settings& settings_;
};

} // namespace auspex::server
