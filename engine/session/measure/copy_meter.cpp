// Copies back and forth between two buffers.
#include "session/measure/copy_meter.h"

#include "base/platform.h"
#include "kernels/copy.h"
#include "session/measure/wake.h"
#include "tensor/upload.h"

#include <algorithm>

namespace auspex {

namespace {
constexpr uint32_t kPattern = 0x9e3779b9; // zeros may be moved faster than numbers
constexpr uint64_t kMostBytes = 256ull << 20, kMostCpuBytes = 64ull << 20, kLeastBytes = 1ull << 20; // of each buffer
}

Result<CopySpeed> measure_copy(Device& device, KernelLibrary& kernels, uint32_t repetitions) {
    const bool is_cpu = device.caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    uint64_t bytes = std::min({is_cpu ? kMostCpuBytes : kMostBytes, device.caps.max_storage_buffer_range, device.caps.max_allocation_bytes}) / 16 * 16;
    MemoryPool memory(device);
    Buffer a, b;
    for (;; bytes = bytes / 32 * 16) {
        auto from = memory.create(bytes, MemoryUse::device);
        auto to = from.ok() ? memory.create(bytes, MemoryUse::device) : Result<Buffer>(from.status());
        if (to.ok()) {
            a = std::move(from).value();
            b = std::move(to).value();
            break;
        }
        if (to.status().code() != Code::out_of_device_memory || bytes < 2 * kLeastBytes) return to.status();
    }
    AUSPEX_TRY_ASSIGN(uploader, Uploader::create(device, memory));
    AUSPEX_TRY_ASSIGN(recording, Recording::create(device, repetitions + 1));
    Recorder to = {*recording, kernels};
    recording->begin_segment("copy");
    recording->transfer_barrier();
    recording->fill(a.view(), kPattern);
    recording->fill(b.view(), ~kPattern);
    recording->transfer_barrier();
    for (uint32_t i = 0; i <= repetitions; ++i) { // the first warms up
        recording->begin_region(Region::copy);
        record_kernel_copy(to, i % 2 ? b.view(0, bytes) : a.view(0, bytes), i % 2 ? a.view(0, bytes) : b.view(0, bytes));
        recording->barrier();
        recording->end_region();
    }
    recording->end_segment();
    AUSPEX_TRY(recording->finish());
    AUSPEX_TRY(wake(device, [&] { return uploader->submit_and_wait(*recording); }));
    const uint64_t begin = now_ns();
    AUSPEX_TRY(uploader->submit_and_wait(*recording));
    const double wall_ms = static_cast<double>(now_ns() - begin) * 1e-6 / (repetitions + 1);
    std::vector<double> ms;
    const std::vector<Recording::RegionTime> regions = recording->region_times();
    for (size_t i = 1; i < regions.size(); ++i) ms.push_back(regions[i].ms);
    if (ms.empty() || ms.front() < 0) return CopySpeed{.bytes = 2 * bytes, .ms = wall_ms};
    std::sort(ms.begin(), ms.end());
    return CopySpeed{.bytes = 2 * bytes, .ms = ms[ms.size() / 2]};
}

} // namespace auspex
