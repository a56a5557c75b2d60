// The chat page's files, which the build puts into the program (cmake/embed_page.cmake).
#pragma once

#include <cstddef>
#include <span>

namespace auspex::server {

struct PageFile {
    const char* path; // of a request: "/page.js"
    const char* content_type;
    const char* body;
    size_t bytes;
    const char* etag; // with its quotes
};

std::span<const PageFile> page_files();

} // namespace auspex::server
