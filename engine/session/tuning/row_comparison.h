// Do passes of different row counts give the same bits? Vulkan promises nothing for pipelines that were compiled one by
// one, and greedy text with drafts is that without only if they do. Waits.
#pragma once

#include "kernels/kernel_library.h"
#include "tensor/dtype.h"

#include <span>
#include <string>

namespace auspex {

struct RowComparison {
    bool agree = true;
    std::string difference; // the first that was found: "matvec of bf16, 5 rows together against each alone"
    bool is_complete = true; // false: the deadline came first, and nothing is known
};

// Every member of the row family that one matrix feeds (matvec, matvec after a norm, gate_up), for each format: 1 to 16 rows
// together against each row alone, as `kernels` would run them. Nothing is compiled after deadline_ns (of now_ns()), and tiles of most
// rows, which compilers take longest for, come last.
Result<RowComparison> compare_row_counts(Device& device, KernelLibrary& kernels, std::span<const DType> formats, uint64_t deadline_ns = ~0ull);

// Pipelines that the comparison builds.
uint32_t comparison_kernels(const Tuning& tuning, std::span<const DType> formats);

// How long one of them takes from nothing to its first result, in ms of the host's clock.
Result<double> first_use_ms(Device& device, KernelLibrary& kernels, DType format);

} // namespace auspex
