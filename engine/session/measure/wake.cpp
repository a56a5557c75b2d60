// Counts how often the work fits into windows of time.
#include "session/measure/wake.h"

#include "base/platform.h"

namespace auspex {

Status wake(const Device& device, const std::function<Status()>& work) {
    constexpr double kWindowMs = 150, kMostMs = 3000, kNoise = 1.02;
    if (device.caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU) return ok_status();
    const auto since_ms = [](uint64_t begin) { return static_cast<double>(now_ns() - begin) * 1e-6; };
    double before = 0;
    for (const uint64_t begin = now_ns(); since_ms(begin) < kMostMs;) {
        double n = 0;
        for (const uint64_t window = now_ns(); since_ms(window) < kWindowMs; ++n) AUSPEX_TRY(work());
        if (before > 0 && n <= kNoise * before) break;
        before = n;
    }
    return ok_status();
}

} // namespace auspex
