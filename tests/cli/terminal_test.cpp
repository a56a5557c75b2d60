// What a terminal sees, and that nothing else sees it.
#include "cli/cli_process.h"

namespace auspex::test::terminal_test {

namespace {

const CliSetting kTerminal = {.environment = {{"TERM", "xterm"}, {"NO_COLOR", nullptr}}};

bool contains(const CliResult& result, const std::string& text) {
    return result.out.find(text) != std::string::npos;
}

} // namespace

TEST(CliTerminal, ShowsPromptColoursAndLegend) {
    const CliResult result = run_cli_in_terminal({"run", "-n", "60", "--draft-len", "3"}, kTerminal);
    EXPECT_EQ(result.exit_code, 0) << result.out;
    EXPECT_TRUE(contains(result, "\033[2mOnce upon a time")) << "the prompt, dimmed";
    EXPECT_TRUE(contains(result, "\033[32maccepted draft")) << result.out;
    EXPECT_TRUE(contains(result, "\033[33mcorrection"));
    EXPECT_TRUE(contains(result, "\033[36mbonus"));
    EXPECT_LT(result.out.find("\033[32m"), result.out.find("accepted draft")) << "some token is an accepted draft";
}

TEST(CliTerminal, SlowLoadingShowsProgress) {
    // Searching scales for 58 million weights takes longer than the half second before a bar is shown.
    const std::vector<std::string> bench = {
        "bench",   "-n", "1", "-r", "1", "--shape", "d=512,layers=3,ffn=1536,heads=8,vocab=96000,dtype=f16,on=host",
        "--quant", "q4_k"};
    const CliResult shown = run_cli_in_terminal(bench, kTerminal);
    EXPECT_EQ(shown.exit_code, 0) << shown.out;
    EXPECT_TRUE(contains(shown, "loading [")) << shown.out;
    EXPECT_TRUE(contains(shown, "\r\033[K")) << "cleared";
    CliSetting dumb = kTerminal;
    dumb.environment.front() = {"TERM", "dumb"};
    EXPECT_FALSE(contains(run_cli_in_terminal(bench, dumb), "loading"));
}

TEST(CliTerminal, PlainDecodingHasNoColours) {
    const CliResult result = run_cli_in_terminal({"run", "-n", "8", "--no-draft"}, kTerminal);
    for (const char* color : {"\033[32m", "\033[33m", "\033[36m", "accepted draft"})
        EXPECT_FALSE(contains(result, color)) << result.out;
}

TEST(CliTerminal, NoColorAndNeverAreObeyed) {
    CliSetting no_color = kTerminal;
    no_color.environment.back() = {"NO_COLOR", "1"};
    for (const CliResult& result : {run_cli_in_terminal({"run", "-n", "8", "--draft-len", "2"}, no_color),
                                    run_cli_in_terminal({"run", "-n", "8", "--draft-len", "2", "--color", "never"}, kTerminal)}) {
        EXPECT_EQ(result.exit_code, 0) << result.out;
        EXPECT_FALSE(contains(result, "\033[3")) << result.out;
        EXPECT_FALSE(contains(result, "\033[2m"));
        EXPECT_TRUE(contains(result, "Once upon a time"));
    }
}

TEST(CliTerminal, ColourCanBeForcedIntoAPipe) {
    const CliResult result = run_cli({"run", "-n", "8", "--draft-len", "2", "--color", "always"});
    EXPECT_TRUE(contains(result, "\033[3"));
    EXPECT_FALSE(contains(result, "Once upon a time"));
}

TEST(CliTerminal, JsonIsNeverColoured) {
    const CliResult result = run_cli({"run", "-n", "8", "--draft-len", "2", "--json", "--color", "always"});
    EXPECT_FALSE(contains(result, "\033"));
    EXPECT_EQ(result.err, "");
}

} // namespace auspex::test::terminal_test
