// How many threads the CLI leaves to llvmpipe, by the names that it gives them, which Linux tells. Other drivers have none of
// that name, whatever is said.
#if defined(__linux__)

#include "cli/cli_process.h"

#include <filesystem>
#include <fstream>

namespace auspex::test::driver_threads_test {

namespace {

// Of a chat that waits for its first line. threads: LP_NUM_THREADS, null: not set.
int threads_of_llvmpipe(const char* threads) {
    CliTerminalSession session({"chat"}, {.environment = {{"TERM", "xterm"}, {"LP_NUM_THREADS", threads}}});
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
    const Json device = run_cli_json({"info"})["devices"][0];
    const bool is_llvmpipe = device["driver"].get<std::string>().starts_with("llvmpipe");
    EXPECT_EQ(threads_of_llvmpipe("2"), is_llvmpipe ? 2 : 0);
    EXPECT_EQ(threads_of_llvmpipe(nullptr), 0);
}

} // namespace auspex::test::driver_threads_test

#endif
