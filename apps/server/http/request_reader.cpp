// Requests out of bytes.
#include "server/http/request_reader.h"

#include "server/http/response_text.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <limits>

namespace auspex::http {

namespace beast = boost::beast;
using beast::error_code;
using beast::http::error;

namespace {

constexpr const char* kUnknownCoding = "Of transfer encodings only \"chunked\" is known.";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr size_t kFirstBodyBytes = 65536; // the room a body gets at once, whatever it announces

std::string text_of(beast::string_view view) {
    return {view.data(), view.size()};
}

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool is_control(char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
}

int digit_of(char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    const char small = lower(letter);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// What the lines of a whole head must not hold, whatever they say: ends of lines that are none, and folded lines.
std::optional<Refusal> fault_of_lines(std::string_view head, const Limits& limits) {
    size_t lines = 0;
    for (size_t at = 0; at < head.size(); ++at) {
        if (head[at] == '\r' && at + 1 < head.size() && head[at + 1] == '\n') {
            ++at;
            ++lines;
            if (at + 1 < head.size() && (head[at + 1] == ' ' || head[at + 1] == '\t'))
                return Refusal{400, "A header is folded over several lines."};
        } else if (is_control(head[at]) && head[at] != '\t') {
            return Refusal{400, "The head of the request holds a control character."};
        }
    }
    if (lines > limits.headers + 2) // its first line and the empty one are none
        return Refusal{431, "The request has more than " + std::to_string(limits.headers) + " headers."};
    return std::nullopt;
}

// What the headers of a head that Beast has taken must not say. Order matters where a request has several faults: what
// makes its end uncertain comes first.
std::optional<Refusal> fault_of_head(const Request& request, bool is_http_1_0) {
    const size_t lengths = request.count("Content-Length"), codings = request.count("Transfer-Encoding");
    if (lengths + codings > 1 && lengths > 0)
        return Refusal{400, "The request says more than once how long its body is."};
    if (const std::string* length = request.find("Content-Length"))
        if (length->empty() ||
            !std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; }))
            return Refusal{400, "Content-Length must be a number."};
    if (codings > 1 || (codings == 1 && *request.find("Transfer-Encoding") != "chunked"))
        return Refusal{501, kUnknownCoding};
    if (codings == 1 && is_http_1_0) return Refusal{400, "HTTP/1.0 has no transfer encodings."};
    if (const size_t hosts = request.count("Host"); hosts > 1 || (hosts == 0 && !is_http_1_0))
        return Refusal{400, "The request must have one Host header."};
    if (const std::string* expected = request.find("Expect"))
        if (request.count("Expect") > 1 || !equal_without_case(*expected, "100-continue"))
            return Refusal{417, "Of expectations only \"100-continue\" can be met."};
    if (const std::string* coding = request.find("Content-Encoding"))
        if (request.count("Content-Encoding") > 1 || !equal_without_case(*coding, "identity"))
            return Refusal{415, "The body must not be compressed."};
    return std::nullopt;
}

} // namespace

// Members that Beast calls are without `override`: later versions have one more of them than earlier ones.
class RequestReader::Parser : public beast::http::basic_parser<true> {
  public:
    Parser(const Limits& limits, std::string peer) : limits_(limits) {
        request_.peer = std::move(peer);
        header_limit(std::numeric_limits<uint32_t>::max()); // put_head() has looked
        body_limit(limits.body_bytes);
    }

    size_t put_head(std::string_view bytes) {
        size_t blank = 0; // some clients end the request before with a line too many
        while (bytes.substr(blank).starts_with(kLineEnd))
            blank += kLineEnd.size();
        if (blank > 0) return blank;
        const size_t end = bytes.substr(0, limits_.header_bytes).find(kHeadEnd, searched_);
        if (end == std::string_view::npos) {
            searched_ = bytes.size() - std::min(bytes.size(), kHeadEnd.size() - 1);
            if (bytes.size() >= limits_.header_bytes) refuse(431, "The head of the request is too long.");
            return 0;
        }
        const std::string_view head = bytes.substr(0, end + kHeadEnd.size());
        refusal_ = fault_of_lines(head, limits_);
        if (!refusal_) put_to_beast(head);
        if (!refusal_) accept_head();
        return refusal_ ? 0 : head.size();
    }

    size_t put_body(std::string_view bytes) {
        // Older versions of Beast assert that they have as many when the last chunk comes in pieces.
        if (chunked() && !has_last_chunk_ && bytes.size() < kLastChunk.size()) return 0;
        eager(true);
        const size_t taken = put_to_beast(bytes);
        if (!refusal_ && bytes.size() - taken > limits_.header_bytes && !is_done())
            refuse(400, "A line between the pieces of the body is too long.");
        return refusal_ ? 0 : taken;
    }

    bool expects_continue() const { return !is_http_1_0_ && request_.find("Expect") != nullptr && !is_done(); }

