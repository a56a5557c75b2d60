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
    // Every element of a matrix or norm of 16 bits: these bits.
    void fill(const std::string& tensor, uint16_t bits) const {
        std::string bytes = read("model.safetensors");
        uint64_t header_bytes = 0;
        for (size_t i = 8; i-- > 0;)
            header_bytes = header_bytes << 8 | static_cast<unsigned char>(bytes[i]);
        const auto offsets = Json::parse(bytes.substr(8, header_bytes))[tensor]["data_offsets"];
        for (size_t at = offsets[0]; at < offsets[1].get<size_t>(); at += 2) {
            bytes[8 + header_bytes + at] = static_cast<char>(bits & 0xff);
            bytes[8 + header_bytes + at + 1] = static_cast<char>(bits >> 8);
        }
        write("model.safetensors", bytes);
    }
    void remove(const char* name) const { std::filesystem::remove(file(name)); }

  private:
    TempFolder folder_;
};

} // namespace auspex::test
