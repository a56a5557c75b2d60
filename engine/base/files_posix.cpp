// Files on Linux and macOS (platform.h). Leaves Windows to files_windows.cpp.
#include "base/platform.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace auspex {
namespace {

// A file descriptor that closes itself.
struct Descriptor {
    int fd;
    explicit Descriptor(int opened) : fd(opened) {}
    ~Descriptor() {
        if (fd >= 0) close(fd);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
};

struct OpenedFile {
    int fd;
    uint64_t bytes;
};

// Opens a regular file; a folder, a pipe or a device counts as not found. O_NONBLOCK: opening a pipe must not hang.
Result<OpenedFile> open_regular(const std::string& path) {
    if (path.find('\0') != std::string::npos) return Status(Code::not_found, path + ": a path holds no zero byte");
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        const int error = errno;
        const bool absent = error == ENOENT || error == ENOTDIR;
        return Status(absent ? Code::not_found : Code::io, path + ": cannot be opened: " + std::strerror(error));
    }
    struct stat about = {};
    if (fstat(fd, &about) != 0) {
        const int error = errno;
        close(fd);
        return Status(Code::io, path + ": " + std::strerror(error));
    }
    if (!S_ISREG(about.st_mode)) {
        close(fd);
        const char* what = S_ISDIR(about.st_mode) ? "a folder" : "not a regular file";
        return Status(Code::not_found, path + ": is " + what + ", expected a file");
    }
    return OpenedFile{fd, static_cast<uint64_t>(about.st_size)};
}

} // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
    AUSPEX_TRY_ASSIGN(opened, open_regular(path));
    const Descriptor descriptor(opened.fd); // a mapping outlives its descriptor
    MappedFile file;
    file.path_ = path;
    if (opened.bytes == 0) return file;
    if (opened.bytes > SIZE_MAX) return Status(Code::io, path + ": larger than this process can map");

    const size_t bytes = static_cast<size_t>(opened.bytes);
    void* start = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor.fd, 0);
    if (start == MAP_FAILED) return Status(Code::io, path + ": cannot be mapped: " + std::strerror(errno));
    file.bytes_ = {static_cast<const std::byte*>(start), bytes};
    return file;
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes) {
    AUSPEX_TRY_ASSIGN(opened, open_regular(path));
    const Descriptor descriptor(opened.fd);
    if (opened.bytes > max_bytes)
        return Status(Code::bad_file, path + ": " + std::to_string(opened.bytes) + " bytes, expected at most " +
                                          std::to_string(max_bytes));
    std::string text(static_cast<size_t>(opened.bytes), '\0');
    size_t filled = 0;
    while (filled < text.size()) {
        const ssize_t got = read(descriptor.fd, text.data() + filled, text.size() - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Status(Code::io, path + ": cannot be read: " + std::strerror(errno));
        if (got == 0) break; // shortened meanwhile
        filled += static_cast<size_t>(got);
    }
    text.resize(filled);
    return text;
}

bool path_exists(const std::string& path) {
    struct stat about = {};
    return stat(path.c_str(), &about) == 0;
}

void release_pages(std::span<const std::byte> range) {
    const auto page = static_cast<uintptr_t>(std::max(sysconf(_SC_PAGESIZE), 1l));
    const auto address = reinterpret_cast<uintptr_t>(range.data());
    const uintptr_t begin = (address + page - 1) / page * page, end = (address + range.size()) / page * page; // whole pages
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED); // advice: failing changes nothing
}

} // namespace auspex
