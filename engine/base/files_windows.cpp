// Files on Windows (platform.h); paths are UTF-8. Leaves Linux and macOS to files_posix.cpp.
#include "base/platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

namespace auspex {
namespace {

std::wstring wide(const std::string& utf8) {
    const int length = MultiByteToWideChar(CP_UTF8, 0, utf8.data(), static_cast<int>(utf8.size()), nullptr, 0);
    std::wstring text(static_cast<size_t>(length), L'\0');
    MultiByteToWideChar(CP_UTF8, 0, utf8.data(), static_cast<int>(utf8.size()), text.data(), length);
    return text;
}

// A handle that closes itself.
struct Handle {
    HANDLE handle;
    explicit Handle(HANDLE opened) : handle(opened) {}
    ~Handle() {
        if (handle != nullptr && handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
};

struct OpenedFile {
    HANDLE handle;
    uint64_t bytes;
};

// Opens a regular file; a folder or a device counts as not found.
Result<OpenedFile> open_regular(const std::string& path) {
    if (path.find('\0') != std::string::npos) return Status(Code::not_found, path + ": a path holds no zero byte");
    const HANDLE handle = CreateFileW(wide(path).c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING,
                                      FILE_ATTRIBUTE_NORMAL, nullptr);
    if (handle == INVALID_HANDLE_VALUE) {
        const DWORD error = GetLastError();
        const DWORD attributes = GetFileAttributesW(wide(path).c_str());
        const bool folder = attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
        if (folder) return Status(Code::not_found, path + ": is a folder, expected a file");
        const bool absent =
            error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND || error == ERROR_INVALID_NAME;
        return Status(absent ? Code::not_found : Code::io,
                      path + ": cannot be opened: Windows error " + std::to_string(error));
    }
    LARGE_INTEGER bytes = {};
    if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileSizeEx(handle, &bytes)) {
        CloseHandle(handle);
        return Status(Code::not_found, path + ": is not a regular file, expected a file");
    }
    return OpenedFile{handle, static_cast<uint64_t>(bytes.QuadPart)};
}

} // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
    AUSPEX_TRY_ASSIGN(opened, open_regular(path));
    const Handle file_handle(opened.handle); // the view outlives both handles
    MappedFile file;
    file.path_ = path;
    if (opened.bytes == 0) return file;
    if (opened.bytes > SIZE_MAX) return Status(Code::io, path + ": larger than this process can map");

    const Handle mapping(CreateFileMappingW(file_handle.handle, nullptr, PAGE_READONLY, 0, 0, nullptr));
    const void* start = mapping.handle ? MapViewOfFile(mapping.handle, FILE_MAP_READ, 0, 0, 0) : nullptr;
    if (start == nullptr)
        return Status(Code::io, path + ": cannot be mapped: Windows error " + std::to_string(GetLastError()));
    file.bytes_ = {static_cast<const std::byte*>(start), static_cast<size_t>(opened.bytes)};
    return file;
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) UnmapViewOfFile(bytes_.data());
}

Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes) {
    AUSPEX_TRY_ASSIGN(opened, open_regular(path));
    const Handle file_handle(opened.handle);
    if (opened.bytes > max_bytes)
        return Status(Code::bad_file, path + ": " + std::to_string(opened.bytes) + " bytes, expected at most " +
                                          std::to_string(max_bytes));
    std::string text(static_cast<size_t>(opened.bytes), '\0');
    size_t filled = 0;
    while (filled < text.size()) {
        const size_t left = text.size() - filled;
        const DWORD ask = left > 0x10000000u ? 0x10000000u : static_cast<DWORD>(left);
        DWORD got = 0;
        if (!ReadFile(file_handle.handle, text.data() + filled, ask, &got, nullptr))
            return Status(Code::io, path + ": cannot be read: Windows error " + std::to_string(GetLastError()));
        if (got == 0) break; // shortened meanwhile
        filled += got;
    }
    text.resize(filled);
    return text;
}

bool path_exists(const std::string& path) {
    return GetFileAttributesW(wide(path).c_str()) != INVALID_FILE_ATTRIBUTES;
}

void release_pages(std::span<const std::byte> range) {
    // Unlocking pages that are not locked takes them out of the working set, and answers that they were not locked.
    if (!range.empty()) VirtualUnlock(const_cast<std::byte*>(range.data()), range.size());
}

} // namespace auspex
