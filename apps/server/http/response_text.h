// Answers as the bytes of HTTP/1.1: heads and chunks. Leaves sending them to the connection.
#pragma once

#include "server/http/http_server.h"

namespace auspex::http {

// Nothing in it could end a header early, or contradict one that is ours to write.
bool is_writable(const Response& response);

// How a client learns where the body ends.
enum class Framing { length, chunks, close, no_body };

struct HeadOptions {
    Framing framing = Framing::length;
    bool is_http_1_0 = false; // the client's version
    bool closes = false;
};

std::string head_of(const Response& response, const HeadOptions& options);
bool may_have_body(int status);

// Appends one chunk; an empty piece would be the end, and is nothing.
void append_chunk(std::string& bytes, std::string_view piece);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string date_text(std::chrono::system_clock::time_point time);

} // namespace auspex::http
