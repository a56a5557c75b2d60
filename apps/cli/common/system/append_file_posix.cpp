// Linux and macOS.
#if !defined(_WIN32)

#include "cli/common/system/append_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace auspex::cli {

AppendFile::~AppendFile() {
    if (file_ >= 0) close(file_);
}

AppendFile::Opened AppendFile::open(const std::string& path) {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) return Opened::no;
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) return Opened::yes;
    return errno == EWOULDBLOCK ? Opened::by_another : Opened::no;
}

bool AppendFile::append(std::string_view record) {
    struct stat before {};
    if (fstat(file_, &before) != 0) return false;
    while (!record.empty()) {
        const ssize_t n_bytes = write(file_, record.data(), record.size());
        if (n_bytes > 0) record.remove_prefix(static_cast<size_t>(n_bytes));
        if (n_bytes >= 0 || errno == EINTR) continue;
        const int cause = errno;
        const bool is_taken_back = ftruncate(file_, before.st_size) == 0;
        static_cast<void>(is_taken_back); // else the next reader finds a torn record
        errno = cause;
        return false;
    }
    return fsync(file_) == 0 || errno == EINVAL; // /dev/null and its like have no disk
}

bool AppendFile::cut(uint64_t size) {
    return ftruncate(file_, static_cast<off_t>(size)) == 0;
}

} // namespace auspex::cli

#endif
