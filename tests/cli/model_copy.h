// Models that tests damage, for every command alike.
#pragma once

#include "cli/cli_process.h"
#include "model/file_fixtures.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace auspex::test {

// A copy of a bundled model whose files can be damaged.
class ModelCopy {
  public:
    explicit ModelCopy(const std::string& model) {
        for (const auto& entry : std::filesystem::directory_iterator(model)) {
            const std::filesystem::path copy = folder_.file(entry.path().filename().string());
            std::filesystem::copy_file(entry.path(), copy);
            std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
        }
    }
    const std::string& path() const { return folder_.path(); }
    std::string file(const char* name) const { return folder_.file(name); }
    std::string read(const char* name) const {
        std::ifstream stream(file(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    void write(const char* name, const std::string& bytes) const { folder_.write(name, bytes); }
    void edit(const char* name, const std::string& from, const std::string& to) const {
        write(name, with(read(name), from, to));
    }
    void remove(const char* name) const { std::filesystem::remove(file(name)); }

  private:
    TempFolder folder_;
};

} // namespace auspex::test
