// What the operating system does for the engine: map files, find the Vulkan loader, tell the time.
// Two .cpp per platform implement it (files_posix.cpp and platform_posix.cpp; …_windows.cpp); nothing else includes system headers.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace auspex {

// A whole file mapped read-only. Movable; unmaps when destroyed.
class MappedFile {
  public:
    // not_found when there is no such regular file, io when it cannot be mapped. An empty file maps to an empty span.
    static Result<MappedFile> open(const std::string& path);

    MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})), path_(std::move(other.path_)) {}
    MappedFile& operator=(MappedFile&& other) noexcept {
        std::swap(bytes_, other.bytes_); // the other one unmaps what this one held
        std::swap(path_, other.path_);
        return *this;
    }
    ~MappedFile();

    std::span<const std::byte> bytes() const { return bytes_; }
    const std::string& path() const { return path_; }

  private:
    MappedFile() = default;
    std::span<const std::byte> bytes_;
    std::string path_;
};

// Says that a part of a mapped file will not be read soon: its pages stop counting as ours. Reading it again is allowed.
void release_pages(std::span<const std::byte> range);

// Reads a small text file whole (config.json and the like). Refuses files above max_bytes.
Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes);

bool path_exists(const std::string& path);

// A shared library opened by name, closed when destroyed.
class SharedLibrary {
  public:
    static Result<std::unique_ptr<SharedLibrary>> open_vulkan_loader();
    ~SharedLibrary();
    SharedLibrary(const SharedLibrary&) = delete;
    SharedLibrary& operator=(const SharedLibrary&) = delete;
    void* symbol(const char* name) const; // null when absent

  private:
    explicit SharedLibrary(void* handle) : handle_(handle) {}
    void* handle_;
};

// The machine's memory in bytes; available: what programs could still take without swapping. 0: not known.
struct HostMemory {
    uint64_t total = 0, available = 0;
};
HostMemory host_memory();

// Monotonic time in nanoseconds.
uint64_t now_ns();

// A 64-bit seed from the system's entropy source.
uint64_t entropy_seed();

} // namespace auspex
