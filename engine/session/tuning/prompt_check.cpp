// One small product by rows and by every tile that prompts may take, in one recording, compared on the host.
#include "session/tuning/prompt_check.h"

#include "base/platform.h"
#include "kernels/matmul.h"
#include "kernels/matvec.h"
#include "kernels/random_fill.h"
#include "kernels/split_halves.h"
#include "tensor/upload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace auspex {

Result<std::optional<double>> prompt_kernel_error(Device& device, KernelLibrary& kernels, DType format, uint64_t deadline_ns) {
    if (now_ns() > deadline_ns) return std::optional<double>();
    constexpr uint32_t kOuts = 70, kCols = 512, kRows = 33, kStride = 72; // no multiple of a tile, in either direction
    MemoryPool memory(device);
    AUSPEX_TRY_ASSIGN(uploader, Uploader::create(device, memory));
    AUSPEX_TRY_ASSIGN(weight, create_tensor(device, memory, format, kOuts, kCols, kernels.tuning().tiles_weights));
    AUSPEX_TRY(uploader->make_and_wait(weight.bytes(), [&](Recording& recording) {
        Recorder to = {recording, kernels};
        record_random_fill(to, weight, 1, 0.1f);
    }));
    constexpr uint64_t kYBytes = uint64_t(kRows) * kStride * 4;
    AUSPEX_TRY_ASSIGN(x, memory.create(uint64_t(kRows) * kCols * 4, MemoryUse::upload));
    AUSPEX_TRY_ASSIGN(halves, memory.create(kRows * halves_bytes(kCols), MemoryUse::device));
    const Tuning& tuning = kernels.tuning();
    std::vector<MatrixTile> tiles; // none: there is one way to run prompts
    if (tuning.prompts_use_matrices()) tiles = matrix_tiles(tuning, matrix_weight_parts(tuning, format), device.caps);
    const size_t n_ways = std::max<size_t>(tiles.size(), 1);
    AUSPEX_TRY_ASSIGN(y, memory.create((n_ways + 1) * kYBytes, MemoryUse::readback)); // by each way, then by rows
    auto* values = reinterpret_cast<float*>(x.mapped());
    for (uint32_t i = 0; i < kRows * kCols; ++i) // any numbers of both signs and several sizes
        values[i] = (static_cast<float>(i * 2654435761u >> 8) * 0x1p-23f - 1.0f) * (i % 7 == 0 ? 30.0f : 1.0f);
    std::memset(y.mapped(), 0, y.size());

    const bool wants_halves = matmul_wants_halves(tuning);
    const auto record = [&](Recorder& to) {
        if (wants_halves) {
            record_split_halves(to, x.view(), halves.view(), kRows, kCols);
            to.cmd.barrier();
        }
        if (tiles.empty()) record_matmul(to, weight, wants_halves ? halves.view() : x.view(), y.view(0, kYBytes), kRows, kStride, false);
        for (size_t way = 0; way < tiles.size(); ++way)
            record_matmul_by_tile(to, weight, halves.view(), y.view(way * kYBytes, kYBytes), kRows, kStride, tiles[way]);
        record_matvec(to, weight, x.view(), y.view(n_ways * kYBytes, kYBytes), kRows, kStride, false);
    };
    AUSPEX_TRY_ASSIGN(in_time, build_until(kernels, record, deadline_ns));
    if (!in_time) return std::optional<double>();
    AUSPEX_TRY(uploader->run_and_wait("check prompts", [&](Recording& recording) {
        Recorder to = {recording, kernels};
        record(to);
    }));

    const auto* found = reinterpret_cast<const float*>(y.mapped());
    const float* by_rows = found + n_ways * kRows * kStride;
    double worst = 0;
    for (size_t way = 0; way < n_ways; ++way) {
        double difference = 0, size = 0;
        for (uint32_t i = 0; i < kRows * kStride; ++i) {
            const double a = static_cast<double>(found[way * kRows * kStride + i]), b = static_cast<double>(by_rows[i]);
            difference += (a - b) * (a - b);
            size += b * b;
        }
        const double error = size > 0 ? difference / size : std::numeric_limits<double>::infinity();
        if (std::isnan(error)) return std::optional(error);
        worst = std::max(worst, error);
    }
    return std::optional(worst);
}

} // namespace auspex
