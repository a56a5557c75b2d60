// The files of base/platform.h over a table of spans. Programs that link this file do not get the real ones from the library.
#include "fuzz/memory_files.h"

#include "base/platform.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace auspex {
namespace test {
namespace {

struct MemoryFile {
    std::string path;
    std::span<const std::byte> bytes;
};
std::vector<MemoryFile>& files() {
    static std::vector<MemoryFile> table;
    return table;
}

} // namespace

void clear_files() {
    files().clear();
}

void put_file(const std::string& path, std::span<const std::byte> bytes) {
    for (MemoryFile& file : files())
        if (file.path == path) {
            file.bytes = bytes;
            return;
        }
    files().push_back({path, bytes});
}

void put_file(const std::string& path, std::string_view text) {
    put_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

const std::string& memory_folder() {
    static const std::string folder = std::filesystem::temp_directory_path().string();
    return folder;
}

std::string real_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace test

Result<MappedFile> MappedFile::open(const std::string& path) {
    for (const auto& known : test::files())
        if (known.path == path) {
            MappedFile file;
            file.path_ = path;
            file.bytes_ = known.bytes;
            return file;
        }
    return Status(Code::not_found, path + ": cannot be opened: no such file");
}

MappedFile::~MappedFile() = default;

void release_pages(std::span<const std::byte>) {}

Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes) {
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    if (file.bytes().size() > max_bytes)
        return Status(Code::bad_file, path + ": " + std::to_string(file.bytes().size()) + " bytes, expected at most " +
                                          std::to_string(max_bytes));
    return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

bool path_exists(const std::string& path) {
    for (const auto& known : test::files())
        if (known.path == path) return true;
    return false;
}

} // namespace auspex
