// Runs `auspex serve` as a user would. POSIX only.
#pragma once

#include "server_peers.h"

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>

namespace auspex::test {

class Program {
  public:
    explicit Program(const std::vector<std::string>& arguments) {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        child_ = ::fork();
        if (child_ == 0) {
            ::dup2(ends[1], 1);
            ::dup2(ends[1], 2);
            std::vector<char*> words = {const_cast<char*>(AUSPEX_PROGRAM)};
            for (const std::string& argument : arguments)
                words.push_back(const_cast<char*>(argument.c_str()));
            words.push_back(nullptr);
            ::execv(AUSPEX_PROGRAM, words.data());
            ::_exit(127);
        }
        ::close(ends[1]);
        out_ = ends[0];
    }
    ~Program() {
        if (child_ > 0) signal(SIGKILL);
        exit_code();
        close_output();
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // Waits until it has said so. False: it ended without.
    bool wait_for(const std::string& text) {
        while (shown_.find(text) == std::string::npos)
            if (!read_some()) return false;
        return true;
    }
    // Where it listens, once it does.
    uint16_t port() {
        const std::string before = "http://127.0.0.1:";
        if (!wait_for(" answers as ")) return 0;
        const size_t at = shown_.find(before);
        return at == std::string::npos ? 0 : static_cast<uint16_t>(std::stoi(shown_.substr(at + before.size())));
    }
    // Nobody reads what it says from now on.
    void close_output() {
        if (out_ >= 0) ::close(out_);
        out_ = -1;
    }
    pid_t id() const { return child_; }
    void signal(int number) const { ::kill(child_, number); }
    // 128 + n when signal n ended it.
    int exit_code() {
        if (child_ <= 0) return exit_code_;
        while (read_some()) {
        }
        int status = 0;
        while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
        child_ = -1;
        return exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    const std::string& shown() const { return shown_; }

  private:
    bool read_some() {
        std::array<char, 4096> bytes;
        const ssize_t n = ::read(out_, bytes.data(), bytes.size());
        if (n > 0) shown_.append(bytes.data(), static_cast<size_t>(n));
        return n > 0;
    }

    pid_t child_ = -1;
    int out_ = -1, exit_code_ = -1;
    std::string shown_;
};

} // namespace auspex::test
