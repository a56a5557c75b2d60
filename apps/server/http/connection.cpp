// Connections. Everything here is on the I/O thread; callbacks of the handler may close the connection that calls them.
#include "server/http/connection.h"

#include <boost/asio/post.hpp>

#include <algorithm>

namespace auspex::http {

namespace {

constexpr size_t kReadAhead = 4096; // of requests behind one that is being answered
constexpr size_t kReadsPerTurn = 8; // then others have theirs
constexpr size_t kMostDropped =
    256 * 1024; // read so that the client comes to see the answer before its data is refused
constexpr std::chrono::milliseconds kEndingTime{1000};

} // namespace

// ---- the exchange ------------------------------------------------------------------------------------------
ConnectionExchange::ConnectionExchange(Request request, Connection& connection)
    : request_(std::move(request)), connection_(&connection) {}

void ConnectionExchange::respond(Response response) {
    if (connection_) connection_->respond(std::move(response));
}

void ConnectionExchange::begin_stream(Response head) {
    if (connection_) connection_->begin_stream(std::move(head));
}

void ConnectionExchange::write(std::string piece) {
    if (connection_) connection_->write(piece);
}

void ConnectionExchange::end() {
    if (connection_) connection_->end_stream();
}

void ConnectionExchange::abort() {
    if (connection_) connection_->abort_stream();
}

void ConnectionExchange::on_gone(std::function<void()> callback) {
    if (connection_) on_gone_ = std::move(callback);
}

void ConnectionExchange::forget_client() {
    connection_ = nullptr;
    on_gone_ = nullptr;
    n_unsent_ = 0;
}

void ConnectionExchange::set_gone() {
    is_gone_ = true;
}

// ---- beginning and end -------------------------------------------------------------------------------------
Connection::Connection(Socket socket, std::string peer, Common& common)
    : socket_(std::move(socket)), peer_(std::move(peer)), common_(common), timer_(socket_.get_executor()) {}

void Connection::start() {
    next_request();
}

void Connection::start_refused() {
    is_refused_ = true;
    Response response = refusal(503, "The server has too many connections.");
    response.headers.emplace_back("Retry-After", "1");
    refuse(std::move(response));
}

bool Connection::is_between_requests() const {
    return state_ == State::request && !reader_ && sending_.empty() && out_.empty();
}

void Connection::close(Ending ending, bool tells) {
    if (state_ == State::closed) return;
    const auto self = shared_from_this();
    state_ = State::closed;
    ErrorCode code;
    if (ending == Ending::reset) socket_.set_option(asio::socket_base::linger(true, 0), code);
    socket_.close(code);
    timer_.cancel();
    reader_.reset();
    in_ = pieces_ = out_ = std::string();
    if (answer_.is_stream) --common_.streaming;
    answer_ = {};
    const auto exchange = std::move(exchange_);
    std::function<void()> callback;
    if (exchange) {
        callback = exchange->take_callback();
        exchange->set_gone();
        exchange->forget_client();
    }
    common_.on_closed(*this);
    if (callback && tells) callback();
}

// ---- reading -----------------------------------------------------------------------------------------------
void Connection::next_request() {
    state_ = State::request;
    answer_ = {};
    expect_bytes_within(common_.limits.keep_alive_time);
    parse(std::exchange(in_, std::string())); // an idle connection holds no memory
    wait_for_bytes();
}

// How much may be read at once: never more behind a request than may be kept while it is answered.
size_t Connection::bytes_wanted() const {
    switch (state_) {
    case State::request: {
        const size_t left = reader_ && reader_->has_head() ? reader_->body_left() : 0;
        return left > 0 ? std::min(left, common_.room.size()) : kReadAhead;
    }
    case State::answer:
        return kReadAhead - std::min(kReadAhead, in_.size());
    case State::ending:
        return has_left_ ? 0 : common_.room.size();
    case State::closed:
        return 0;
    }
    return 0;
}

void Connection::wait_for_bytes() {
    const auto self = shared_from_this();
    if (bytes_wanted() > 0) {
        if (std::exchange(is_reading_, true)) return;
        socket_.async_wait(Socket::wait_read, [self](const ErrorCode& code) {
            self->is_reading_ = false;
            if (!code) self->read();
        });
    } else if (state_ == State::answer) {
        if (std::exchange(is_watching_, true)) return;
        socket_.async_wait(Socket::wait_error, [self](const ErrorCode& code) {
            if (!code) self->close(Ending::reset);
        });
    }
}

void Connection::read() {
    for (size_t turn = 0; turn < kReadsPerTurn; ++turn) {
        const size_t wanted = bytes_wanted();
        if (wanted == 0) break;
        ErrorCode code;
        const size_t n = socket_.read_some(asio::buffer(common_.room.data(), wanted), code);
        if (code == asio::error::would_block || code == asio::error::try_again) break;
        if (code == asio::error::interrupted) continue;
        if (code) {
            // One that sends no more has left, also where it would still listen; a last answer it may have.
            has_left_ = code == asio::error::eof && state_ == State::ending && !(out_.empty() && sending_.empty());
            if (!has_left_) close(Ending::quiet);
            return;
        }
        take({common_.room.data(), n});
    }
    wait_for_bytes();
}

void Connection::take(std::string_view bytes) {
    switch (state_) {
    case State::request:
        if (in_.empty()) return parse(bytes);
        in_.append(bytes);
        return parse(std::exchange(in_, std::string()));
    case State::answer:
        in_.append(bytes);
        return;
    case State::ending:
        n_dropped_ += bytes.size();
        if (n_dropped_ > kMostDropped) close(Ending::reset);
        return;
    case State::closed:
        return;
    }
}

// What it leaves is in in_ afterwards.
void Connection::parse(std::string_view bytes) {
    while (!bytes.empty()) {
        if (!reader_) {
            reader_ = std::make_unique<RequestReader>(common_.limits, peer_);
            expect_bytes_within(common_.limits.header_time);
        }
        const bool had_head = reader_->has_head();
        const size_t taken = reader_->put(bytes);
        if (const auto& fault = reader_->refusal()) return refuse(refusal(fault->status, fault->message));
        bytes.remove_prefix(taken);
        if (!had_head && reader_->has_head() && !check_head(/*has_more=*/!bytes.empty())) return;
        if (reader_->is_whole()) {
            in_ = bytes;
            return handle_request();
        }
        if (taken == 0) break;
    }
    in_ = bytes;
    if (!reader_) return;
    if (reader_->has_head()) {
        expect_bytes_within(common_.limits.body_time);
    } else if (in_.empty()) { // there were only empty lines
        reader_.reset();
        expect_bytes_within(common_.limits.keep_alive_time);
    }
}

// False: the request has had its answer.
bool Connection::check_head(bool has_more) {
    std::optional<Response> answer;
    try {
        if (common_.handler.check) answer = common_.handler.check(reader_->request());
    } catch (...) {
        answer = refusal(500, "The server has failed.");
    }
    if (state_ == State::closed) return false;
    if (answer) {
        refuse(std::move(*answer));
        return false;
    }
    if (reader_->expects_continue() && !has_more) {
        out_ += kContinue;
        post_flush();
    }
    return true;
}

void Connection::handle_request() {
    state_ = State::answer;
    read_by_ = kNever;
    answer_ = {.is_head = reader_->request().method == "HEAD",
               .is_http_1_0 = reader_->is_http_1_0(),
               .closes = !reader_->keeps_alive()};
    const auto exchange = exchange_ = std::make_shared<ConnectionExchange>(reader_->take(), *this);
    reader_.reset();
    bool has_failed = false;
    try {
        common_.handler.handle(exchange);
    } catch (...) {
        has_failed = true;
    }
    if (exchange_ != exchange) return;
    const bool is_forgotten = !answer_.has_begun && exchange.use_count() == 2; // by all but this function and exchange_
    if (!has_failed && !is_forgotten) return;
    answer_.closes = true;
    if (answer_.is_stream)
        abort_stream();
    else
        respond(refusal(500, "The server has failed."));
}

// ---- answering ---------------------------------------------------------------------------------------------
Response Connection::refusal(int status, const std::string& message) const {
    Response response;
    bool is_given = false;
    try {
        if (common_.handler.refuse) {
            response = common_.handler.refuse(status, message);
            is_given = is_writable(response);
        }
    } catch (...) {
    }
    if (!is_given) response = {.status = status, .content_type = "text/plain", .body = message + "\n"};
    response.closes = true;
    return response;
}

void Connection::refuse(Response response) {
    answer_ = {.is_head = reader_ && reader_->has_head() && reader_->request().method == "HEAD"};
    state_ = State::ending;
    read_by_ = kNever;
    in_ = std::string();
    reader_.reset();
    response.closes = true;
    queue_whole(std::move(response));
    wait_for_bytes();
}

void Connection::queue_whole(Response response) {
    if (!is_writable(response)) response = refusal(500, "The server has failed.");
    answer_.closes = answer_.closes || response.closes || common_.is_ending;
    answer_.framing = may_have_body(response.status) ? Framing::length : Framing::no_body;
    out_ += head_of(response, {answer_.framing, answer_.is_http_1_0, answer_.closes});
    if (answer_.framing == Framing::length && !answer_.is_head) out_ += response.body;
    answer_.has_begun = answer_.is_ended = true;
    post_flush();
}

void Connection::respond(Response response) {
    if (!answer_.has_begun) queue_whole(std::move(response));
}

void Connection::begin_stream(Response head) {
    if (answer_.has_begun) return;
    if (!is_writable(head)) return queue_whole(std::move(head));
    const Framing framing = answer_.is_http_1_0 ? Framing::close : Framing::chunks;
    answer_.framing = may_have_body(head.status) ? framing : Framing::no_body;
    answer_.closes = answer_.closes || head.closes || common_.is_ending || answer_.framing == Framing::close;
    answer_.has_begun = answer_.is_stream = true;
    ++common_.streaming;
    out_ += head_of(head, {answer_.framing, answer_.is_http_1_0, answer_.closes});
    post_flush();
}

void Connection::write(const std::string& piece) {
    const bool is_open = answer_.is_stream && !answer_.is_ended;
    if (!is_open || piece.empty() || answer_.is_head || answer_.framing == Framing::no_body) return;
    pieces_ += piece;
    post_flush();
}

void Connection::end_stream() {
    if (!answer_.is_stream || answer_.is_ended) return;
    answer_.is_ended = true;
    post_flush();
}

// What was written goes out first: it may say why.
void Connection::abort_stream() {
    if (!answer_.is_stream || answer_.is_ended) return;
    answer_.is_ended = answer_.is_aborted = answer_.closes = true;
    exchange_->on_gone(nullptr);
    post_flush();
}

// What one task writes is sent at once when it has ended.
void Connection::post_flush() {
    count_unsent();
    if (std::exchange(is_flush_posted_, true)) return;
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->is_flush_posted_ = false;
        self->flush();
    });
}

