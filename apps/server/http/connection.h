// One connection: it reads requests one after the other, hands each to the handler, sends what the handler answers, and
// sees its client leave, whatever it does at the time. What a request may be is request_reader's.
//
// A connection holds itself while it waits for something, and its server holds it until it has closed.
#pragma once

#include "server/http/sockets.h"

#include "server/http/request_reader.h"
#include "server/http/response_text.h"

#include <boost/asio/steady_timer.hpp>

#include <atomic>

namespace auspex::http {

class Connection;

// What the connections of one server have in common. The I/O thread's, but for the counts.
struct Common {
    Limits limits;
    Handler handler;
    std::vector<char> room = std::vector<char>(65536); // for what arrives, so that no idle connection has its own
    bool is_ending = false;                            // no more requests
    std::function<void(Connection&)> on_closed{};
    std::atomic<uint64_t> accepted = 0, refused = 0;
    std::atomic<size_t> open = 0, streaming = 0;
};

class ConnectionExchange : public Exchange {
  public:
    ConnectionExchange(Request request, Connection& connection);

    const Request& request() const override { return request_; }
    void respond(Response response) override;
    void begin_stream(Response head) override;
    void write(std::string piece) override;
    void end() override;
    void abort() override;
    size_t n_unsent() const override { return n_unsent_; }
    void on_gone(std::function<void()> callback) override;
    bool is_gone() const override { return is_gone_; }

    // The connection's: how much it has not sent, and that it has nothing more to do with this.
    void set_unsent(size_t bytes) { n_unsent_ = bytes; }
    void forget_client(); // its callback, too
    void set_gone();      // before forget_client()
    std::function<void()> take_callback() { return std::exchange(on_gone_, nullptr); }

  private:
    const Request request_;
    Connection* connection_; // null: the answer has been sent, or nobody wants it
    std::function<void()> on_gone_{};
    std::atomic<size_t> n_unsent_ = 0;
    std::atomic<bool> is_gone_ = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    enum class Ending { quiet, reset }; // how the client learns: after all that was sent, or at once

    Connection(Socket socket, std::string peer, Common& common);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void start();
    void start_refused(); // there are too many
    bool is_between_requests() const;
    bool is_refused() const { return is_refused_; }
    const std::string& peer() const { return peer_; }
    void close(Ending ending, bool tells = true); // tells: who waits for on_gone()

    // The exchange's.
    void respond(Response response);
    void begin_stream(Response head);
    void write(const std::string& piece);
    void end_stream();
    void abort_stream();

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr Clock::time_point kNever = Clock::time_point::max();

    enum class State {
        request, // is awaited, or read
        answer,  // is the handler's to give, or on its way
        ending,  // the last answer is on its way, or gone; what arrives is dropped
        closed,
    };
    // Of the answer that is being given.
    struct Answer {
        bool is_head = false; // of a HEAD request
        bool is_http_1_0 = false;
        bool closes = false;
        bool has_begun = false;
        bool is_stream = false;
        bool is_ended = false;
        bool is_aborted = false;
        Framing framing = Framing::length;
    };

    void wait_for_bytes();
    void read();
    size_t bytes_wanted() const;
    void take(std::string_view bytes);
    void parse(std::string_view bytes);
    bool check_head(bool has_more);
    void handle_request();
    void next_request();

    Response refusal(int status, const std::string& message) const;
    void refuse(Response response); // the last answer, to what never became a request
    void queue_whole(Response response);
    void post_flush();
    void flush();
    void write_some();
    void count_unsent();
    void finish_answer();
    void begin_ending();

    void expect_bytes_within(std::chrono::milliseconds time);
    void watch_clock();
    void check_clock();
    void check_read_clock();

    Socket socket_;
    const std::string peer_;
    Common& common_;
    State state_ = State::request;
    bool is_refused_ = false;

    std::string in_{};                        // read and not yet understood
    std::unique_ptr<RequestReader> reader_{}; // of the request that has begun
    bool is_reading_ = false;                 // waits for bytes
    bool is_watching_ = false;                // waits for a reset
    bool has_left_ = false;                   // the client sends no more; only while ending
    size_t n_dropped_ = 0;

    std::shared_ptr<ConnectionExchange> exchange_{};
    Answer answer_{};
    std::string pieces_{}; // of a stream, not yet a chunk
    std::string out_{};    // behind what is being sent
    std::string sending_{};
    size_t n_sent_ = 0; // of sending_
    bool is_flush_posted_ = false;

    asio::steady_timer timer_;
    Clock::time_point read_by_ = kNever, write_by_ = kNever;
    Clock::time_point timer_at_ = kNever; // kNever: it does not run
};

} // namespace auspex::http
