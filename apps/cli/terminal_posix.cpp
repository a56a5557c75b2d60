// Linux and macOS.
#if !defined(_WIN32)

#include "cli/terminal.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace auspex::cli {

namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

void note_interrupt(int) {
    interrupt_seen = 1;
}

int descriptor(Stream stream) {
    return stream == Stream::input ? STDIN_FILENO : stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO;
}

} // namespace

std::vector<std::string> prepare_console(int argc, char** argv) {
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

std::FILE* open_to_read(const std::string& path) {
    return std::fopen(path.c_str(), "rb");
}

std::optional<std::string> environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
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

InterruptGuard::InterruptGuard() {
    struct sigaction inherited {};
    if (sigaction(SIGINT, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN) return; // a background job
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART); // the second Ctrl-C meets the default: the end
    sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
    struct sigaction current {};
    if (sigaction(SIGINT, nullptr, &current) == 0 && current.sa_handler == note_interrupt) std::signal(SIGINT, SIG_DFL);
}

bool interrupted() {
    return interrupt_seen != 0;
}

} // namespace auspex::cli

#endif
