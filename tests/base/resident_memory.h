// How much of a mapped file counts as this process's memory. Only Linux tells (/proc/self/smaps): tests that ask stand
// between #ifdef __linux__ and there they must get an answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace auspex::test {

// Bytes of the file that are resident in this process's mappings of it.
inline uint64_t resident_bytes(const std::string& file) {
    std::ifstream smaps("/proc/self/smaps");
    EXPECT_TRUE(smaps.is_open()) << "/proc/self/smaps cannot be read";
    const std::string name = " " + std::filesystem::canonical(file).string();
    uint64_t bytes = 0;
    bool is_files = false;
    for (std::string line; std::getline(smaps, line);) {
        if (const std::string first = line.substr(0, line.find(' ')); first.find('-') != std::string::npos) {
            is_files = line.ends_with(name); // "7f00-7f20 r--p 00000000 fe:00 1234    /path"
        } else if (is_files && first == "Rss:") {
            uint64_t kilobytes = 0;
            std::istringstream(line.substr(first.size())) >> kilobytes;
            bytes += kilobytes * 1024;
        }
    }
    return bytes;
}

} // namespace auspex::test
