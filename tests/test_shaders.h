// SPIR-V of shader variants that only tests use (tests/*/faults.cmake and tests/*/*.comp): planted faults, probes. What the probes bind.
#pragma once

#include "device/op.h"
#include "shared/swiglu_args.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

// The words of the test-only variant called `name`; empty when there is none. Lives as long as the program.
std::span<const uint32_t> test_shader(std::string_view name);

// Every test-only variant's name.
std::vector<std::string_view> test_shader_names();

namespace ops {
struct ExponentialProbe {
    static constexpr std::string_view kShader = "exponential_probe";
    using Args = NoArgs;
    struct Bindings {
        BufferView words, results, counters, blocks;
    };
};

struct TableLogits {
    static constexpr std::string_view kShader = "table_logits";
    using Args = NoArgs;
    struct Bindings {
        BufferView tables, rows, logits;
    };
};

struct TableCuts {
    static constexpr std::string_view kShader = "table_cuts";
    using Args = NoArgs;
    struct Bindings {
        BufferView tables, rows, cuts;
    };
};

struct OrderProbe {
    static constexpr std::string_view kShader = "order_probe";
    using Args = NoArgs;
    struct Bindings {
        BufferView numbers, marks;
    };
};

struct InPlace {
    static constexpr std::string_view kShader = "in_place";
    using Args = gpu::SwigluArgs;
    struct Bindings {
        BufferView values;
    };
};

struct Sizes {
    static constexpr std::string_view kShader = "sizes";
    using Args = NoArgs;
    struct Bindings {
        BufferView result;
    };
};

struct Slow {
    static constexpr std::string_view kShader = "slow";
    using Args = NoArgs;
    struct Bindings {
        BufferView result;
    };
};
} // namespace ops

// One of them, as a kernel that no library keeps.
template <typename Op> Result<Kernel> make_test_kernel(Device& device, std::span<const uint32_t> constants) {
    return Kernel::create(
        device, {.name = std::string(Op::kShader), .spirv = test_shader(Op::kShader), .layout = layout_of<Op>(), .constants = constants}, VK_NULL_HANDLE);
}

} // namespace auspex
