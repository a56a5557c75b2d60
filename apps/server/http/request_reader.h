// A request out of the bytes of a connection. Beast's parser knows the grammar; what Beast takes and a server behind a
// proxy must not is refused here, so that nobody reads another request than whoever stands in front. Leaves reading
// bytes, and time, to the connection.
#pragma once

#include "server/http/http_server.h"

namespace auspex::http {

struct Refusal {
    int status = 400;
    std::string message;
};

class RequestReader {
  public:
    RequestReader(const Limits& limits, std::string peer);
    ~RequestReader();
    RequestReader(const RequestReader&) = delete;
    RequestReader& operator=(const RequestReader&) = delete;

    // Takes what it can from the front of `bytes`, up to the end of the head, later up to the end of the request, and
    // says how much that was. What it left must come again in front of what follows. Nothing is taken after a refusal.
    size_t put(std::string_view bytes);

    bool has_head() const;
    bool is_whole() const;
    const std::optional<Refusal>& refusal() const;
    const Request& request() const; // once it has its head
    Request take();                 // once it is whole

    bool is_http_1_0() const;
    bool keeps_alive() const;
    bool expects_continue() const;
    size_t body_left() const; // bytes that are still to come; 0: none, or chunked

  private:
    class Parser;
    std::unique_ptr<Parser> parser_;
};

// "/a%20b?c" is "/a b". nullopt: a target that is refused: not a path of this server, control bytes, half escapes.
std::optional<std::string> path_of(std::string_view target);

bool equal_without_case(std::string_view a, std::string_view b);

} // namespace auspex::http
