// auspex run: what goes to which stream, the JSON object and its counting rules, prompts, seeds, stopping, the demonstration.
#include "cli/cli_process.h"
#include "model/file_fixtures.h"

#include <auspex/auspex.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace auspex::test::run_test {

namespace {

const std::string kPrompt = "Once upon a time there was a curious fox named Ruby.";

std::vector<uint32_t> tokens_of(const Json& run, size_t index = 0) {
    return run["completions"][index]["tokens"].get<std::vector<uint32_t>>();
}

std::string joined(const std::vector<uint32_t>& tokens) {
    std::string text;
    for (const uint32_t token : tokens)
        text += (text.empty() ? "" : ",") + std::to_string(token);
    return text;
}

// Design section 6, "Counting", for any run.
void expect_counted_by_the_rules(const Json& run) {
    const Json& timings = run["timings"];
    const Json& speculation = run["speculation"];
    const auto histogram = speculation["accepted_histogram"].get<std::vector<uint64_t>>();
    const uint64_t draft_len = histogram.size() - 1; // the longest allowed
    if (speculation["draft_len"].is_number()) {      // null: auto
        EXPECT_EQ(speculation["draft_len"].get<uint64_t>(), draft_len);
    }
    const auto rounds = speculation["rounds"].get<uint64_t>();
    const auto predicted_n = timings["predicted_n"].get<uint64_t>();
    const auto draft_n = timings["draft_n"].get<uint64_t>(), accepted = timings["draft_n_accepted"].get<uint64_t>();

    uint64_t n_tokens = 0, from_histogram = 0;
    for (const Json& completion : run["completions"])
        n_tokens += completion["tokens"].size();
    for (size_t i = 0; i < histogram.size(); ++i)
        from_histogram += i * histogram[i];
    EXPECT_EQ(timings["prompt_n"].get<size_t>(), run["prompt_tokens"].size());
    EXPECT_EQ(predicted_n, n_tokens);
    EXPECT_EQ(std::accumulate(histogram.begin(), histogram.end(), uint64_t{0}), rounds);
    EXPECT_EQ(from_histogram, accepted);
    EXPECT_LE(accepted, draft_n);
    EXPECT_LE(draft_n, rounds * draft_len);
    // Each round adds its accepted drafts and one token more, unless a stop or limit cut that off.
    EXPECT_LE(predicted_n, accepted + rounds);
    EXPECT_GE(predicted_n, accepted + rounds - run["completions"].size());
    if (draft_n == 0) {
        EXPECT_TRUE(speculation["acceptance_rate"].is_null());
    } else {
        EXPECT_DOUBLE_EQ(speculation["acceptance_rate"].get<double>(),
                         static_cast<double>(accepted) / static_cast<double>(draft_n));
    }
    EXPECT_DOUBLE_EQ(speculation["tokens_per_round"].get<double>(),
                     static_cast<double>(predicted_n) / static_cast<double>(rounds));
    uint64_t by_drafter = 0;
    for (const Json& n : speculation["drafter_rounds"])
        by_drafter += n.get<uint64_t>();
    EXPECT_GE(by_drafter, rounds) << "every round had a drafter, if only nobody";
    const auto at_least = speculation["accepted_at_least"].get<std::vector<double>>();
    ASSERT_EQ(at_least.size(), draft_len);
    double sum = 0.0;
    for (size_t j = 1; j <= draft_len; ++j) {
        const auto tail =
            std::accumulate(histogram.begin() + static_cast<std::ptrdiff_t>(j), histogram.end(), uint64_t{0});
        EXPECT_DOUBLE_EQ(at_least[j - 1], static_cast<double>(tail) / static_cast<double>(rounds)) << j;
        sum += at_least[j - 1];
    }
    EXPECT_NEAR(sum * static_cast<double>(rounds), static_cast<double>(accepted), 1e-6);
    EXPECT_EQ(speculation["alpha"].is_null(), speculation["tested_n"] == 0);
    if (speculation["alpha"].is_number()) {
        EXPECT_GE(speculation["alpha"], 0.0);
        EXPECT_LE(speculation["alpha"], 1.0);
    }
    if (timings["predicted_ms"].is_number()) {
        EXPECT_NEAR(timings["predicted_per_second"].get<double>(),
                    static_cast<double>(predicted_n) * 1e3 / timings["predicted_ms"].get<double>(), 1e-6);
    }
}

// A machine that has never run it: neither we nor Mesa, which looks for home elsewhere, have kept anything there.
struct NewHome {
    TempFolder folder;
    std::string mesa = folder.file("mesa");
    CliSetting setting = {.environment = {{"HOME", folder.path().c_str()},
                                          {"XDG_CACHE_HOME", nullptr},
                                          {"MESA_SHADER_CACHE_DIR", mesa.c_str()},
                                          {"TERM", "xterm"}}};
};

} // namespace

