// A folder of a test's own.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace auspex::test {

// A new empty folder, removed with everything in it at the end.
class TempFolder {
  public:
    TempFolder() {
        static std::atomic<int> counter = 0;
        // The address of a local differs between processes (and a taken name is skipped).
        for (uintptr_t salt = reinterpret_cast<uintptr_t>(this);; ++salt) {
            const auto name = "auspex_test_" + std::to_string(salt) + "_" + std::to_string(counter++);
            const auto folder = std::filesystem::temp_directory_path() / name;
            if (!std::filesystem::create_directory(folder)) continue;
            path_ = folder.string();
            return;
        }
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    void write(std::string_view name, std::string_view bytes) const {
        std::ofstream out(file(name), std::ios::binary | std::ios::trunc);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        ASSERT_TRUE(out.good()) << file(name);
    }

  private:
    std::string path_;
};

} // namespace auspex::test
