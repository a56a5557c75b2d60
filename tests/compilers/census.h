// Which kernels an engine takes for a workload, and what the compiler of a device without hardware makes of them.
#pragma once

#include "compilers/null_device.h"
#include "session/engine_fixture.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace auspex::test {

struct Workload {
    const char* name;
    std::optional<Shape> shape; // of target and draft, with weights that are made on the device; none: the bundled pair
    DType cache_dtype = DType::f16;
};
// "pair", "1b q4_0", "3b bf16" … ; those of CI come first.
const std::vector<Workload>& workloads();

struct Census {
    DeviceCaps caps;
    std::string sizes, numerics;         // of the tuning
    std::vector<CompiledKernel> kernels; // each once, by name and constants
    double compile_ms = 0;               // CPU time of all
};
// Everything that generation takes: prompts, passes of 1 to 16 rows, every drafter, rule and transform. adjust: other sizes.
Result<Census> take_census(const Workload& workload, const std::function<void(Tuning&)>& adjust = {});

// "ROWS=4, OUTS=2, AHEAD=1, ADD=1": constants by the names that the shader's source gives them, but for those that say the same
// everywhere.
std::string named_constants(const CompiledKernel& kernel);

} // namespace auspex::test
