// Where what is thrown becomes a Status: around code that uses the standard library's containers or parsers on what a
// file claims. Nothing thrown leaves it, except what is no std::exception.
#pragma once

#include "base/status.h"

#include <exception>
#include <new>
#include <type_traits>

namespace auspex {

// body() returns a Status or a Result, and so does this. where: what is worked on, as messages begin; purpose: what
// memory would have been for, e.g. "to open it".
template <typename Body>
std::invoke_result_t<Body&> catching(std::string_view where, std::string_view purpose, Body&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return Status(Code::out_of_host_memory, std::string(where) + ": found no memory " + std::string(purpose));
    } catch (const std::exception& error) {
        return Status(Code::internal, std::string(where) + ": " + in_quotes(error.what()));
    }
}

} // namespace auspex
