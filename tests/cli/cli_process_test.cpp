// The process helpers of cli_process.h, and tests of what every command has: help, version, unknown words.
#include "cli/cli_process.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/mount.h>
#endif
#include <unistd.h>

#if defined(__APPLE__)
#include <util.h>
#else
#include <pty.h>
#endif

namespace auspex::test {

namespace {

// A file system of 16 KiB, all of them used.
bool mount_full_disk([[maybe_unused]] const char* folder) {
#if defined(__linux__)
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    if (mount("full", folder, "tmpfs", 0, "size=16k") != 0) return false;
    const int file = open((std::string(folder) + "/fill").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::array<char, 4096> bytes{};
    while (write(file, bytes.data(), bytes.size()) > 0) {
    }
    close(file);
    return true;
#else
    return false;
#endif
}

// Where nobody may mount: files end at 16 KiB, and what would make them longer fails.
void keep_files_small() {
    const rlimit limit = {16 << 10, 16 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN); // which stays ignored in the program
}

[[noreturn]] void become_cli(const std::vector<std::string>& arguments, const CliSetting& setting) {
    for (const auto& [name, value] : setting.environment) {
        if (value != nullptr)
            setenv(name, value, 1);
        else
            unsetenv(name);
    }
    std::vector<char*> words = {const_cast<char*>(AUSPEX_PROGRAM)};
    for (const std::string& argument : arguments)
        words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    if (setting.full_disk != nullptr && !mount_full_disk(setting.full_disk)) keep_files_small();
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGPIPE, SIG_DFL);
    execv(AUSPEX_PROGRAM, words.data());
    _exit(127);
}

int wait_for_end(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// False at the end of the stream.
bool read_some(int descriptor, std::string& text) {
    std::array<char, 4096> buffer;
    const ssize_t n_bytes = read(descriptor, buffer.data(), buffer.size());
    if (n_bytes > 0) text.append(buffer.data(), static_cast<size_t>(n_bytes));
    return n_bytes > 0 || (n_bytes < 0 && errno == EINTR);
}

} // namespace

bool may_mount(const std::string& folder) {
    const pid_t child = fork();
    if (child == 0) _exit(mount_full_disk(folder.c_str()) ? 0 : 1);
    return wait_for_end(child) == 0;
}

CliResult run_cli(const std::vector<std::string>& arguments, const CliSetting& setting) {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> in{}, out{}, err{};
    if (pipe(in.data()) != 0 || pipe(out.data()) != 0 || pipe(err.data()) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        const std::string input = setting.input_file != nullptr ? setting.input_file : "/dev/null";
        const std::string output = setting.output_file != nullptr ? setting.output_file : "";
        dup2(setting.has_input ? in[0] : open(input.c_str(), O_RDONLY), STDIN_FILENO);
        dup2(!output.empty() ? open(output.c_str(), O_WRONLY) : out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        for (const int descriptor : {in[0], in[1], out[0], out[1], err[0], err[1]})
            close(descriptor);
        if (input == "-") close(STDIN_FILENO);
        if (output == "-") close(STDOUT_FILENO);
        become_cli(arguments, setting);
    }
    for (const int descriptor : {in[0], out[1], err[1]})
        close(descriptor);
    const ssize_t n_written = write(in[1], setting.input.data(), setting.input.size()); // fits a pipe's buffer
    static_cast<void>(n_written); // a program that ends before it reads its input is no error
    close(in[1]);

    CliResult result;
    int n_interrupts = setting.n_interrupts;
    size_t noted = std::string::npos; // of stderr, at the last interrupt: a second that is sent while the first waits would be none
    std::array<pollfd, 2> polled = {pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        if (poll(polled.data(), polled.size(), -1) < 0) continue;
        if (polled[0].revents != 0 && !read_some(out[0], result.out)) polled[0].fd = -1;
        if (polled[1].revents != 0 && !read_some(err[0], result.err)) polled[1].fd = -1;
        while (n_interrupts > 0 && !result.out.empty() && (!setting.are_interrupts_apart || result.err.size() != noted)) {
            kill(child, SIGINT);
            --n_interrupts;
            noted = result.err.size();
        }
    }
    close(out[0]);
    close(err[0]);
    result.exit_code = wait_for_end(child);
    return result;
}

CliResult run_cli_in_terminal(const std::vector<std::string>& arguments, const CliSetting& setting) {
    CliResult result;
    int terminal = -1;
    const winsize size = {.ws_row = 40, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) become_cli(arguments, setting);
    if (child < 0) return result;
    while (read_some(terminal, result.out)) { // ends with EIO when the child has closed its side
    }
    close(terminal);
    result.exit_code = wait_for_end(child);
    return result;
}

CliTerminalSession::CliTerminalSession(const std::vector<std::string>& arguments, const CliSetting& setting) {
    const winsize size = {.ws_row = 40, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ == 0) become_cli(arguments, setting);
}

CliTerminalSession::~CliTerminalSession() {
    if (child_ > 0) kill(child_, SIGKILL);
    exit_code();
}

void CliTerminalSession::type(const std::string& keys) const {
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

bool CliTerminalSession::wait_for(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
        const size_t at = shown_.find(text, found_);
        if (at != std::string::npos) {
            found_ = at + text.size();
            return true;
        }
        pollfd polled = {terminal_, POLLIN, 0};
        if (poll(&polled, 1, 1000) > 0 && !read_some(terminal_, shown_)) return false;
    }
    return false;
}

int CliTerminalSession::exit_code() {
    if (child_ <= 0) return -1;
    while (read_some(terminal_, shown_)) {
    }
    close(terminal_);
    return wait_for_end(std::exchange(child_, -1));
}

void expect_error(const std::vector<std::string>& arguments, int exit_code, const std::string& named,
                  const CliSetting& setting) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const CliResult result = run_cli(arguments, setting);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find("auspex: "), 0u) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "one line: " << result.err;
    EXPECT_NE(result.err.find(named), std::string::npos) << named << " in " << result.err;
}

Json run_cli_json(std::vector<std::string> arguments, const CliSetting& setting) {
    arguments.emplace_back("--json");
    const CliResult result = run_cli(arguments, setting);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json json = Json::parse(result.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << result.out;
    EXPECT_EQ(result.out.find('\n'), result.out.size() - 1) << "one object, one line";
    return json;
}

std::vector<std::string> keys_of(const Json& object) {
    std::vector<std::string> keys;
    for (const auto& item : object.items())
        keys.push_back(item.key());
    return keys;
}

TEST(Cli, HelpFitsEightyColumnsAndListsExitCodes) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                      {"--help"},
                                                      {"run", "--help"},
                                                      {"chat", "--help"},
                                                      {"info", "-h"},
                                                      {"batch", "--help"},
                                                      {"bench", "--help"},
                                                      {"tokenize", "--help"},
                                                      {"score", "--help"},
                                                      {"quantize", "--help"}}) {
        const CliResult result = run_cli(arguments);
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_EQ(result.err, "");
        EXPECT_NE(result.out.find("Exit codes:"), std::string::npos);
        std::istringstream lines(result.out);
        for (std::string line; std::getline(lines, line);)
            EXPECT_LE(line.size(), 82u) << line; // bytes; a … takes three
    }
}

TEST(Cli, HelpListsEveryFlagOfRun) {
    const std::string help = run_cli({"run", "--help"}).out;
    for (const char* flag : {"-m,",
                             "-md,",
                             "-p,",
                             "-f,",
                             "-n,",
                             "--temp ",
                             "-s,",
                             "--draft-len ",
                             "--no-draft",
                             "-c,",
                             "--samples ",
                             "--tokens ",
                             "--no-stop",
                             "--device ",
                             "--json",
                             "--color ",
                             "--cache-type ",
                             "--quant ",
                             "--draft-quant ",
                             "--chat",
                             "--system ",
                             "--chat-template ",
                             "--date "})
        EXPECT_NE(help.find(std::string("  ") + flag), std::string::npos) << flag;
}

TEST(Cli, PrintsItsVersion) {
    const CliResult result = run_cli({"--version"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, "auspex 0.1.0\n");
}

} // namespace auspex::test
