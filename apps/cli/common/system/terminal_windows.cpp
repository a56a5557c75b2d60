// Windows. Paths and arguments are UTF-8 outside this file.
#if defined(_WIN32)

#include "cli/common/system/terminal.h"

#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>

#include <shellapi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <io.h>

namespace auspex::cli {

namespace {

std::atomic<bool> interrupt_seen{false};

BOOL WINAPI note_interrupt(DWORD event) {
    if (event != CTRL_C_EVENT) return FALSE;
    return interrupt_seen.exchange(true) ? FALSE : TRUE; // FALSE: the default handler ends the process
}

std::string to_utf8(const std::wstring& text) {
    const int wide_size = static_cast<int>(text.size());
    const int size = WideCharToMultiByte(CP_UTF8, 0, text.data(), wide_size, nullptr, 0, nullptr, nullptr);
    std::string result(static_cast<size_t>(size), '\0');
    WideCharToMultiByte(CP_UTF8, 0, text.data(), wide_size, result.data(), size, nullptr, nullptr);
    return result;
}

std::wstring to_wide(const std::string& text) {
    const int utf8_size = static_cast<int>(text.size());
    const int size = MultiByteToWideChar(CP_UTF8, 0, text.data(), utf8_size, nullptr, 0);
    std::wstring result(static_cast<size_t>(size), L'\0');
    MultiByteToWideChar(CP_UTF8, 0, text.data(), utf8_size, result.data(), size);
    return result;
}

HANDLE standard_handle(Stream stream) {
    return GetStdHandle(stream == Stream::input    ? STD_INPUT_HANDLE
                        : stream == Stream::output ? STD_OUTPUT_HANDLE
                                                   : STD_ERROR_HANDLE);
}

// At least one byte of stdin as UTF-8; empty at its end, or where Ctrl-C ended the wait.
std::string read_input() {
    const HANDLE input = standard_handle(Stream::input);
    DWORD count = 0, mode = 0;
    if (!GetConsoleMode(input, &mode)) {
        std::array<char, 4096> buffer;
        if (!ReadFile(input, buffer.data(), static_cast<DWORD>(buffer.size()), &count, nullptr)) return {};
        return {buffer.data(), count};
    }
    std::array<wchar_t, 4096> buffer;
    if (!ReadConsoleW(input, buffer.data(), static_cast<DWORD>(buffer.size() - 1), &count, nullptr)) return {};
    if (count > 0 && IS_HIGH_SURROGATE(buffer[count - 1])) { // the buffer parted a character
        DWORD more = 0;
        if (ReadConsoleW(input, buffer.data() + count, 1, &more, nullptr)) count += more;
    }
    if (count > 0 && buffer[0] == L'\x1a') return {}; // Ctrl-Z
    return to_utf8(std::wstring(buffer.data(), count));
}

} // namespace

std::vector<std::string> prepare_console(int argc, char** argv) {
    SetConsoleOutputCP(CP_UTF8);
    for (const Stream stream : {Stream::output, Stream::error}) {
        DWORD mode = 0;
        if (GetConsoleMode(standard_handle(stream), &mode))
            SetConsoleMode(standard_handle(stream), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
    _setmode(_fileno(stdin), _O_BINARY); // text goes through byte for byte
    _setmode(_fileno(stdout), _O_BINARY);

    int n_wide = 0;
    LPWSTR* wide = CommandLineToArgvW(GetCommandLineW(), &n_wide);
    if (wide == nullptr) return {argv, argv + argc};
    std::vector<std::string> arguments;
    for (int i = 0; i < n_wide; ++i)
        arguments.push_back(to_utf8(wide[i]));
    LocalFree(wide);
    return arguments;
}

bool is_terminal(Stream stream) {
    DWORD mode = 0;
    return GetConsoleMode(standard_handle(stream), &mode) != 0;
}

bool input_is_handed_over() {
    const DWORD type = GetFileType(standard_handle(Stream::input));
    return type == FILE_TYPE_DISK || type == FILE_TYPE_PIPE;
}

bool is_folder(const std::string& path) {
    const DWORD attributes = GetFileAttributesW(to_wide(path).c_str());
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

bool exists(const std::string& path) {
    return GetFileAttributesW(to_wide(path).c_str()) != INVALID_FILE_ATTRIBUTES;
}

bool is_same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    return std::filesystem::equivalent(to_wide(a), to_wide(b), error) && !error;
}

std::tm local_time() {
    SYSTEMTIME now{};
    GetLocalTime(&now);
    std::tm fields{};
    fields.tm_year = now.wYear - 1900;
    fields.tm_mon = now.wMonth - 1;
    fields.tm_mday = now.wDay;
    return fields;
}

uint64_t thread_cpu_ns() {
    FILETIME created{}, ended{}, kernel{}, user{};
    if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user)) return 0;
    const auto ticks = [](const FILETIME& time) { return uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; };
    return (ticks(kernel) + ticks(user)) * 100; // of 100 ns
}

std::FILE* open_to_read(const std::string& path) {
    return _wfopen(to_wide(path).c_str(), L"rb");
}

std::FILE* open_to_write(const std::string& path) {
    return _wfopen(to_wide(path).c_str(), L"wb");
}

std::optional<std::string> environment(const char* name) {
    wchar_t buffer[32768];
    const DWORD size = GetEnvironmentVariableW(to_wide(name).c_str(), buffer, 32768);
    if (size == 0 && GetLastError() == ERROR_ENVVAR_NOT_FOUND) return std::nullopt;
    return to_utf8(std::wstring(buffer, size));
}

void set_environment(const char* name, const char* value) {
    _putenv_s(name, value);
}

void keep_drivers_off_a_full_disk() {}

std::string vulkan_drivers() {
    for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"})
        if (const auto files = environment(variable)) return std::string(variable) + "=" + *files;
    return "the drivers that the registry names";
}

std::string executable_folder() {
    wchar_t buffer[32768];
    const DWORD size = GetModuleFileNameW(nullptr, buffer, 32768);
    if (size == 0 || size == 32768) return {};
    return to_utf8(std::filesystem::path(std::wstring(buffer, size)).parent_path().wstring());
}

std::string cache_folder() {
    const auto local = environment("LOCALAPPDATA");
    if (!local || local->empty()) return {};
    const std::filesystem::path folder = std::filesystem::path(to_wide(*local)) / L"auspex" / L"cache";
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    return std::filesystem::is_directory(folder, error) ? to_utf8(folder.wstring()) : std::string();
}

InterruptGuard::InterruptGuard(Interrupts) {
    SetConsoleCtrlHandler(note_interrupt, TRUE);
}

InterruptGuard::~InterruptGuard() {
    SetConsoleCtrlHandler(note_interrupt, FALSE);
}

bool interrupted() {
    return interrupt_seen.load();
}

bool take_interrupt() {
    return interrupt_seen.exchange(false);
}

LineReader::End LineReader::read(std::string& line, size_t max_bytes) {
    constexpr DWORD handler_delay_ms = 50; // the handler runs on a thread of its own, perhaps after the read has ended
    line.clear();
    while (true) {
        const size_t end = unread_.find('\n');
        line.append(unread_, 0, std::min(end, max_bytes - line.size()));
        unread_.erase(0, end == std::string::npos ? end : end + 1);
        if (end != std::string::npos) break;

        unread_ = read_input();
        if (unread_.empty()) Sleep(handler_delay_ms);
        if (take_interrupt()) return End::interrupted;
        if (unread_.empty() && line.empty()) return End::end_of_input;
        if (unread_.empty()) break;
    }
    if (line.ends_with('\r')) line.pop_back();
    return End::line;
}

} // namespace auspex::cli

#endif
