// Reads in blocks, and keeps no more than a line and a block.
#include "cli/batch/input_lines.h"

#include "cli/common/input/values.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace auspex::cli {

namespace {

constexpr size_t kBlock = size_t{1} << 16;

} // namespace

InputLines::InputLines(std::string flag, std::string path, size_t max_bytes)
    : name_(std::move(flag) + " " + path), max_bytes_(max_bytes == 0 ? SIZE_MAX : max_bytes),
      file_(nullptr, std::fclose) {
    if (is_folder(path)) throw Failure(kExitFile, name_ + ": expected a file, found a folder");
    file_.reset(open_to_read(path));
    if (!file_) throw Failure(kExitFile, name_ + ": " + std::strerror(errno));
    if (std::fseek(file_.get(), 0, SEEK_END) != 0) return; // a pipe
    const long size = std::ftell(file_.get());
    size_ = size > 0 ? static_cast<uint64_t>(size) : 0;
    std::rewind(file_.get());
}

bool InputLines::next() {
    text_.clear();
    has_end_ = false;
    bool has_bytes = false;
    while (!has_end_) {
        if (begin_ == buffer_.size()) {
            buffer_.resize(kBlock);
            buffer_.resize(std::fread(buffer_.data(), 1, kBlock, file_.get()));
            begin_ = 0;
            if (std::ferror(file_.get()) != 0) throw Failure(kExitFile, name_ + ": " + std::strerror(errno));
            if (buffer_.empty()) break;
        }
        has_bytes = true;
        const size_t line_end = buffer_.find('\n', begin_);
        has_end_ = line_end != std::string::npos;
        const size_t end = has_end_ ? line_end : buffer_.size();
        text_.append(buffer_, begin_, std::min(end - begin_, max_bytes_ - text_.size()));
        const size_t next_begin = end + (has_end_ ? 1 : 0);
        offset_ += next_begin - begin_;
        begin_ = next_begin;
    }
    if (has_bytes) ++number_;
    return has_bytes;
}

float InputLines::fraction() const {
    return size_ == 0 ? 0.0f : static_cast<float>(static_cast<double>(offset_) / static_cast<double>(size_));
}

} // namespace auspex::cli
