// Linux and macOS.
#if !defined(_WIN32)

#include "cli/common/system/terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace auspex::cli {

namespace {

volatile std::sig_atomic_t interrupt_seen = 0;
volatile std::sig_atomic_t wake_end = -1; // of a pipe; a byte in it wakes read_line

void note_interrupt(int signal);

void stop_catching(int signal) {
    struct sigaction current {};
    if (sigaction(signal, nullptr, &current) == 0 && current.sa_handler == note_interrupt) std::signal(signal, SIG_DFL);
}

void note_interrupt(int signal) {
    const int saved = errno;
    interrupt_seen = 1;
    stop_catching(signal == SIGTERM ? SIGINT : SIGTERM); // either is the first, and the next of both the second
    if (wake_end >= 0) {
        const ssize_t n_written = write(wake_end, "", 1);
        static_cast<void>(n_written); // a full pipe wakes as well
    }
    errno = saved;
}

// The first is noted, the second meets the default: the end.
void catch_first(int signal) {
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
    struct sigaction inherited {};
    return sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

// The end that poll sees, made at first use; -1 when there can be none: then Ctrl-C is seen with the next line.
int wake_pipe() {
    static const int readable = [] {
        std::array<int, 2> ends{};
        if (pipe(ends.data()) != 0) return -1;
        for (const int end : ends) {
            fcntl(end, F_SETFL, O_NONBLOCK);
            fcntl(end, F_SETFD, FD_CLOEXEC);
        }
        wake_end = ends[1];
        return ends[0];
    }();
    return readable;
}

// False when Ctrl-C came first.
bool wait_for_input() {
    std::array<pollfd, 2> polled = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{wake_pipe(), POLLIN, 0}};
    while (!interrupted()) {
        if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return true; // the read will tell
        if (polled[0].revents != 0 && !interrupted()) return true;
    }
    return false;
}

int descriptor(Stream stream) {
    return stream == Stream::input ? STDIN_FILENO : stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO;
}

} // namespace

std::vector<std::string> prepare_console(int argc, char** argv) {
    // A stream that was closed stays one that fails: else the next file that is opened, a model or a device, would be it.
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
        const int wrong_way = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY); // the lowest that is free
        static_cast<void>(wrong_way);
    }
    return {argv, argv + argc};
}

bool is_terminal(Stream stream) {
    return isatty(descriptor(stream)) == 1;
}

bool input_is_handed_over() {
    struct stat status {};
    if (fstat(STDIN_FILENO, &status) != 0) return false;
    return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

bool is_folder(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool exists(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0;
}

bool is_same_file(const std::string& a, const std::string& b) {
    struct stat of_a {
    }, of_b{};
    return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

std::tm local_time() {
    const std::time_t now = std::time(nullptr);
    std::tm fields{};
    localtime_r(&now, &fields);
    return fields;
}

uint64_t thread_cpu_ns() {
    struct timespec time {};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

std::FILE* open_to_read(const std::string& path) {
    return std::fopen(path.c_str(), "rb");
}

std::FILE* open_to_write(const std::string& path) {
    return std::fopen(path.c_str(), "wb");
}

std::optional<std::string> environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

void set_environment(const char* name, const char* value) {
    ::setenv(name, value, /*overwrite=*/1);
}

void keep_drivers_off_a_full_disk() {
    constexpr const char* off = "MESA_SHADER_CACHE_DISABLE";
    constexpr uintmax_t least_bytes = 16u << 20; // the mapped file has 1.3 MB; some room for others beside it
    std::string folder;
    for (const char* variable : {"MESA_SHADER_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) // as Mesa looks for it
        if (const auto value = environment(variable); value && folder.empty()) folder = *value;
    std::error_code error;
    const auto room = std::filesystem::space(folder, error);
    if (!error && room.available < least_bytes && !environment(off)) set_environment(off, "true");
}

std::string vulkan_drivers() {
    for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) // the newer name counts
        if (const auto files = environment(variable)) return std::string(variable) + "=" + *files;
    std::string names;
    for (const char* folder : {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"}) {
        std::error_code error;
        for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
            names += (names.empty() ? "" : ", ") + at->path().filename().string();
    }
    return names.empty() ? "any driver, as none is installed in /usr/share/vulkan/icd.d" : names;
}

std::string executable_folder() {
    std::error_code error;
#if defined(__APPLE__)
    char buffer[4096];
    uint32_t size = sizeof buffer;
    if (_NSGetExecutablePath(buffer, &size) != 0) return {};
    const std::filesystem::path path = std::filesystem::canonical(buffer, error);
#else
    const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
#endif
    return error ? std::string() : path.parent_path().string();
}

std::string cache_folder() {
    std::filesystem::path folder;
    // The XDG base directory specification ignores relative paths.
    if (const auto xdg = environment("XDG_CACHE_HOME"); xdg && xdg->starts_with('/'))
        folder = *xdg;
    else if (const auto home = environment("HOME"); home && home->starts_with('/'))
        folder = std::filesystem::path(*home) / ".cache";
    else
        return {};
    folder /= "auspex";
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    return access(folder.c_str(), W_OK | X_OK) == 0 ? folder.string() : std::string();
}

InterruptGuard::InterruptGuard(Interrupts interrupts) {
    if (!is_ignored(SIGINT)) catch_first(SIGINT); // else it is a background job
    if (interrupts == Interrupts::keys_and_termination && !is_ignored(SIGTERM)) catch_first(SIGTERM);
}

InterruptGuard::~InterruptGuard() {
    stop_catching(SIGINT);
    stop_catching(SIGTERM);
}

bool interrupted() {
    return interrupt_seen != 0;
}

bool take_interrupt() {
    if (interrupt_seen == 0) return false;
    std::array<char, 16> bytes;
    while (wake_end >= 0 && read(wake_pipe(), bytes.data(), bytes.size()) > 0) {
    }
    interrupt_seen = 0;
    catch_first(SIGINT);
    return true;
}

LineReader::End LineReader::read(std::string& line, size_t max_bytes) {
    line.clear();
    while (true) {
        const size_t end = unread_.find('\n');
        line.append(unread_, 0, std::min(end, max_bytes - line.size()));
        unread_.erase(0, end == std::string::npos ? end : end + 1);
        if (end != std::string::npos) break;

        if (!wait_for_input()) {
            take_interrupt();
            return End::interrupted;
        }
        std::array<char, 4096> buffer;
        const ssize_t n_bytes = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (n_bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n_bytes <= 0 && line.empty()) return End::end_of_input;
        if (n_bytes <= 0) break;
        unread_.assign(buffer.data(), static_cast<size_t>(n_bytes));
    }
    if (line.ends_with('\r')) line.pop_back();
    return End::line;
}

} // namespace auspex::cli

#endif
