// A page on the internet can make a browser ask a server on its user's own machine: by a name that leads there (Host), or
// across origins (Origin). Neither gets further than this.
#include "server/guard.h"

#include "cli/common/input/values.h"

#include <algorithm>

namespace auspex::server {

namespace {

// Takes as long wherever the difference is.
bool is_equal(const std::string& a, const std::string& b) {
    unsigned difference = a.size() == b.size() ? 0 : 1;
    for (size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
    return difference == 0;
}

// Without its port; of an address of IPv6 with its brackets.
std::string name_of(const std::string& host) {
    if (!host.empty() && host.front() == '[') return host.substr(0, host.find(']') + 1);
    return host.substr(0, host.find(':'));
}

bool is_address(const std::string& name) {
    if (name.size() > 2 && name.front() == '[' && name.back() == ']')
        return std::all_of(name.begin() + 1, name.end() - 1, [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
        });
    return std::count(name.begin(), name.end(), '.') == 3 &&
           std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

} // namespace

bool Guard::is_host_allowed(const http::Request& request) const {
    const std::string* host = request.find("Host");
    if (!host || request.peer == "unix") return true; // HTTP/1.0 has none, and no browser speaks it
    const std::string name = cli::lower_case(name_of(*host));
    const auto& allowed = settings_.allowed_hosts;
    return name == "localhost" || is_address(name) || std::find(allowed.begin(), allowed.end(), name) != allowed.end();
}

const std::string* Guard::cors_origin(const http::Request& request) const {
    const std::string* origin = request.find("Origin");
    if (!origin) return nullptr;
    const auto& origins = settings_.cors_origins;
    const auto at = std::find(origins.begin(), origins.end(), *origin);
    return at == origins.end() ? nullptr : &*at;
}

std::optional<size_t> Guard::key_of(const http::Request& request) const {
    std::string given;
    if (const std::string* bearer = request.find("Authorization")) {
        const size_t space = bearer->find(' ');
        if (space != std::string::npos && cli::lower_case(bearer->substr(0, space)) == "bearer")
            given = bearer->substr(bearer->find_first_not_of(' ', space) == std::string::npos ? bearer->size() : bearer->find_first_not_of(' ', space));
    }
    if (const std::string* key = request.find("x-api-key"); key && given.empty()) given = *key;
    std::optional<size_t> found;
    for (size_t i = 0; i < settings_.keys.size(); ++i)
        if (is_equal(given, settings_.keys[i])) found = i;
    return found;
}

void Guard::check(const http::Request& request, bool is_open) const {
    using openai::RequestError;
    if (!is_host_allowed(request))
        throw RequestError("", "Host: expected localhost, an address or a name of --allowed-hosts", "host_not_allowed", 403);
    if (const std::string* origin = request.find("Origin"); origin && !cors_origin(request)) {
        const std::string* host = request.find("Host");
        if (!host || (*origin != "http://" + *host && *origin != "https://" + *host))
            throw RequestError("", "Origin: expected this server's own or one of --cors-origin", "origin_not_allowed", 403);
    }
    if (!is_open && !settings_.keys.empty() && !key_of(request))
        throw RequestError("", "expected a valid key, as Authorization: Bearer KEY or x-api-key: KEY", "invalid_api_key", 401);
    if (request.method == "POST") {
        const std::string* type = request.find("Content-Type");
        const std::string name = type ? cli::lower_case(type->substr(0, type->find(';'))) : "";
        if (name.substr(0, name.find_last_not_of(" \t") + 1) != "application/json")
            throw RequestError("", "Content-Type: expected application/json", "unsupported_media_type", 415);
    }
}

} // namespace auspex::server
