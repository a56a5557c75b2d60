// How many threads the CLI leaves to llvmpipe, by the names that it gives them.
#include "cli/cli_process.h"

#include <filesystem>
#include <fstream>

namespace auspex::test {

namespace {

// Of a chat that waits for its first line.
int threads_of_llvmpipe(const CliSetting& setting) {
    CliTerminalSession session({"chat", "--chat-template", "llama2"}, setting);
    EXPECT_TRUE(session.wait_for("> ")) << session.shown();
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(session.process()) + "/task")) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        count += name.starts_with("llvmpipe-");
    }
    return count;
}

} // namespace

TEST(CliDriverThreads, AreNotWokenForASmallModelUnlessTheUserSaysSo) {
    if (!std::filesystem::exists("/proc/self/task")) GTEST_SKIP() << "threads have no names here";
    const CliSetting two = {.environment = {{"TERM", "xterm"}, {"LP_NUM_THREADS", "2"}}};
    if (threads_of_llvmpipe(two) == 0) GTEST_SKIP() << "another driver";
    EXPECT_EQ(threads_of_llvmpipe(two), 2);
    EXPECT_EQ(threads_of_llvmpipe({.environment = {{"TERM", "xterm"}, {"LP_NUM_THREADS", nullptr}}}), 0);
}

} // namespace auspex::test
