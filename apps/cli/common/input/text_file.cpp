// Reads in blocks, so that no file fills the memory.
#include "cli/common/input/text_file.h"

#include "cli/common/input/values.h"
#include "cli/common/system/terminal.h"

#include <cerrno>
#include <cstring>
#include <memory>

namespace auspex::cli {

std::string read_stream(std::FILE* stream, const std::string& name, size_t most_bytes) {
    std::string text;
    char buffer[65536];
    while (const size_t n_bytes = std::fread(buffer, 1, sizeof buffer, stream)) {
        text.append(buffer, n_bytes);
        if (text.size() > most_bytes) throw Failure(kExitFile, name + ": expected at most " + format_bytes(most_bytes));
    }
    if (std::ferror(stream) != 0) throw Failure(kExitFile, name + ": " + std::strerror(errno));
    return text;
}

std::string read_file(const std::string& flag, const std::string& path, size_t most_bytes) {
    const std::string name = flag + " " + path;
    if (is_folder(path)) throw Failure(kExitFile, name + ": expected a file, found a folder");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(open_to_read(path), std::fclose);
    if (!file) throw Failure(kExitFile, name + ": " + std::strerror(errno));
    return read_stream(file.get(), name, most_bytes);
}

} // namespace auspex::cli
