// What the commands need from the operating system: streams, Ctrl-C, folders, arguments.
// One .cpp per platform implements it (terminal_posix.cpp, terminal_windows.cpp); nothing else includes system headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

namespace auspex::cli {

enum class Stream { input, output, error };

// UTF-8 and escape sequences where the console has to be told, and the arguments as UTF-8.
std::vector<std::string> prepare_console(int argc, char** argv);

bool is_terminal(Stream stream);
// stdin is a pipe, file or socket. False for a terminal, a null device and a closed stdin: nothing was handed over.
bool input_is_handed_over();
bool is_folder(const std::string& path);
bool exists(const std::string& path);
bool is_same_file(const std::string& a, const std::string& b); // by whatever names; false when either is missing
std::FILE* open_to_read(const std::string& path);              // null with errno set; the caller closes
std::FILE* open_to_write(const std::string& path);             // the same; what was there is gone

std::tm local_time(); // now
uint64_t thread_cpu_ns(); // CPU time of this thread so far; 0 where the system does not tell
std::optional<std::string> environment(const char* name);
void set_environment(const char* name, const char* value); // for libraries that are loaded later; before any other thread
// Mesa maps a file of its shader cache without room for it, which ends the process on a full disk. Before any driver is
// loaded.
void keep_drivers_off_a_full_disk();
std::string vulkan_drivers(); // that a Vulkan loader asks here: those the environment names, or those installed
std::string executable_folder(); // UTF-8; empty when the system does not tell
std::string cache_folder();      // UTF-8; of Auspex, created when missing; empty when there can be none

// What a guard is for: Ctrl-C alone, or SIGTERM as well (Windows has none).
enum class Interrupts { keys, keys_and_termination };

// While one is alive the first Ctrl-C only makes interrupted() true; the second ends the process at once.
class InterruptGuard {
  public:
    explicit InterruptGuard(Interrupts interrupts = Interrupts::keys);
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
};
bool interrupted();
// The next Ctrl-C is the first again. True when there was one.
bool take_interrupt();

// Lines of stdin. Needs an InterruptGuard; nothing else may read stdin.
class LineReader {
  public:
    enum class End { line, end_of_input, interrupted };
    // The next line without its end, from a terminal as UTF-8. A last line that lacks its end counts as a line.
    // `interrupted`: Ctrl-C came first and is taken. A line is cut at max_bytes.
    End read(std::string& line, size_t max_bytes);

  private:
    std::string unread_;
};

} // namespace auspex::cli
