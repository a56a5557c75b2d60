// One small product both ways in one recording, compared on the host.
#include "session/tuning/prompt_check.h"

#include "kernels/matmul.h"
#include "kernels/matvec.h"
#include "kernels/random_fill.h"
#include "kernels/split_halves.h"
#include "tensor/upload.h"

#include <cstring>
#include <limits>

namespace auspex {

namespace {
constexpr uint32_t kOuts = 70, kCols = 512, kRows = 33, kStride = 72; // no multiple of a tile, in either direction
}

Result<double> prompt_kernel_error(Device& device, KernelLibrary& kernels, DType format) {
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
    AUSPEX_TRY_ASSIGN(y, memory.create(2 * kYBytes, MemoryUse::readback));
    auto* values = reinterpret_cast<float*>(x.mapped());
    for (uint32_t i = 0; i < kRows * kCols; ++i) // any numbers of both signs and several sizes
        values[i] = (static_cast<float>(i * 2654435761u >> 8) * 0x1p-23f - 1.0f) * (i % 7 == 0 ? 30.0f : 1.0f);
    std::memset(y.mapped(), 0, y.size());

    const bool wants_halves = matmul_wants_halves(kernels.tuning());
    AUSPEX_TRY(uploader->run_and_wait("check prompts", [&](Recording& recording) {
        Recorder to = {recording, kernels};
        if (wants_halves) {
            record_split_halves(to, x.view(), halves.view(), kRows, kCols);
            recording.barrier();
        }
        record_matmul(to, weight, wants_halves ? halves.view() : x.view(), y.view(0, kYBytes), kRows, kStride, false);
        record_matvec(to, weight, x.view(), y.view(kYBytes, kYBytes), kRows, kStride, false);
    }));

    const auto* found = reinterpret_cast<const float*>(y.mapped());
    double difference = 0, size = 0;
    for (uint32_t i = 0; i < kRows * kStride; ++i) {
        const double a = static_cast<double>(found[i]), b = static_cast<double>(found[kRows * kStride + i]);
        difference += (a - b) * (a - b);
        size += b * b;
    }
    return size > 0 ? difference / size : std::numeric_limits<double>::infinity();
}

} // namespace auspex