void Connection::flush() {
    if (state_ == State::closed || !sending_.empty()) return;
    if (answer_.framing == Framing::chunks) {
        append_chunk(out_, pieces_);
        const bool has_end = answer_.is_ended && !answer_.is_aborted && !answer_.is_head;
        if (has_end && std::exchange(answer_.framing, Framing::no_body) == Framing::chunks) out_ += kLastChunk;
    } else {
        out_ += pieces_;
    }
    pieces_ = std::string();
    if (out_.empty()) {
        if (answer_.is_ended) finish_answer();
        return;
    }
    sending_ = std::exchange(out_, std::string());
    n_sent_ = 0;
    write_some();
}

void Connection::write_some() {
    count_unsent();
    write_by_ = Clock::now() + common_.limits.write_time;
    watch_clock();
    const auto rest = asio::buffer(sending_.data() + n_sent_, sending_.size() - n_sent_);
    socket_.async_write_some(rest, [self = shared_from_this()](const ErrorCode& code, size_t n) {
        if (self->state_ == State::closed) return;
        if (code) return self->close(Ending::reset);
        self->n_sent_ += n;
        if (self->n_sent_ < self->sending_.size()) return self->write_some();
        self->sending_ = std::string();
        self->n_sent_ = 0;
        self->write_by_ = kNever;
        self->count_unsent();
        self->flush();
    });
}