TEST(CliRun, TellsAStoryWithoutAnyFlag) {
    const CliResult result = run_cli({"run"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(result.out.size(), 40u);
    EXPECT_EQ(result.out.find(kPrompt), std::string::npos) << "stdout holds the continuation only";
    EXPECT_EQ(result.out.find('\033'), std::string::npos);
    EXPECT_EQ(result.err.find('\033'), std::string::npos);
    for (const char* label : {"device", "prompt", "generation", "tok/s", "rounds", "drafted", "accepted",
                              "tokens per round", "GPU time", "verify", "seed"})
        EXPECT_NE(result.err.find(label), std::string::npos) << label << " in " << result.err;
}

TEST(CliRun, JsonHasItsKeysInOrder) {
    const Json run = run_cli_json({"run", "-n", "16"});
    using Keys = std::vector<std::string>;
    EXPECT_EQ(keys_of(run),
              (Keys{"schema", "device", "model", "seed", "prompt_tokens", "completions", "timings", "speculation",
                    "demonstration"}));
    EXPECT_TRUE(run["demonstration"].is_null()) << "a flag was given";
    EXPECT_EQ(run["schema"], 1);
    EXPECT_EQ(keys_of(run["device"]), (Keys{"name", "driver", "api_version", "memory_bytes"}));
    EXPECT_EQ(keys_of(run["model"]), (Keys{"target", "draft"}));
    EXPECT_EQ(keys_of(run["completions"][0]), (Keys{"tokens", "text", "stop_reason"}));
    EXPECT_EQ(keys_of(run["timings"]), (Keys{"prompt_n", "prompt_ms", "predicted_n", "predicted_ms",
                                             "predicted_per_second", "draft_n", "draft_n_accepted", "first_token_ms"}));
    EXPECT_EQ(keys_of(run["speculation"]), (Keys{"draft_len",
                                                 "rounds",
                                                 "acceptance_rate",
                                                 "tokens_per_round",
                                                 "accepted_histogram",
                                                 "draft_ms",
                                                 "verify_ms",
                                                 "accept_ms",
                                                 "drafter",
                                                 "acceptance",
                                                 "lenience",
                                                 "lossless",
                                                 "tested_n",
                                                 "alpha",
                                                 "accepted_at_least",
                                                 "c",
                                                 "v",
                                                 "predicted_speedup",
                                                 "speedup",
                                                 "drafter_rounds",
                                                 "choice"}));
    EXPECT_EQ(keys_of(run["speculation"]["drafter_rounds"]), (Keys{"none", "model", "ngram", "lookup", "host", "self"}));
    EXPECT_TRUE(run["speculation"]["draft_len"].is_null()) << "auto";
    EXPECT_EQ(run["speculation"]["drafter"], "auto");
    EXPECT_EQ(run["speculation"]["lossless"], true);
    EXPECT_TRUE(run["speculation"]["speedup"].is_null()) << "nothing was decoded plainly to compare with";
    EXPECT_EQ(run["completions"][0]["stop_reason"], "length");
    EXPECT_EQ(tokens_of(run).size(), 16u);
    expect_counted_by_the_rules(run);
}

TEST(CliRun, JsonAndTextAreTheSameText) {
    const std::string text = run_cli_json({"run", "-n", "24"})["completions"][0]["text"];
    const std::string out = run_cli({"run", "-n", "24"}).out;
    EXPECT_EQ(out, text + (text.ends_with('\n') ? "" : "\n"));
}

TEST(CliRun, CountsByTheRules) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"run", "-n", "50", "--draft-len", "1"},
          {"run", "-n", "50", "--draft-len", "8", "--temp", "1", "-s", "3"},
          {"run", "-n", "1", "--draft-len", "6"},
          {"run", "-n", "20", "--samples", "5", "--temp", "1", "-s", "9", "--draft-len", "3"}}) {
        SCOPED_TRACE(testing::PrintToString(arguments));
        expect_counted_by_the_rules(run_cli_json(arguments));
    }
}

