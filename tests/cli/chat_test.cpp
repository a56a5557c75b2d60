// auspex chat, piped and in a terminal: turns, history, commands, Ctrl-C. What the bundled pair says is of interest in few
// of these; the others force a layout that it was not trained on, to see that the flag counts.
#include "cli/model_copy.h"

namespace auspex::test::chat_test {

namespace {

const CliSetting kTerminal = {.environment = {{"TERM", "xterm"}, {"NO_COLOR", "1"}}};

std::vector<std::string> chat_with(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"chat", "--chat-template", "llama2"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
}

CliResult chat(const std::string& lines, const std::vector<std::string>& flags) {
    return run_cli(chat_with(flags), {.input = lines, .has_input = true});
}

// Hot enough that the end token hardly ever comes: the answer goes on until it is stopped or the context is full.
const std::vector<std::string> kEndless = {"-n", "-1", "--temp", "100", "-s", "3"};

// The first number after `label`.
uint64_t number_behind(const std::string& text, const std::string& label) {
    const size_t at = text.find(label);
    EXPECT_NE(at, std::string::npos) << label << " in " << text;
    const size_t digit = text.find_first_of("0123456789", at);
    return at == std::string::npos || digit == std::string::npos ? 0 : std::stoull(text.substr(digit));
}

} // namespace

TEST(CliChat, PipedLinesAreTurnsAndOnlyAnswersAreOnStdout) {
    const CliResult first = chat("Tell me a story.\n", {"-n", "12"});
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_NE(first.err.find("cut at 12 tokens"), std::string::npos) << first.err;
    const CliResult run = run_cli({"run", "--chat", "--chat-template", "llama2", "-p", "Tell me a story.", "-n", "12"});
    EXPECT_EQ(first.out, run.out) << "a conversation of one turn";

    const CliResult alone = chat("And then?", {"-n", "12"}); // a last line may lack its end
    const CliResult both = chat("Tell me a story.\r\n\n  \nAnd then?", {"-n", "12"});
    EXPECT_EQ(both.exit_code, 0) << both.err;
    ASSERT_TRUE(both.out.starts_with(first.out)) << both.out;
    const std::string second = both.out.substr(first.out.size());
    EXPECT_GT(second.size(), 5u);
    EXPECT_NE(second, alone.out) << "the first turn is part of the context";
    EXPECT_EQ(chat("Tell me a story.\nAnd then?\n", {"-n", "12", "--no-draft"}).out, both.out);
}

TEST(CliChat, OnlyNewTokensAreRead) {
    const CliResult result = chat("Tell me a story.\nAnd then?\nWhy?\n/stats\n", {"-n", "10"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(number_behind(result.err, "context "), 3u) << "turns";
    const uint64_t context = number_behind(result.err, " turns,"), read = number_behind(result.err, "turns   "),
                   answers = number_behind(result.err, "answers ");
    EXPECT_LE(answers, 30u);
    EXPECT_LE(read + answers, context) << result.err;
    EXPECT_GE(read + answers + 6, context) << "each turn leaves one or two tokens to the rounds: " << result.err;
}

TEST(CliChat, ResetForgets) {
    const CliResult once = chat("Tell me a story.\n", {"-n", "12"});
    EXPECT_EQ(chat("Tell me a story.\n/reset\nTell me a story.\n", {"-n", "12"}).out, once.out + once.out);
}

TEST(CliChat, SettingsCount) {
    const CliResult flags = chat("Hello\n", {"-n", "9", "--temp", "1", "-s", "8", "--system", "Be brief."});
    const CliResult commands =
        chat("/set n 9\n/set temp 1\n/set seed 8\n/set draft-len 2\n/set system  Be brief. \nHello\n", {"-n", "3"});
    EXPECT_EQ(commands.exit_code, 0) << commands.err;
    EXPECT_EQ(chat("Hello\n", {"-n", "9", "--temp", "1", "-s", "8", "--system", "Be brief.", "--draft-len", "2"}).out,
              commands.out);
    EXPECT_NE(chat("Hello\n", {"-n", "9", "--temp", "1", "-s", "8"}).out, flags.out) << "the system text is told";
    EXPECT_NE(chat("/set n 9\n/set\n", {}).err.find("n 9, temp 0, drafter auto, draft-len auto\n"), std::string::npos);
}

TEST(CliChat, LinesGoOnBehindABackslash) {
    const TempFolder folder;
    folder.write("turn.txt", "One\nand two");
    const CliResult run =
        run_cli({"run", "--chat", "--chat-template", "llama2", "-n", "9", "-f", folder.file("turn.txt")});
    EXPECT_EQ(chat("One\\\nand two\n", {"-n", "9"}).out, run.out);
}

TEST(CliChat, WrongLinesEndAPipe) {
    const auto expect_refused = [](const std::string& lines, int exit_code, const std::string& named) {
        const CliResult result = chat(lines, {"-n", "4", "-c", "64"});
        EXPECT_EQ(result.exit_code, exit_code) << lines << result.err;
        EXPECT_NE(result.err.find(named), std::string::npos) << named << " in " << result.err;
    };
    expect_refused("/foo\n", kUsage, "/foo");
    expect_refused("/set temp hot\n", kUsage, "/set temp hot");
    expect_refused("/set draft-len 99\n", kUsage, "/set draft-len 99");
    expect_refused("/set colour red\n", kUsage, "draft-len");
    expect_refused("/reset now\n", kUsage, "/reset");
    expect_refused("Hi\n/set system late\n", kUsage, "/reset");
    expect_refused("caf\xe9\n", kUsage, "0xe9");
    expect_refused(std::string("a\0b\n", 4), kUsage, "zero byte");
    expect_refused("Hi " + std::string(400, 'x') + "\n", kCapacity, "-c");
    expect_refused("Hi\nYou\nHi\nYou\nHi\nYou\n", kCapacity, "/reset");
    EXPECT_EQ(chat(" /foo is no command\n/exit\nnever read\n", {"-n", "2"}).exit_code, 0);
}

TEST(CliChat, FullContextIsSaid) {
    std::vector<std::string> flags = kEndless;
    flags.insert(flags.end(), {"-c", "64"});
    const CliResult result = chat("Hi\n/stats\n/reset\nHi\n", flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("the context of 64 tokens is full: /reset"), std::string::npos) << result.err;
    EXPECT_EQ(chat("Hi\nHi\n", flags).exit_code, kCapacity);
}

// Loading a large model takes minutes; what its vocabulary already tells comes first.
TEST(CliChat, AMissingTemplateIsFoundBeforeWeightsAreRead) {
    const ModelCopy copy(kTarget);
    copy.edit("tokenizer_config.json", "\"chat_template\"", "\"none\"");
    const std::string intact = run_cli({"chat", "-m", copy.path()}).err;
    const std::string whole = copy.read("model.safetensors");
    const auto expect_first = [&](const std::vector<std::string>& flags, const std::string& named) {
        std::vector<std::string> arguments = {"chat", "-m", copy.path()};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        expect_error(arguments, kFile, named);
    };
    for (const bool is_there : {true, false}) {
        if (is_there)
            copy.write("model.safetensors", whole.substr(0, whole.size() / 2));
        else
            copy.remove("model.safetensors");
        expect_first({}, "--chat-template");
        expect_first({"--chat-template", "llama3"}, "<|begin_of_text|>");
        expect_first({"--chat-template", "llama2"}, "model.safetensors"); // nothing is wrong but the weights
        EXPECT_EQ(run_cli({"chat", "-m", copy.path()}).err, intact) << "the same words";
    }
    copy.write("model.safetensors", whole);
    expect_error({"run", "--chat", "-m", copy.path(), "-p", "a"}, kFile, "--chat-template");
    copy.write("chat_template.jinja", "{{ messages }}");
    expect_first({}, "a chat template that is not known");
    copy.remove("tokenizer.model"); // what else is wrong is told as ever
    expect_first({}, "tokenizer.model");
    expect_error({"chat", "-m", "/nonexistent"}, kFile, "/nonexistent: found no such file or folder");
}

// What someone who has nothing but the program types first.
TEST(CliChat, TalksWithoutAModelNamed) {
    const std::string question = "Tell me a story about a fox named Ruby.";
    CliTerminalSession terminal({"chat"}, kTerminal);
    ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
    terminal.type("Hello!\n");
    EXPECT_TRUE(terminal.wait_for("Hello!\r\nHello!")) << terminal.shown();
    ASSERT_TRUE(terminal.wait_for("\r\n> ")) << terminal.shown();
    terminal.type(question + "\n");
    EXPECT_TRUE(terminal.wait_for("fox named Ruby. ")) << terminal.shown();
    ASSERT_TRUE(terminal.wait_for("\r\n> ")) << terminal.shown();
    terminal.type("Who is the story about?\n");
    EXPECT_TRUE(terminal.wait_for("about?\r\n")) << terminal.shown();
    EXPECT_TRUE(terminal.wait_for("Ruby")) << terminal.shown();
    ASSERT_TRUE(terminal.wait_for("\r\n> ")) << terminal.shown();
    terminal.type("/exit\n");
    EXPECT_EQ(terminal.exit_code(), 0) << terminal.shown();
    for (const char* leak : {"<|", "</s>", "[the ", "auspex:"})
        EXPECT_EQ(terminal.shown().find(leak), std::string::npos) << terminal.shown();

    // The layout is the pair's own, and an answer ends by itself.
    const Json run = run_cli_json({"run", "--chat", "-p", question});
    EXPECT_EQ(run["completions"][0]["stop_reason"], "eos");
    EXPECT_EQ(run["prompt_tokens"], run_cli_json({"run", "--chat", "--chat-template", "zephyr", "-p", question, "-n", "1"})["prompt_tokens"]);
    const CliResult piped = run_cli({"chat"}, {.input = question, .has_input = true});
    EXPECT_EQ(piped.out, run["completions"][0]["text"].get<std::string>() + "\n");
    EXPECT_EQ(piped.err, "");
}

TEST(CliChat, TerminalConversation) {
    CliTerminalSession terminal(chat_with({"-n", "8"}), kTerminal);
    EXPECT_TRUE(terminal.wait_for("/help")) << terminal.shown();
    EXPECT_TRUE(terminal.wait_for("> "));
    terminal.type("Tell me a story.\n");
    EXPECT_TRUE(terminal.wait_for("cut at 8 tokens")) << terminal.shown();
    EXPECT_TRUE(terminal.wait_for("> "));
    terminal.type("/nonsense\n"); // wrong lines end nothing here
    EXPECT_TRUE(terminal.wait_for("no such command"));
    terminal.type("/set system late\n");
    EXPECT_TRUE(terminal.wait_for("/reset first"));
    terminal.type("/help\n");
    EXPECT_TRUE(terminal.wait_for("/exit "));
    terminal.type("And then?\n");
    EXPECT_TRUE(terminal.wait_for("cut at 8 tokens"));
    terminal.type("/stats\n");
    EXPECT_TRUE(terminal.wait_for("2 turns"));
    EXPECT_TRUE(terminal.wait_for("> "));
    terminal.type("\x04");
    EXPECT_EQ(terminal.exit_code(), 0) << terminal.shown();
}

TEST(CliChat, CtrlCStopsTheAnswerAndTheSessionGoesOn) {
    CliTerminalSession terminal(chat_with(kEndless), kTerminal);
    ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
    terminal.type("Hello\n");
    ASSERT_TRUE(terminal.wait_for("Hello\r\n"));
    ASSERT_TRUE(terminal.wait_for("e")) << "the answer is shown while it grows";
    terminal.type("\x03");
    ASSERT_TRUE(terminal.wait_for("[stopped]")) << terminal.shown();
    terminal.type("/set n 5\n");
    terminal.type("Go on\n");
    EXPECT_TRUE(terminal.wait_for("cut at 5 tokens")) << terminal.shown();
    terminal.type("/exit\n");
    EXPECT_EQ(terminal.exit_code(), 0) << terminal.shown();
}

TEST(CliChat, CtrlCAtThePromptLeaves) {
    CliTerminalSession terminal(chat_with({}), kTerminal);
    ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
    terminal.type("half a li\x03");
    EXPECT_EQ(terminal.exit_code(), kInterrupted) << terminal.shown();
}

TEST(CliChat, CtrlCInAPipeStopsOneAnswerTwiceLeaves) {
    CliSetting setting = {
        .input = "Hello\n/set n 5\nGo on\n", .has_input = true, .n_interrupts = 1, .are_interrupts_apart = true};
    const CliResult once = run_cli(chat_with(kEndless), setting);
    EXPECT_EQ(once.exit_code, 0) << once.err;
    EXPECT_NE(once.err.find("[stopped]"), std::string::npos) << once.err;
    EXPECT_NE(once.err.find("cut at 5 tokens"), std::string::npos) << once.err;

    setting.input = "Hello\nHello\nHello\n";
    setting.n_interrupts = 2;
    EXPECT_EQ(run_cli(chat_with(kEndless), setting).exit_code, kInterrupted);
}

} // namespace auspex::test::chat_test