    // Called by Beast.
    virtual void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                                 error_code&) {
        request_.method = text_of(method);
        request_.target = text_of(target);
        is_http_1_0_ = version == 10;
    }
    virtual void on_response_impl(int, beast::string_view, int, error_code&) {}
    virtual void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value, error_code&) {
        if (!has_head_) request_.headers.emplace_back(text_of(name), text_of(value)); // what trails a body says nothing
    }
    virtual void on_trailer_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                                       error_code& code) {
        if (field == beast::http::field::content_length || field == beast::http::field::transfer_encoding)
            code = error::bad_field;
        count_overhead(name.size() + value.size(), code);
    }
    virtual void on_header_impl(error_code&) { has_head_ = true; }
    virtual void on_body_init_impl(const boost::optional<uint64_t>& length, error_code&) {
        if (length) request_.body.reserve(std::min<size_t>(*length, kFirstBodyBytes));
    }
    virtual size_t on_body_impl(beast::string_view piece, error_code&) {
        request_.body.append(piece.data(), piece.size());
        return piece.size();
    }
    virtual void on_chunk_header_impl(uint64_t size, beast::string_view extensions, error_code& code) {
        has_last_chunk_ = size == 0;
        count_overhead(extensions.size(), code);
    }
    virtual size_t on_chunk_body_impl(uint64_t, beast::string_view piece, error_code&) {
        request_.body.append(piece.data(), piece.size());
        return piece.size();
    }
    virtual void on_finish_impl(error_code&) {}

    Request request_;
    std::optional<Refusal> refusal_;
    bool has_head_ = false;
    bool is_http_1_0_ = false;

  private:
    // Of a body in chunks, what is neither its bytes nor their numbers.
    void count_overhead(size_t bytes, error_code& code) {
        overhead_ += bytes;
        if (overhead_ > limits_.header_bytes) code = error::bad_chunk_extension;
    }

    bool is_coding_unknown() const {
        const std::optional<Refusal> fault = fault_of_head(request_, is_http_1_0_);
        return fault && fault->status == 501;
    }

    void refuse(int status, std::string message) { refusal_ = {status, std::move(message)}; }

    size_t put_to_beast(std::string_view bytes) {
        error_code code;
        const size_t taken = put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
        if (!code || code == error::need_more) return taken;
        if (code == error::body_limit)
            refuse(413, "The body of the request is longer than " + std::to_string(limits_.body_bytes) + " bytes.");
        else if (code == error::bad_transfer_encoding && is_coding_unknown())
            refuse(501, kUnknownCoding); // later versions refuse it themselves
        else
            refuse(400, "This is not a request of HTTP/1.1: " + code.message() + ".");
        return 0;
    }

    void accept_head() {
        if (!has_head_) return refuse(400, "This is not a request of HTTP/1.1.");
        refusal_ = fault_of_head(request_, is_http_1_0_);
        if (refusal_) return;
        const std::optional<std::string> path = path_of(request_.target);
        if (!path) return refuse(400, "The request must be for a path of this server.");
        request_.path = *path;
        request_.body_bytes = content_length().value_or(0);
    }

    const Limits& limits_;
    size_t searched_ = 0; // of a head without its end
    size_t overhead_ = 0;
    bool has_last_chunk_ = false;
};

RequestReader::RequestReader(const Limits& limits, std::string peer)
    : parser_(std::make_unique<Parser>(limits, std::move(peer))) {}

RequestReader::~RequestReader() = default;

size_t RequestReader::put(std::string_view bytes) {
    if (refusal() || is_whole()) return 0;
    return has_head() ? parser_->put_body(bytes) : parser_->put_head(bytes);
}

bool RequestReader::has_head() const {
    return parser_->has_head_;
}

bool RequestReader::is_whole() const {
    return parser_->has_head_ && parser_->is_done();
}

const std::optional<Refusal>& RequestReader::refusal() const {
    return parser_->refusal_;
}

const Request& RequestReader::request() const {
    return parser_->request_;
}

Request RequestReader::take() {
    return std::move(parser_->request_);
}

bool RequestReader::is_http_1_0() const {
    return parser_->is_http_1_0_;
}

bool RequestReader::keeps_alive() const {
    return has_head() && parser_->keep_alive();
}

bool RequestReader::expects_continue() const {
    return parser_->expects_continue();
}

size_t RequestReader::body_left() const {
    return static_cast<size_t>(parser_->content_length_remaining().value_or(0));
}

bool equal_without_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

const std::string* Request::find(std::string_view name) const {
    const auto at = std::find_if(headers.begin(), headers.end(),
                                 [&](const Header& header) { return equal_without_case(header.first, name); });
    return at == headers.end() ? nullptr : &at->second;
}

size_t Request::count(std::string_view name) const {
    return static_cast<size_t>(std::count_if(
        headers.begin(), headers.end(), [&](const Header& header) { return equal_without_case(header.first, name); }));
}

std::optional<std::string> path_of(std::string_view target) {
    if (!target.starts_with('/')) return std::nullopt;
    std::string path;
    const size_t end = std::min(target.find('?'), target.size());
    for (size_t at = 0; at < target.size(); ++at) {
        char letter = target[at];
        if (letter == '%') {
            if (at + 2 >= target.size()) return std::nullopt;
            const int high = digit_of(target[at + 1]), low = digit_of(target[at + 2]);
            if (high < 0 || low < 0) return std::nullopt;
            letter = static_cast<char>(high * 16 + low);
            at += 2;
            if (at < end && is_control(letter)) return std::nullopt;
        } else if (is_control(letter) || letter == ' ' || letter == '#') {
            return std::nullopt;
        }
        if (at < end) path += letter;
    }
    return path;
}

} // namespace auspex::http
