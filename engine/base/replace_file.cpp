// Writes beside, then renames.
#include "base/replace_file.h"

#include "base/platform.h"

#include <fstream>

namespace auspex {

std::filesystem::path system_path(const std::string& utf8) {
    return std::filesystem::path(std::u8string(utf8.begin(), utf8.end()));
}

Status replace_file(const std::string& path, std::string_view bytes) {
    const std::filesystem::path temporary = system_path(path + "." + std::to_string(entropy_seed()) + ".tmp");
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close(); // writes what is buffered
    std::error_code error;
    if (file) {
        std::filesystem::rename(temporary, system_path(path), error);
        if (!error) return ok_status();
    }
    std::filesystem::remove(temporary, error);
    return {Code::io, path + ": cannot be written"};
}

} // namespace auspex