TEST(CliRun, PlainDecodingHasNoAcceptanceRate) {
    const Json plain = run_cli_json({"run", "-n", "12", "--no-draft"});
    expect_counted_by_the_rules(plain);
    EXPECT_TRUE(plain["speculation"]["acceptance_rate"].is_null());
    EXPECT_TRUE(plain["model"]["draft"].is_null());
    EXPECT_EQ(plain["speculation"]["accepted_histogram"], Json::array({12}));
    const Json also_plain = run_cli_json({"run", "-n", "12", "--draft-len", "0"});
    EXPECT_EQ(also_plain["completions"], plain["completions"]);
    const Json without_draft = run_cli_json({"run", "-n", "12", "-m", kTarget});
    EXPECT_EQ(without_draft["completions"], plain["completions"]);
    EXPECT_TRUE(without_draft["model"]["draft"].is_null());
}

TEST(CliRun, GreedySpeculationGivesThePlainTokens) {
    const Json plain = run_cli_json({"run", "-n", "80", "--no-draft"});
    for (const char* draft_len : {"1", "4", "7"})
        EXPECT_EQ(run_cli_json({"run", "-n", "80", "--draft-len", draft_len})["completions"], plain["completions"])
            << draft_len;
}

TEST(CliRun, PromptComesFromEverySource) {
    const TempFolder folder;
    folder.write("prompt.txt", kPrompt + "\n");
    const Json expected = run_cli_json({"run", "-n", "8", "-p", kPrompt});
    const auto expect_same = [&](const Json& run, const char* what) {
        EXPECT_EQ(run["prompt_tokens"], expected["prompt_tokens"]) << what;
        EXPECT_EQ(run["completions"], expected["completions"]) << what;
    };
    expect_same(run_cli_json({"run", "-n", "8", "-f", folder.file("prompt.txt")}), "-f");
    expect_same(run_cli_json({"run", "-n", "8"}, {.input = kPrompt + "\n", .has_input = true}), "stdin");
    expect_same(run_cli_json({"run", "-n", "8", "-f", "-"}, {.input = kPrompt, .has_input = true}), "-f -");
    expect_same(run_cli_json({"run", "-n", "8"}), "built in");
    const auto ids = expected["prompt_tokens"].get<std::vector<uint32_t>>();
    expect_same(run_cli_json({"run", "-n", "8", "--tokens", joined(ids)}), "--tokens");
}

// A pipe or file with nothing in it was meant to hold a prompt; a null device was not.
TEST(CliRun, AnEmptyPipeIsNoPrompt) {
    const TempFolder folder;
    folder.write("empty.txt", "");
    const std::string named = "stdin: the prompt is empty", empty = folder.file("empty.txt");
    for (const char* input : {"", "\n", "\r\n"})
        expect_error({"run", "-n", "4"}, kUsage, named, {.input = input, .has_input = true});
    expect_error({"run", "-n", "4"}, kUsage, named, {.input_file = empty.c_str()});
    expect_error({"run", "-n", "4", "-m", kTarget}, kUsage, named, {.input = "", .has_input = true});
    expect_error({"run", "-n", "4", "--chat"}, kUsage, named, {.input = "", .has_input = true});
    for (const char* command : {"score", "tokenize"})
        expect_error({command}, kUsage, named, {.input = "", .has_input = true});
    EXPECT_EQ(run_cli({"run", "-n", "4"}, {.input_file = "/dev/null"}).exit_code, 0);
    EXPECT_EQ(run_cli({"run", "-n", "4"}, {.input_file = "-"}).exit_code, 0) << "closed";
}

