// Files, the loader and the clock as the operating system gives them. Needs no device.
#include "base/platform.h"
#include "base/resident_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace auspex::platform_test {
namespace {

// A folder of its own for each test, removed afterwards.
class Platform : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("auspex_platform_test_" + std::to_string(entropy_seed()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
        return path(name);
    }

    std::filesystem::path folder_;
};

std::string text_of(const MappedFile& file) {
    return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

TEST_F(Platform, maps_a_file_with_every_byte) {
    const std::string text("a\0b\r\n\xff", 6);
    auto mapped = MappedFile::open(write("bytes", text));
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_EQ(text_of(mapped.value()), text);
    EXPECT_EQ(mapped.value().path(), path("bytes"));
}

TEST_F(Platform, an_empty_file_maps_to_nothing) {
    auto mapped = MappedFile::open(write("empty", ""));
    ASSERT_TRUE(mapped.ok());
    EXPECT_TRUE(mapped.value().bytes().empty());
}

TEST_F(Platform, a_mapping_moves_with_its_owner) {
    auto first = MappedFile::open(write("first", "one"));
    auto second = MappedFile::open(write("second", "second"));
    ASSERT_TRUE(first.ok() && second.ok());
    MappedFile owner = std::move(first).value();
    EXPECT_EQ(text_of(owner), "one");
    owner = std::move(second).value();
    EXPECT_EQ(text_of(owner), "second");
    EXPECT_EQ(owner.path(), path("second"));
}

#ifdef __linux__
TEST_F(Platform, released_pages_are_resident_no_more_and_can_be_read_again) {
    constexpr size_t bytes = 16u << 20, begin = bytes / 4 + 100, n = bytes / 2; // begins and ends inside of pages
    std::string text(bytes, ' ');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 >> 8);
    auto mapped = MappedFile::open(write("pages", text));
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(text_of(mapped.value()), text);
    const uint64_t before = test::resident_bytes(path("pages"));
    EXPECT_GE(before, bytes);
    constexpr size_t part = 65536, huge = 2u << 20; // a page that the range covers in part stays; a huge one goes whole
    release_pages(mapped.value().bytes().subspan(begin, n));
    const uint64_t after = test::resident_bytes(path("pages"));
    EXPECT_LE(after, before - n + 2 * part);
    EXPECT_GE(after + 2 * huge, before - n) << "what lies outside of the range stays";
    release_pages(mapped.value().bytes().subspan(begin, 10));
    release_pages({});
    EXPECT_EQ(text_of(mapped.value()), text);
}
#endif

TEST_F(Platform, what_is_no_regular_file_is_not_found) {
    for (const std::string& name : {path("absent"), folder_.string(), path("absent/below"), std::string()}) {
        const auto mapped = MappedFile::open(name);
        EXPECT_EQ(mapped.status().code(), Code::not_found) << name;
        EXPECT_EQ(mapped.status().message().substr(0, name.size()), name);
        EXPECT_EQ(read_text_file(name, 100).status().code(), Code::not_found) << name;
    }
}

TEST_F(Platform, reads_text_up_to_a_limit) {
    const std::string name = write("config.json", "{\"a\": 1}");
    auto text = read_text_file(name, 8);
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_EQ(text.value(), "{\"a\": 1}");
    EXPECT_EQ(read_text_file(name, 7).status().code(), Code::bad_file);
    EXPECT_EQ(read_text_file(write("empty", ""), 0).value(), "");
}

TEST_F(Platform, knows_what_exists) {
    EXPECT_TRUE(path_exists(folder_.string()));
    EXPECT_TRUE(path_exists(write("file", "")));
    EXPECT_FALSE(path_exists(path("absent")));
}

TEST_F(Platform, finds_the_vulkan_loader) {
    auto loader = SharedLibrary::open_vulkan_loader();
    ASSERT_TRUE(loader.ok()) << loader.status().message();
    EXPECT_NE(loader.value()->symbol("vkGetInstanceProcAddr"), nullptr);
    EXPECT_EQ(loader.value()->symbol("vkNoSuchFunction"), nullptr);
}

TEST_F(Platform, time_does_not_run_backwards) {
    const uint64_t before = now_ns();
    EXPECT_GE(now_ns(), before);
}

TEST_F(Platform, seeds_differ) {
    EXPECT_NE(entropy_seed(), entropy_seed());
}

TEST_F(Platform, knows_the_machines_memory) {
    const HostMemory memory = host_memory();
    EXPECT_GT(memory.available, 64u << 20);
    EXPECT_GE(memory.total, memory.available);
}

} // namespace
} // namespace auspex::platform_test
