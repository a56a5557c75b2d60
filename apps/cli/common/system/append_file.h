// A file that grows by whole records which outlive a crash, and that one process at a time has.
// One .cpp per platform implements it, as terminal.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace auspex::cli {

class AppendFile {
  public:
    AppendFile() = default;
    ~AppendFile(); // gives it free
    AppendFile(const AppendFile&) = delete;
    AppendFile& operator=(const AppendFile&) = delete;

    enum class Opened { yes, by_another, no }; // by_another: a process has it; no: errno says why
    // Creates what is missing. Once.
    Opened open(const std::string& path);
    // False with errno set. A record of which only a part could be written is taken back as far as that is possible.
    bool append(std::string_view record); // returns when it is on the disk
    bool cut(uint64_t size);              // what comes after this many bytes

  private:
    int file_ = -1;
};

} // namespace auspex::cli