TEST(CliRun, PromptTokensAreTheGoldens) {
    std::ifstream file(AUSPEX_TEST_DATA "/goldens.json");
    const Json goldens = Json::parse(file);
    EXPECT_EQ(run_cli_json({"run", "-n", "1", "-p", goldens[0]["prompt"]})["prompt_tokens"], goldens[0]["ids"]);
}

TEST(CliRun, TokensAreVerbatim) {
    const Json run = run_cli_json({"run", "-n", "4", "--tokens", "579, 883,264"});
    EXPECT_EQ(run["prompt_tokens"], Json::array({579, 883, 264})) << "no BOS is added";
}

TEST(CliRun, SamplesAreTheRunsOfTheirSeeds) {
    const std::vector<std::string> common = {"-n", "20", "--temp", "1", "--draft-len", "3"};
    const auto run_with = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "run");
        arguments.insert(arguments.end(), common.begin(), common.end());
        return run_cli_json(arguments);
    };
    const Json together = run_with({"--samples", "3", "-s", "40"});
    ASSERT_EQ(together["completions"].size(), 3u);
    EXPECT_EQ(together["seed"], 40);
    for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(together["completions"][i], run_with({"-s", std::to_string(40 + i)})["completions"][0]) << i;
}

TEST(CliRun, MoreSamplesThanSlotsRunInTurn) {
    const Json run = run_cli_json({"run", "-n", "3", "--samples", "70", "--temp", "1", "-s", "1"});
    EXPECT_EQ(run["completions"].size(), 70u);
    expect_counted_by_the_rules(run);
}

