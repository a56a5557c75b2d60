// HTTP/1.1 for a server: connections, limits, deadlines, streams and their readers. Boost.Beast does the work, and only
// http_server.cpp and its neighbours know it. Leaves to the handler what is asked, and what is answered.
//
// Threads: run() is the I/O thread, which calls the handler and all callbacks. Everything else belongs on that thread,
// too, unless said otherwise; post() brings it there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace auspex::http {

using Header = std::pair<std::string, std::string>;

// What a client asks, as far as it is read. Names of headers are compared without case.
struct Request {
    std::string method; // "GET"; as it was sent
    std::string target; // path and query, as they were sent; begins with '/'
    std::string path;   // of the target, up to '?', percent-decoded
    std::vector<Header> headers;
    std::string body;        // empty while check() looks at the head
    std::string peer;        // address of the client, without its port; "unix" of a unix socket
    uint64_t body_bytes = 0; // as announced; 0: none, or chunked

    // The value, of several the first; nullptr: it has none.
    const std::string* find(std::string_view name) const;
    size_t count(std::string_view name) const;
};

struct Response {
    int status = 200;
    std::string content_type = "application/json";
    std::string body{};
    std::vector<Header> headers{}; // besides Content-Type, Content-Length, Date and Connection
    bool closes = false;           // the connection, afterwards
};

// A request and its answer. It lives as long as somebody holds it; once its client has gone everything is ignored.
class Exchange {
  public:
    virtual ~Exchange() = default;
    virtual const Request& request() const = 0;

    // The whole answer.
    virtual void respond(Response response) = 0;
    // An answer of unknown length: its head, then pieces, then the end. body is ignored.
    virtual void begin_stream(Response head) = 0;
    virtual void write(std::string piece) = 0; // after begin_stream; empty: nothing
    virtual void end() = 0;                    // after begin_stream
    // Ends a stream without its end: the client sees that something is missing.
    virtual void abort() = 0;

    // Bytes that were written and are not yet the kernel's. Any thread.
    virtual size_t n_unsent() const = 0;
    // Called once if the client leaves, or the server gives it up, before the answer has been sent whole. Replaces what was
    // there before.
    virtual void on_gone(std::function<void()> callback) = 0;
    virtual bool is_gone() const = 0; // any thread
};

struct Limits {
    size_t header_bytes = 16384;
    size_t headers = 100;
    size_t body_bytes = size_t{4} << 20;
    size_t connections = 4096;
    size_t connections_per_address = 256; // not of unix sockets
    std::chrono::milliseconds header_time{10000};    // from the first byte of a head to its end
    std::chrono::milliseconds body_time{30000};      // without a byte of a body
    std::chrono::milliseconds write_time{30000};     // without a byte taken by the client
    std::chrono::milliseconds keep_alive_time{60000}; // between requests
};

struct Options {
    std::string host = "127.0.0.1"; // a name or an address
    uint16_t port = 8080;           // 0: any that is free
    std::string unix_path{};        // not empty: this socket instead, mode 0600
    Limits limits{};
};

// The address cannot be had; the message names it.
class BindError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Handler {
    // Looks at a head before its body is read: what it gives is the whole answer, and the connection closes. May be empty.
    std::function<std::optional<Response>(const Request&)> check{};
    // Gets each request that is whole, and answers then or later. What it throws becomes a 500 and closes.
    std::function<void(std::shared_ptr<Exchange>)> handle{};
    // The answer to what never became a request: 400, 408, 413, 415, 417, 431, 501, 503; and to what a failure of the
    // handler leaves unanswered: 500. Empty: a short text.
    std::function<Response(int status, const std::string& message)> refuse{};
};

struct Counts {
    uint64_t accepted = 0; // connections, since the start
    uint64_t refused = 0;  // of them: over a cap
    size_t open = 0;       // now
    size_t streaming = 0;  // of them
};

class Server {
  public:
    // Binds and listens; nothing is accepted before run(). Throws BindError.
    Server(const Options& options, Handler handler);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    std::string url() const; // "http://127.0.0.1:8080", "unix:/run/auspex.sock"
    uint16_t port() const;   // 0 of a unix socket

    void run();                               // until stop(); on the calling thread
    void post(std::function<void()> task);    // to the I/O thread; any thread
    void after(std::chrono::milliseconds delay, std::function<void()> task);
    void on_signal(std::function<void(int signal)> callback); // SIGINT and SIGTERM, each time one comes
    void stop_accepting();                    // and closes connections that are between requests
    void stop();                              // closes everything; any thread
    Counts counts() const;                    // any thread

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace auspex::http
