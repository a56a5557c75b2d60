// Files are replaced where their links lead, and nothing but files: by everything that writes beside and renames.
#include "base/replace_file.h"

#include "formats/entry_file.h"
#include "formats/gguf_writer.h"
#include "model/file_fixtures.h"

#include <nlohmann/json.hpp>

#include <functional>

#if defined(__unix__) || defined(__APPLE__)
#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#endif

namespace auspex::replace_file_test {
namespace {

using namespace test;
namespace fs = std::filesystem;

std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Writer {
    const char* name;
    std::function<bool(const std::string& path)> writes; // false: refused
    std::string beginning;                               // of what it has written
};
const Writer writers[] = {
    {"replace_file", [](const std::string& path) { return replace_file(path, "new").ok(); }, "new"},
    {"EntryFile",
     [](const std::string& path) { return EntryFile(path, 1000, "what is kept").put({{"key", "a"}}, {{"value", 1}}, {}); },
     "{\"entries\":[{\"key\""},
    {"GgufWriter",
     [](const std::string& path) {
         GgufWriter writer(path);
         return writer.begin().ok() && writer.finish().ok();
     },
     "GGUF"}};

TEST(ReplaceFile, links_are_written_through) {
    for (const Writer& writer : writers) {
        TempFolder folder;
        fs::create_directory(folder.file("far"));
        folder.write("far/real", "old");
        fs::create_symlink("far/real", folder.file("link")); // relative to its own folder
        fs::create_symlink(folder.file("link"), folder.file("link to link"));
        fs::create_symlink("far/nothing yet", folder.file("dangling"));
        fs::permissions(folder.file("far/real"), fs::perms::owner_read | fs::perms::owner_write);
        for (const char* name : {"link", "link to link", "far/real", "dangling", "new file"}) {
            EXPECT_TRUE(writer.writes(folder.file(name))) << writer.name << " " << name;
            const bool is_link = std::string_view(name).find("link") == 0 || std::string_view(name) == "dangling";
            EXPECT_EQ(fs::is_symlink(folder.file(name)), is_link) << writer.name << " " << name;
            EXPECT_TRUE(content(folder.file(name)).starts_with(writer.beginning)) << writer.name << " " << name;
        }
        EXPECT_TRUE(content(folder.file("far/real")).starts_with(writer.beginning)) << writer.name;
        EXPECT_TRUE(content(folder.file("far/nothing yet")).starts_with(writer.beginning)) << writer.name;
        EXPECT_EQ(fs::status(folder.file("far/real")).permissions(), fs::perms::owner_read | fs::perms::owner_write)
            << writer.name << ": a private file stays private";
        EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 5) << writer.name << ": nothing is left beside";
        EXPECT_EQ(std::distance(fs::directory_iterator(folder.file("far")), {}), 2) << writer.name;
    }
}

TEST(ReplaceFile, what_is_no_file_stays) {
    for (const Writer& writer : writers) {
        TempFolder folder;
        fs::create_directory(folder.file("folder"));
        fs::create_symlink("folder", folder.file("link to folder"));
        fs::create_symlink("loop", folder.file("loop"));
        std::vector<const char*> names = {"folder", "link to folder", "loop"};
#if defined(__unix__) || defined(__APPLE__)
        ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
        fs::create_symlink("pipe", folder.file("link to pipe"));
        names.insert(names.end(), {"pipe", "link to pipe"});
#endif
        const auto n_before = std::distance(fs::directory_iterator(folder.path()), {});
        for (const char* name : names) {
            const fs::file_type before = fs::symlink_status(folder.file(name)).type();
            EXPECT_FALSE(writer.writes(folder.file(name))) << writer.name << " " << name;
            EXPECT_EQ(fs::symlink_status(folder.file(name)).type(), before) << writer.name << " " << name;
            const Status status = file_behind(folder.file(name)).status();
            expect_refused(status, Code::io, folder.file(name), name);
        }
        EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), n_before) << writer.name;
    }
}

#if defined(__unix__) || defined(__APPLE__)
// The kernel refuses every byte, as a full disk would.
TEST(ReplaceFile, a_full_disk_leaves_the_old_file_and_nothing_beside_it) {
    struct rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto previous = std::signal(SIGXFSZ, SIG_IGN);
    for (const Writer& writer : writers) {
        TempFolder folder;
        folder.write("file", "old");
        struct rlimit none = before;
        none.rlim_cur = 0;
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
        const bool written = writer.writes(folder.file("file"));
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        EXPECT_FALSE(written) << writer.name;
        EXPECT_EQ(content(folder.file("file")), "old") << writer.name;
        EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << writer.name;
    }
    std::signal(SIGXFSZ, previous);
}
#endif

} // namespace
} // namespace auspex::replace_file_test