TEST(CliRun, SamplesAreSeparatedOnStdout) {
    const CliResult result = run_cli({"run", "-n", "5", "--samples", "2", "-s", "7"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("\n---\n"), std::string::npos) << result.out;
    EXPECT_NE(result.err.find("[2 of 2, seed 8]"), std::string::npos) << result.err;
}

TEST(CliRun, RandomSeedIsPrintedAndRepeats) {
    // Drafts that are chosen by what rounds cost repeat no text sampled by rejection; either of these does.
    for (const auto& [flag, value] : {std::pair{"--acceptance", "coupled"}, std::pair{"--draft-len", "3"}}) {
        const Json first = run_cli_json({"run", "-n", "20", "--temp", "1", flag, value});
        const std::string seed = std::to_string(first["seed"].get<uint64_t>());
        EXPECT_EQ(run_cli_json({"run", "-n", "20", "--temp", "1", flag, value, "-s", seed})["completions"][0]["tokens"], first["completions"][0]["tokens"]) << flag;
    }
}

TEST(CliRun, ShorterRunIsAPrefix) {
    const auto shorter = tokens_of(run_cli_json({"run", "-n", "11"}));
    auto longer = tokens_of(run_cli_json({"run", "-n", "30"}));
    longer.resize(shorter.size());
    EXPECT_EQ(shorter, longer);
}

TEST(CliDemonstration, FirstRunAndSecondRunTellOneStory) {
    const NewHome home;
    const Json plain = run_cli_json({"run", "--no-draft"});
    uint64_t n_drafted = 0; // of both: what a busy machine took for one's rounds may speak against drafts
    for (const char* time : {"first", "second"}) {
        SCOPED_TRACE(time);
        const Json run = run_cli_json({"run"}, home.setting);
        expect_counted_by_the_rules(run);
        const Json& demonstration = run["demonstration"];
        ASSERT_EQ(keys_of(demonstration), (std::vector<std::string>{"plain_per_second", "speedup", "equal", "drafted_per_second", "tellings"}));
        EXPECT_EQ(demonstration["equal"], true);
        EXPECT_GT(demonstration["plain_per_second"], 0.0);
        EXPECT_NEAR(demonstration["speedup"].get<double>() * demonstration["plain_per_second"].get<double>(),
                    demonstration["drafted_per_second"].get<double>(), 1e-6);
        EXPECT_GT(demonstration["tellings"], 0u);
        if (demonstration["tellings"] == 1u) {
            EXPECT_NEAR(demonstration["drafted_per_second"].get<double>(),
                        run["timings"]["predicted_per_second"].get<double>(), 1e-6)
                << "both speeds are of generation alone";
        }
        EXPECT_EQ(run["completions"], plain["completions"]);
        n_drafted += run["timings"]["draft_n"].get<uint64_t>();
    }
    EXPECT_GT(n_drafted, 0u);
    EXPECT_TRUE(std::filesystem::exists(home.folder.file(".cache/auspex"))) << "what the first run learnt";
}

TEST(CliDemonstration, SaysInOneLineWhatDraftsDid) {
    const CliResult result = run_cli({"run"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const size_t last = result.err.rfind('\n', result.err.size() - 2) + 1;
    const std::string line = result.err.substr(last);
    EXPECT_LE(line.size(), 81u) << line;
    EXPECT_NE(line.find("both texts are equal bit for bit."), std::string::npos) << line;
    const bool has_drafts = result.err.find("\n             0 drafted") == std::string::npos;
    EXPECT_EQ(line.find("Drafts made the story"), has_drafts ? 0 : std::string::npos) << result.err;
    EXPECT_EQ(line.find("Nothing was drafted"), has_drafts ? std::string::npos : 0) << result.err;
    EXPECT_NE(result.err.find("the same story without drafts: "), std::string::npos) << result.err;
    const std::string story = run_cli_json({"run", "--no-draft"})["completions"][0]["text"];
    EXPECT_EQ(result.out, story + "\n") << "it is told once";
}

TEST(CliDemonstration, NeedsThatNothingElseIsAsked) {
    for (const std::vector<std::string>& flags : {std::vector<std::string>{"-n", "256"}, {"-p", kPrompt}, {"--color", "never"}}) {
        std::vector<std::string> arguments = {"run"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        EXPECT_EQ(run_cli(arguments).err.find("bit for bit"), std::string::npos) << flags[0];
        EXPECT_TRUE(run_cli_json(arguments)["demonstration"].is_null()) << flags[0];
    }
    EXPECT_TRUE(run_cli_json({"run"}, {.input = kPrompt, .has_input = true})["demonstration"].is_null());
}

TEST(CliDemonstration, CtrlCEndsIt) {
    const CliResult told = run_cli({"run"}, {.n_interrupts = 1});
    EXPECT_EQ(told.exit_code, kInterrupted) << told.err;
    EXPECT_EQ(told.err.find("bit for bit"), std::string::npos) << told.err;

    const NewHome home; // where compiling takes its time
    CliTerminalSession terminal({"run"}, home.setting);
    ASSERT_TRUE(terminal.wait_for("preparing [")) << terminal.shown();
    terminal.type("\x03");
    EXPECT_EQ(terminal.exit_code(), kInterrupted);
    EXPECT_EQ(terminal.shown().find("Once upon"), std::string::npos) << terminal.shown();
}

TEST(CliRun, StopsWhenTheContextIsFull) {
    const Json run = run_cli_json({"run", "-n", "-1", "-c", "64", "--no-stop"});
    EXPECT_EQ(run["completions"][0]["stop_reason"], "context");
    EXPECT_LE(run["prompt_tokens"].size() + tokens_of(run).size(), 64u);
    EXPECT_GE(run["prompt_tokens"].size() + tokens_of(run).size(), 63u);
}

TEST(CliRun, EndTokenIsATokenButNoText) {
    const Json stopped = run_cli_json({"run", "-n", "-1"});
    const Json& completion = stopped["completions"][0];
    ASSERT_EQ(completion["stop_reason"], "eos") << "the bundled pair ends its story within the context";
    const auto tokens = tokens_of(stopped);
    const std::string text = completion["text"];
    EXPECT_EQ(text.find("</s>"), std::string::npos);
    const auto beyond = tokens_of(run_cli_json({"run", "-n", std::to_string(tokens.size() + 5), "--no-stop"}));
    EXPECT_EQ(beyond.size(), tokens.size() + 5);
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), beyond.begin()));
}

TEST(CliRun, CtrlCStopsTheAnswerAndPrintsTheSummary) {
    const CliResult result = run_cli({"run", "-n", "-1", "--no-stop"}, {.n_interrupts = 1});
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_NE(result.err.find("interrupted"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("tok/s"), std::string::npos);
}

TEST(CliRun, SecondCtrlCLeavesAtOnce) {
    const CliResult result = run_cli({"run", "-n", "-1", "--no-stop"}, {.n_interrupts = 2});
    EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
}

// Every command, whatever else it does between the write that fails and its end; "-" is a closed stdout.
TEST(CliRun, OutputThatCannotBeWrittenIsAnErrorWithItsCause) {
    const std::vector<std::vector<std::string>> commands = {
        {"run", "-n", "4"}, {"run", "-n", "4", "--json"}, {"run", "-n", "40", "--samples", "2", "--temp", "1"},
        {"score", "-p", "Once upon a time"}, {"tokenize", "-p", "Once"}, {"tokenize", "--detokenize", "--tokens", "579"},
        {"bench", "-n", "4", "-r", "1"}, {"info"}, {"--help"}, {"run", "--help"}};
    for (const auto& command : commands) {
        for (const auto& [file, cause] : {std::pair{"/dev/full", "No space left on device"}, std::pair{"-", "Bad file descriptor"}}) {
            const CliResult result = run_cli(command, {.output_file = file});
            EXPECT_EQ(result.exit_code, 1) << command[0] << " " << result.err;
            EXPECT_NE(result.err.find(std::string("auspex: stdout: ") + cause + "\n"), std::string::npos)
                << command[0] << ": " << result.err;
        }
    }
}

TEST(CliRun, WorksWithoutAHomeFolder) {
    const CliSetting homeless = {.environment = {{"HOME", nullptr}, {"XDG_CACHE_HOME", "/proc/none"}}};
    EXPECT_EQ(run_cli({"run", "-n", "4"}, homeless).exit_code, 0);
}

// A driver that maps a file of its own there, as Mesa does, must not take the process with it.
TEST(CliRun, AFullDiskUnderTheCachesCostsSpeedOnly) {
    const TempFolder folder;
    const std::string disk = folder.file("disk");
    std::filesystem::create_directory(disk);
    const CliSetting full = {.environment = {{"XDG_CACHE_HOME", disk.c_str()}, {"MESA_SHADER_CACHE_DIR", nullptr}},
                             .full_disk = disk.c_str()};
    const std::vector<std::string> run = {"run", "-n", "8", "--draft-len", "2", "-p", kPrompt};
    const CliResult result = run_cli(run, full);
    if (result.exit_code == 128 + SIGBUS) { // where nothing may be mounted files are limited: does the driver die of that without a cache, too?
        const std::string none = folder.file("none");
        const CliResult uncached = run_cli(run, {.environment = {{"XDG_CACHE_HOME", none.c_str()}, {"MESA_SHADER_CACHE_DISABLE", "true"}},
                                                 .full_disk = none.c_str()});
        if (!may_mount(disk) && uncached.exit_code == 128 + SIGBUS)
            GTEST_SKIP() << "nothing may be mounted here, and files cannot be limited instead: this driver has its memory in files";
    }
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, run_cli(run).out);
}

// Nothing can be kept or read there: that costs speed, not the text, and is told in no more than warnings.
TEST(CliRun, AUselessCacheFolderCostsSpeedOnly) {
    namespace fs = std::filesystem;
    const TempFolder folder;
    fs::create_directories(folder.file("file"));
    folder.write("file/auspex", "no folder");
    fs::permissions(folder.file("file/auspex"), fs::perms::all); // so that it may be "searched"
    fs::create_directories(folder.file("read-only/auspex"));
    fs::permissions(folder.file("read-only/auspex"), fs::perms::owner_read | fs::perms::owner_exec);
    for (const char* name : {"speculation.json", "tuning.json"}) // what should be files are folders
        fs::create_directories(folder.file("folders/auspex/") + name);
    fs::create_directories(folder.file("loops"));
    fs::create_symlink("auspex", folder.file("loops/auspex"));
    const std::vector<std::string> run = {"run", "-n", "8", "--draft-len", "2", "-p", kPrompt};
    const Json expected = run_cli_json(run)["completions"];
    for (const char* name : {"file", "read-only", "folders", "loops"}) {
        const std::string cache = folder.file(name);
        EXPECT_EQ(run_cli_json(run, {.environment = {{"XDG_CACHE_HOME", cache.c_str()}}})["completions"], expected) << name;
    }
}

} // namespace auspex::test::run_test
