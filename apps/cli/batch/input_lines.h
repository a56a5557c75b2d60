// Lines of a file of any size, one at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace auspex::cli {

class InputLines {
  public:
    // flag: for errors, "-i". Throws Failure(kExitFile). A line is cut behind max_bytes; 0: never.
    InputLines(std::string flag, std::string path, size_t max_bytes);

    // The next line without its end; false at the end of the file. Throws Failure(kExitFile).
    bool next();
    const std::string& text() const { return text_; }
    uint64_t number() const { return number_; }     // from 1
    bool has_end() const { return has_end_; }       // false: the file ends without a line end
    uint64_t bytes_read() const { return offset_; } // to the end of the line
    float fraction() const;                         // of the file

  private:
    std::string name_; // for errors
    size_t max_bytes_;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
    uint64_t size_ = 0; // of the file; 0: not known
    std::string buffer_{};
    size_t begin_ = 0; // of what is unread in the buffer
    std::string text_{};
    uint64_t number_ = 0, offset_ = 0;
    bool has_end_ = true;
};

} // namespace auspex::cli
