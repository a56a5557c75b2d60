// The files of the page, as they lie in the program (cmake/embed_page.cmake writes them there).
#pragma once

#include <cstddef>

namespace auspex::server {

struct PageFile {
    const char* path;         // "/", "/page.js"
    const char* content_type; // "text/html; charset=utf-8"
    const char* body;         // 0-terminated; text that may hold no 0
    std::size_t bytes;        // of the body
    const char* etag;         // with its quotes, as the header wants it; changes with the body
};

// Ends with one whose path is nullptr.
extern const PageFile page_files[];

} // namespace auspex::server
