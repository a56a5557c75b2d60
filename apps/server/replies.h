// What clients get of their requests: turns what the engine thread tells into answers, whole or piece by piece. Belongs to
// the I/O thread.
#pragma once

#include "openai/chunks.h"
#include "server/engine/engine_thread.h"
#include "server/metrics.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace auspex::server {

class Replies {
  public:
    explicit Replies(Metrics& metrics) : metrics_(metrics) {}

    // gone: its client has left.
    void open(std::shared_ptr<Ticket> ticket, std::string endpoint, std::vector<http::Header> headers,
              std::function<void(std::shared_ptr<Ticket>)> gone);
    void take(StepNews step);
    // Ends all of them with this: the engine's thread will not.
    void refuse_all(const openai::RequestError& error);
    // What is silent for so long gets a comment, so that nobody on the way takes it for dead.
    void keep_alive(Clock::duration silence);
    size_t n_open() const { return replies_.size(); }

  private:
    struct Reply {
        std::shared_ptr<Ticket> ticket;
        std::string endpoint;
        std::vector<http::Header> headers;
        std::optional<openai::Chunks> chunks{}; // of a stream that has begun
        size_t n_ended = 0;                     // choices
        std::optional<ChoiceNews> last{};       // the last choice's end
        Clock::time_point last_write{};
    };

    void begin(Reply& reply, const Ticket::Progress& progress);
    void write(Reply& reply, std::string text);
    void news(Reply& reply, const std::vector<ChoiceNews>& news);
    void end(Reply& reply);
    void refuse(Reply& reply, const openai::RequestError& error, uint32_t retry_after_s);
    void close(const Ticket* ticket, Metrics::Result result);

    Metrics& metrics_;
    std::map<const Ticket*, Reply> replies_;
};

// The answer to what is refused. retry_after_s: 0 for none; a 503 has one in any case.
http::Response error_response(const openai::RequestError& error, uint32_t retry_after_s = 0);

} // namespace auspex::server
