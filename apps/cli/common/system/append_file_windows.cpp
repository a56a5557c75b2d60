// Windows.
#if defined(_WIN32)

#include "cli/common/system/append_file.h"

#include <cerrno>
#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <string>
#include <sys/stat.h>
#include <windows.h>

namespace auspex::cli {

namespace {

std::wstring wide(const std::string& text) {
    const int length = MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), nullptr, 0);
    std::wstring result(static_cast<size_t>(length), L'\0');
    MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), result.data(), length);
    return result;
}

} // namespace

AppendFile::~AppendFile() {
    if (file_ >= 0) _close(file_);
}

AppendFile::Opened AppendFile::open(const std::string& path) {
    constexpr int flags = _O_RDWR | _O_CREAT | _O_APPEND | _O_BINARY | _O_NOINHERIT;
    if (_wsopen_s(&file_, wide(path).c_str(), flags, _SH_DENYNO, _S_IREAD | _S_IWRITE) != 0) return Opened::no;
    // One byte far behind the end: what is locked cannot be read by others, and all of the file may be.
    OVERLAPPED at{};
    at.OffsetHigh = 0x7fffffff;
    const auto handle = reinterpret_cast<HANDLE>(_get_osfhandle(file_));
    if (LockFileEx(handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) != 0) return Opened::yes;
    return Opened::by_another;
}

bool AppendFile::append(std::string_view record) {
    const __int64 before = _filelengthi64(file_);
    while (!record.empty()) {
        const int n_bytes = _write(file_, record.data(), static_cast<unsigned>(record.size()));
        if (n_bytes < 0) {
            const int cause = errno;
            _chsize_s(file_, before);
            errno = cause;
            return false;
        }
        record.remove_prefix(static_cast<size_t>(n_bytes));
    }
    return _commit(file_) == 0;
}

bool AppendFile::cut(uint64_t size) {
    return _chsize_s(file_, static_cast<__int64>(size)) == 0;
}

} // namespace auspex::cli

#endif
