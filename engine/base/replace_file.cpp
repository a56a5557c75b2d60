// Writes beside, then renames.
#include "base/replace_file.h"

#include "base/platform.h"
#include "base/system_path.h"

#include <fstream>

namespace auspex {

namespace fs = std::filesystem;

Result<fs::path> file_behind(const std::string& path) {
    constexpr int max_links = 40; // as Linux
    fs::path target = system_path(path);
    for (int i = 0; i < max_links; ++i) {
        std::error_code error;
        const fs::file_status found = fs::symlink_status(target, error);
        if (found.type() == fs::file_type::symlink) {
            const fs::path next = fs::read_symlink(target, error);
            if (error) return Status(Code::io, path + ": a link that cannot be read: " + error.message());
            target = target.parent_path() / next; // an absolute path stands for itself
            continue;
        }
        if (found.type() == fs::file_type::not_found || found.type() == fs::file_type::regular) return target;
        if (found.type() == fs::file_type::none) return Status(Code::io, path + ": cannot be written: " + error.message());
        const char* what = found.type() == fs::file_type::directory ? "a folder" : "a device or a pipe";
        return Status(Code::io, path + ": found " + what + ", expected a file or the name of a new one");
    }
    return Status(Code::io, path + ": found links that lead to each other, expected a file");
}

std::error_code rename_over(const fs::path& finished, const fs::path& target) {
    std::error_code error;
    if (const fs::file_status before = fs::status(target, error); fs::exists(before))
        fs::permissions(finished, before.permissions(), error);
    fs::rename(finished, target, error);
    return error;
}

Status replace_file(const std::string& path, std::string_view bytes) {
    AUSPEX_TRY_ASSIGN(target, file_behind(path));
    fs::path temporary = target;
    temporary += "." + std::to_string(entropy_seed()) + ".tmp";
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close(); // writes what is buffered
    if (file && !rename_over(temporary, target)) return ok_status();
    std::error_code error;
    fs::remove(temporary, error);
    return {Code::io, path + ": cannot be written"};
}

} // namespace auspex
