// Windows behind platform.h, but for its files (files_windows.cpp). Leaves Linux and macOS to platform_posix.cpp.
#include "base/platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <chrono>
#include <random>

namespace auspex {

Result<std::unique_ptr<SharedLibrary>> SharedLibrary::open_vulkan_loader() {
    if (HMODULE handle = LoadLibraryW(L"vulkan-1.dll"))
        return std::unique_ptr<SharedLibrary>(new SharedLibrary(handle));
    return Status(Code::not_found, "no Vulkan loader: vulkan-1.dll is not installed; install a graphics driver");
}

SharedLibrary::~SharedLibrary() {
    FreeLibrary(static_cast<HMODULE>(handle_));
}

void* SharedLibrary::symbol(const char* name) const {
    return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), name));
}

uint64_t now_ns() {
    const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count());
}

HostMemory host_memory() {
    MEMORYSTATUSEX status = {};
    status.dwLength = sizeof status;
    if (!GlobalMemoryStatusEx(&status)) return {};
    return {status.ullTotalPhys, status.ullAvailPhys};
}

uint64_t entropy_seed() {
    std::random_device device; // BCryptGenRandom underneath
    return (static_cast<uint64_t>(device()) << 32) | device();
}

} // namespace auspex
