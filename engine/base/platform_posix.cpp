// Linux and macOS behind platform.h, but for their files (files_posix.cpp). Leaves Windows to platform_windows.cpp.
#include "base/platform.h"

#include <dlfcn.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

#include <algorithm>
#include <chrono>
#include <fstream>

namespace auspex {

Result<std::unique_ptr<SharedLibrary>> SharedLibrary::open_vulkan_loader() {
#if defined(__APPLE__)
    constexpr const char* names[] = {"libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"};
    constexpr const char* missing = "no Vulkan loader: libvulkan.dylib is not installed; install the Vulkan loader and MoltenVK";
#else
    constexpr const char* names[] = {"libvulkan.so.1", "libvulkan.so"};
    constexpr const char* missing = "no Vulkan loader: libvulkan.so.1 is not installed; install libvulkan1 and a driver";
#endif
    for (const char* name : names)
        if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL))
            return std::unique_ptr<SharedLibrary>(new SharedLibrary(handle));
    return Status(Code::not_found, missing);
}

SharedLibrary::~SharedLibrary() {
    dlclose(handle_);
}

void* SharedLibrary::symbol(const char* name) const {
    return dlsym(handle_, name);
}

HostMemory host_memory() {
    const auto page = static_cast<uint64_t>(std::max(sysconf(_SC_PAGESIZE), 0l));
    HostMemory memory;
    memory.total = memory.available = page * static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0l));
    std::ifstream meminfo("/proc/meminfo"); // Linux: "MemAvailable:   12345 kB"; elsewhere all of it counts as available
    std::string word;
    while (meminfo >> word)
        if (word == "MemAvailable:" && meminfo >> memory.available) {
            memory.available = std::min(memory.available * 1024, memory.total);
            break;
        }
    return memory;
}

uint64_t now_ns() {
    const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count());
}

uint64_t entropy_seed() {
    uint64_t seed = 0;
    if (getentropy(&seed, sizeof seed) != 0) seed = now_ns() * 0x9E3779B97F4A7C15u; // no entropy source: the clock
    return seed;
}

} // namespace auspex
