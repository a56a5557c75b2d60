// Answers as bytes.
#include "server/http/response_text.h"

#include "server/http/request_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace auspex::http {

namespace {

const char* reason_of(int status) {
    switch (status) {
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 202:
        return "Accepted";
    case 204:
        return "No Content";
    case 301:
        return "Moved Permanently";
    case 302:
        return "Found";
    case 303:
        return "See Other";
    case 304:
        return "Not Modified";
    case 307:
        return "Temporary Redirect";
    case 308:
        return "Permanent Redirect";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 415:
        return "Unsupported Media Type";
    case 417:
        return "Expectation Failed";
    case 421:
        return "Misdirected Request";
    case 422:
        return "Unprocessable Content";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    default:
        return "Status";
    }
}

bool is_token(std::string_view name) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    return !name.empty() && std::all_of(name.begin(), name.end(), [&](char letter) {
        return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
               (letter >= 'A' && letter <= 'Z') || marks.find(letter) != std::string_view::npos;
    });
}

bool is_value(std::string_view value) {
    return std::all_of(value.begin(), value.end(), [](char letter) {
        return letter == '\t' || (static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f);
    });
}

bool is_ours(std::string_view name) {
    constexpr std::array<std::string_view, 5> ours = {"Content-Type", "Content-Length", "Date", "Connection",
                                                      "Transfer-Encoding"};
    return std::any_of(ours.begin(), ours.end(), [&](std::string_view one) { return equal_without_case(one, name); });
}

// Formatted once a second; on the I/O thread alone.
const std::string& date_now() {
    thread_local std::string text;
    thread_local std::chrono::sys_seconds second{std::chrono::seconds(-1)};
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    if (now != second) {
        second = now;
        text = date_text(now);
    }
    return text;
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
}

} // namespace

bool is_writable(const Response& response) {
    return response.status >= 200 && response.status <= 599 && is_value(response.content_type) &&
           std::all_of(response.headers.begin(), response.headers.end(), [](const Header& header) {
               return is_token(header.first) && is_value(header.second) && !is_ours(header.first);
           });
}

bool may_have_body(int status) {
    return status != 204 && status != 304;
}

std::string head_of(const Response& response, const HeadOptions& options) {
    std::string head = "HTTP/1.1 " + std::to_string(response.status) + " " + reason_of(response.status) + "\r\n";
    append_header(head, "Date", date_now());
    if (!response.content_type.empty() && may_have_body(response.status))
        append_header(head, "Content-Type", response.content_type);
    if (options.framing == Framing::length) append_header(head, "Content-Length", std::to_string(response.body.size()));
    if (options.framing == Framing::chunks) append_header(head, "Transfer-Encoding", "chunked");
    if (options.closes)
        append_header(head, "Connection", "close");
    else if (options.is_http_1_0)
        append_header(head, "Connection", "keep-alive");
    for (const Header& header : response.headers)
        append_header(head, header.first, header.second);
    return head.append("\r\n");
}

void append_chunk(std::string& bytes, std::string_view piece) {
    if (piece.empty()) return;
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, piece.size(), 16).ptr;
    bytes.append(digits, end).append("\r\n").append(piece).append("\r\n");
}

std::string date_text(std::chrono::system_clock::time_point time) {
    constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
    char text[64];
    std::snprintf(text, sizeof text, "%s, %02u %s %04d %02d:%02d:%02d GMT",
                  days[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                  months[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                  static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                  static_cast<int>(clock.seconds().count()));
    return text;
}

} // namespace auspex::http
