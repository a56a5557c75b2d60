// What a kernel is to those who dispatch it: an op, a type that names its shader, its arguments and its buffers.
//     struct Swiglu {
//         static constexpr std::string_view kShader = "swiglu"; // stem of the .comp file
//         using Args = gpu::SwigluArgs;                         // push constants; NoArgs: none
//         struct Bindings { BufferView gate_up, y; };           // as the shader calls its buffers, in the order of their slots
//     };
// The build compares all three with every module of the shader (cmake/embed_shader.cmake). What shape a buffer has stands beside its slot
// in shared/OP_args.h.
#pragma once

#include "device/buffer.h"
#include "device/kernel.h"

#include <array>
#include <bit>
#include <type_traits>

namespace auspex {

struct NoArgs {};

template <typename Op> constexpr KernelLayout layout_of() {
    using Args = typename Op::Args;
    static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= 128);
    return {.n_bindings = sizeof(typename Op::Bindings) / sizeof(BufferView), .args_bytes = std::is_empty_v<Args> ? 0 : sizeof(Args)};
}

// By slot.
template <typename Op> std::array<BufferView, layout_of<Op>().n_bindings> buffers_of(const typename Op::Bindings& bindings) {
    return std::bit_cast<std::array<BufferView, layout_of<Op>().n_bindings>>(bindings);
}

// A kernel that is known to be the op's.
template <typename Op> struct KernelOf {
    const Kernel* kernel = nullptr; // null where there is none
    explicit operator bool() const { return kernel != nullptr; }
};

} // namespace auspex