void Connection::count_unsent() {
    if (exchange_) exchange_->set_unsent(pieces_.size() + out_.size() + sending_.size() - n_sent_);
}

void Connection::finish_answer() {
    if (exchange_) std::exchange(exchange_, nullptr)->forget_client();
    if (std::exchange(answer_.is_stream, false)) --common_.streaming;
    if (answer_.is_aborted && answer_.is_http_1_0) return close(Ending::reset); // an end would look like the whole
    if (answer_.closes || common_.is_ending)
        begin_ending();
    else
        next_request();
}

// The client is told that this was all, and has some time to see it.
void Connection::begin_ending() {
    if (has_left_) return close(Ending::quiet);
    state_ = State::ending;
    answer_ = {};
    in_ = std::string();
    ErrorCode code;
    socket_.shutdown(Socket::shutdown_send, code);
    if (code) return close(Ending::quiet);
    expect_bytes_within(kEndingTime);
    wait_for_bytes();
}

// ---- deadlines ---------------------------------------------------------------------------------------------
void Connection::expect_bytes_within(std::chrono::milliseconds time) {
    read_by_ = Clock::now() + time;
    watch_clock();
}

// The timer is set anew only where it would come too late; check_clock() finds out when it came too early.
void Connection::watch_clock() {
    const auto due = std::min(read_by_, write_by_);
    if (due >= timer_at_) return;
    timer_at_ = due;
    timer_.expires_at(due);
    timer_.async_wait([self = shared_from_this()](const ErrorCode& code) {
        if (!code) self->check_clock();
    });
}

void Connection::check_clock() {
    if (state_ == State::closed) return;
    timer_at_ = kNever;
    const auto now = Clock::now();
    if (write_by_ <= now) return close(Ending::reset);
    if (read_by_ <= now) check_read_clock();
    if (state_ != State::closed) watch_clock();
}

void Connection::check_read_clock() {
    read_by_ = kNever;
    if (state_ == State::ending || !reader_) return close(Ending::quiet);
    refuse(refusal(408, reader_->has_head() ? "The body of the request took too long."
                                            : "The head of the request took too long."));
}

} // namespace auspex::http
