// Runs the auspex program as a user would, and what several tests of it share. POSIX only.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace auspex::test {

using Json = nlohmann::ordered_json;

struct CliResult {
    int exit_code = -1; // 128 + n when signal n ended it
    std::string out, err;
};

struct CliSetting {
    std::string input = {};                                            // stdin, through a pipe
    bool has_input = false;                                            // false: /dev/null
    std::vector<std::pair<const char*, const char*>> environment = {}; // a null value unsets
    int n_interrupts = 0;                                              // SIGINTs once stdout has shown something
    bool are_interrupts_apart = false; // each after the first once stderr has said something of the one before
    const char* output_file = nullptr; // stdout goes here instead; "-": it is closed
    const char* full_disk = nullptr;   // this folder is one, for the program alone; where none may be mounted, files end at 16 KiB
    const char* input_file = nullptr;  // stdin comes from here instead; "-": it is closed
};

bool may_mount(const std::string& folder); // a file system there, for a process alone; in most containers: no
CliResult run_cli(const std::vector<std::string>& arguments, const CliSetting& setting = {});
// stdin, stdout and stderr are one terminal; what it showed is in `out`.
CliResult run_cli_in_terminal(const std::vector<std::string>& arguments, const CliSetting& setting = {});

// A program in a terminal, typed to and waited for as a user does.
class CliTerminalSession {
  public:
    explicit CliTerminalSession(const std::vector<std::string>& arguments, const CliSetting& setting = {});
    ~CliTerminalSession(); // ends what still runs
    CliTerminalSession(const CliTerminalSession&) = delete;
    CliTerminalSession& operator=(const CliTerminalSession&) = delete;

    void type(const std::string& keys) const; // "\x03" is Ctrl-C, "\x04" Ctrl-D
    // True when `text` is shown after what earlier waits found; false after a minute or at the end.
    bool wait_for(const std::string& text);
    int process() const { return child_; }
    // Waits for the end of the program; what it showed stays.
    int exit_code();
    const std::string& shown() const { return shown_; }

  private:
    int terminal_ = -1;
    int child_ = -1;
    std::string shown_;
    size_t found_ = 0; // end of the last text waited for
};

// One line on stderr that names something, nothing on stdout, and this exit code.
void expect_error(const std::vector<std::string>& arguments, int exit_code, const std::string& named,
                  const CliSetting& setting = {});

// Runs with --json, expects success, returns the object.
Json run_cli_json(std::vector<std::string> arguments, const CliSetting& setting = {});

std::vector<std::string> keys_of(const Json& object);

inline constexpr int kUsage = 2, kFile = 3, kDevice = 4, kCapacity = 5, kInterrupted = 130; // exit codes

inline const std::string kTarget = AUSPEX_PAIR_DIR "/target";
inline const std::string kDraft = AUSPEX_PAIR_DIR "/draft";

} // namespace auspex::test
