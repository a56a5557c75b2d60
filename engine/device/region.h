// Stretches of recordings that are timed, each by itself: of rounds, of other turns, of passes and of what tools measure.
#pragma once

#include <cstddef>
#include <iterator>

namespace auspex {

enum class Region {
    draft, verify, accept, // of rounds
    replay, fork,          // all of such a turn; prefills and catch-ups go by the name of the first
    embedding, norm, qkv, rope_append, attention, combine, output, gate_up, swiglu, down, head, sampling, // of a pass, for tools
    pass, copy, kernels,   // that a tool measures as a whole
};

// As labels, traces and statistics call it.
constexpr const char* region_name(Region region) {
    constexpr const char* kNames[] = {"draft", "verify", "accept", "prefill", "fork", "embedding", "norm", "qkv", "rope+append", "attention",
                                      "combine", "output", "gate_up", "swiglu", "down", "head", "sampling", "pass", "copy", "time"};
    static_assert(std::size(kNames) == static_cast<size_t>(Region::kernels) + 1);
    return kNames[static_cast<size_t>(region)];
}

} // namespace auspex
