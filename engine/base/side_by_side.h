// Work in pieces, on threads that live no longer than the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace auspex {

// piece(0) … piece(n - 1), each once, on the calling thread and up to n_threads - 1 others; on fewer where the system gives
// none. piece throws nothing.
void side_by_side(size_t n, uint32_t n_threads, const std::function<void(size_t)>& piece);

} // namespace auspex
