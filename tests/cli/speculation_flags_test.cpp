// Flags about who drafts, how drafts are accepted, and what is done to logits: what they change, and what they refuse.
#include "cli/cli_process.h"

#include <algorithm>
#include <set>

namespace auspex::test::speculation_flags_test {

namespace {

using Arguments = std::vector<std::string>;

Arguments with_flags(Arguments arguments, const Arguments& flags) {
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
}

Json run_with(const Arguments& flags) {
    return run_cli_json(with_flags({"run", "-n", "40", "-s", "5"}, flags));
}

// One token for ever, which every drafter finds.
Json run_echo(const Arguments& flags) {
    return run_with(with_flags({"--tokens", "1,579,579,579,579,579", "--logit-bias", "579+1000"}, flags));
}

const Arguments kRepeats = {"-p", "red fox red fox red fox red fox red fox red fox red fox red fox red fox red", "--no-stop"};

Json run_repeating(const Arguments& flags) {
    return run_with(with_flags(kRepeats, flags));
}

std::vector<uint32_t> tokens_of(const Json& run) {
    return run["completions"][0]["tokens"].get<std::vector<uint32_t>>();
}

uint64_t rounds_of(const Json& run, const char* drafter) {
    return run["speculation"]["drafter_rounds"][drafter].get<uint64_t>();
}

} // namespace

TEST(CliSpeculation, EveryDrafterGivesThePlainGreedyText) {
    for (const auto& run_text : {run_echo, run_repeating}) {
        const Json plain = run_text({"--no-draft"});
        for (const char* drafter : {"auto", "none", "model", "ngram", "lookup", "hybrid"}) {
            const Json run = run_text({"--drafter", drafter});
            EXPECT_EQ(run["completions"], plain["completions"]) << drafter;
            EXPECT_EQ(run["speculation"]["drafter"], drafter);
        }
    }
}

TEST(CliSpeculation, TheDrafterThatWasAskedForDrafts) {
    for (const char* drafter : {"model", "ngram", "lookup"}) {
        const Json run = run_echo({"--drafter", drafter, "--draft-len", "4"});
        for (const char* other : {"model", "ngram", "lookup", "host"})
            EXPECT_EQ(rounds_of(run, other) > 0, std::string(other) == drafter) << drafter << ", " << other;
        EXPECT_GT(run["timings"]["draft_n"], 0) << drafter;
    }
    for (const Arguments& plain : {Arguments{"--drafter", "none"}, {"--draft-len", "0"}, {"--no-draft"}}) {
        const Json run = run_echo(plain);
        EXPECT_EQ(run["speculation"]["drafter"], "none");
        EXPECT_EQ(run["speculation"]["draft_len"], 0);
        EXPECT_EQ(rounds_of(run, "none"), run["speculation"]["rounds"]);
        EXPECT_TRUE(run["model"]["draft"].is_null());
    }
}

TEST(CliSpeculation, ATargetAloneDraftsFromItsText) {
    for (const char* drafter : {"ngram", "lookup", "auto"}) {
        const Json run = run_echo({"-m", kTarget, "--drafter", drafter, "--draft-len", "4"});
        EXPECT_TRUE(run["model"]["draft"].is_null());
        EXPECT_EQ(rounds_of(run, "model"), 0u);
        EXPECT_GT(run["timings"]["draft_n"], 0) << drafter;
        EXPECT_EQ(run["completions"], run_echo({"--no-draft"})["completions"]);
    }
    expect_error({"run", "-m", kTarget, "--drafter", "model"}, kUsage, "--drafter model: expected a draft model");
    expect_error({"run", "-m", kTarget, "--drafter", "hybrid"}, kUsage, "--drafter hybrid: expected a draft model too (-md PATH), or --self-quant; no copy of the model is made unasked: the device is a CPU");
    expect_error({"run", "-m", "/no/such/model", "--drafter", "hybrid"}, kFile, "/no/such/model");
    expect_error({"bench", "--shape", "d=64,L=1,ffn=96,heads=2,vocab=97", "--drafter", "hybrid"}, kUsage, "--drafter hybrid: expected a draft model too (-md PATH), or --self-quant");
    expect_error({"bench", "-m", kTarget, "--drafter", "ngram,model"}, kUsage, "--drafter model");
}

TEST(CliSpeculation, CoupledTextIsThatOfPlainDecoding) {
    const Json plain = run_with({"--temp", "1", "--acceptance", "coupled", "--no-draft"});
    for (const char* draft_len : {"1", "4"})
        EXPECT_EQ(run_with({"--temp", "1", "--acceptance", "coupled", "--draft-len", draft_len})["completions"],
                  plain["completions"])
            << draft_len;
}

TEST(CliSpeculation, LenienceIsMarkedWhereverItIsUsed) {
    const Json lenient = run_with({"--lenience", "0.1", "--draft-len", "4"});
    EXPECT_EQ(lenient["speculation"]["lenience"], 0.1);
    EXPECT_EQ(lenient["speculation"]["lossless"], false);
    EXPECT_EQ(run_with({"--lenience", "0.1", "--no-draft"})["speculation"]["lossless"], true) << "nothing is accepted";
    const CliResult people = run_cli({"run", "-n", "4", "--lenience", "0.1"});
    EXPECT_NE(people.err.find("NOT LOSSLESS"), std::string::npos) << people.err;
    EXPECT_EQ(run_cli({"run", "-n", "4"}).err.find("NOT LOSSLESS"), std::string::npos);
    EXPECT_NE(run_cli({"run", "--help"}).out.find("NOT LOSSLESS"), std::string::npos);
    const Json bench = run_cli_json({"bench", "-n", "4", "-r", "1", "--draft-len", "2", "--lenience", "0.5"});
    EXPECT_EQ(bench["lossless"], false);
}

TEST(CliSpeculation, SummarySaysWhatWasDoneAndWhetherItPaid) {
    const std::string model = run_cli({"run", "-n", "24", "--drafter", "model", "--draft-len", "4"}).err;
    EXPECT_NE(model.find("drafter model, draft_len 4: "), std::string::npos) << model;
    EXPECT_NE(model.find(" model)"), std::string::npos) << model;
    EXPECT_NE(model.find("alpha 0."), std::string::npos) << model;
    const std::string nothing = run_cli({"run", "-n", "2", "--drafter", "lookup", "--tokens", "900,901,902"}).err;
    EXPECT_NE(nothing.find("Nothing was drafted"), std::string::npos) << nothing;
}

TEST(CliSpeculation, Refusals) {
    expect_error({"run", "--drafter", "oracle"}, kUsage,
                 "--drafter oracle: expected auto|none|model|ngram|lookup|hybrid");
    expect_error({"run", "--drafter", "host"}, kUsage, "--drafter host");
    expect_error({"run", "--drafter", ""}, kUsage, "--drafter \"\"");
    expect_error({"run", "--draft-len", "16"}, kUsage, "--draft-len 16: expected auto or a whole number from 0 to 15");
    expect_error({"run", "--no-draft", "--drafter", "ngram"}, kUsage, "--no-draft and --drafter ngram contradict");
    expect_error({"run", "--drafter", "none", "--draft-len", "3"}, kUsage, "--drafter none and --draft-len 3");
    expect_error({"run", "--draft-len", "0", "--drafter", "model"}, kUsage, "--draft-len 0 and --drafter model");
    expect_error({"run", "--acceptance", "greedy"}, kUsage, "--acceptance greedy: expected rejection|coupled");
    expect_error({"chat", "--lenience", "0.5", "--acceptance", "coupled"}, kUsage, "--lenience 0.5 and --acceptance");
    expect_error({"bench", "--no-draft", "--drafter", "ngram"}, kUsage, "--no-draft and --drafter");
    expect_error({"bench", "--no-draft", "--draft-len", "2"}, kUsage, "--no-draft and --draft-len");
    expect_error({"bench", "--drafter", "model,oracle"}, kUsage, "--drafter oracle");
    for (const char* value : {"", "x", "1", "17", "4.5", "-4"})
        expect_error({"run", "--ngram-max", value}, kUsage, "--ngram-max");
    for (const char* value : {"", "x", "0", "1.01", "-1", "nan", "inf", "1e-9"})
        expect_error({"run", "--lenience", value}, kUsage, "--lenience");
}

TEST(CliSampling, TopKOfOneIsGreedy) {
    const Json greedy = run_with({});
    EXPECT_EQ(run_with({"--temp", "1", "--top-k", "1"})["completions"], greedy["completions"]);
    EXPECT_EQ(run_with({"--temp", "1", "--top-p", "0"})["completions"], greedy["completions"]) << "always at least one";
    EXPECT_EQ(run_with({"--temp", "1", "--min-p", "1"})["completions"], greedy["completions"]);
    EXPECT_NE(run_with({"--temp", "1"})["completions"], greedy["completions"]);
    // An automatic draft_len depends on time, and with it the text of a seed.
    EXPECT_EQ(run_with({"--temp", "1", "--draft-len", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0"})["completions"],
              run_with({"--temp", "1", "--draft-len", "3"})["completions"])
        << "off";
}

TEST(CliSampling, BannedTokensAreNeverSaid) {
    const uint32_t first = tokens_of(run_with({})).front();
    const std::string id = std::to_string(first);
    const auto says = [&](const Json& run) {
        const auto tokens = tokens_of(run);
        return std::find(tokens.begin(), tokens.end(), first) != tokens.end();
    };
    const Json banned = run_with({"--ban", id});
    EXPECT_FALSE(says(banned));
    EXPECT_EQ(run_with({"--logit-bias", id + "-inf"})["completions"], banned["completions"]) << "two spellings";
    EXPECT_EQ(run_with({"--logit-bias", "5+0", "--logit-bias", id + "-inf"})["completions"], banned["completions"])
        << "repeatable";
    EXPECT_EQ(run_with({"--logit-bias", id + "+1e3"})["completions"][0]["tokens"][5], first) << "nothing else is said";
}

TEST(CliSampling, PenaltiesKeepTokensFromComingBack) {
    const Json plain = run_repeating({});
    for (const Arguments& penalty :
         {Arguments{"--repeat-penalty", "100"}, {"--presence-penalty", "100"}, {"--frequency-penalty", "100"}}) {
        const auto tokens = tokens_of(run_repeating(penalty));
        EXPECT_NE(tokens, tokens_of(plain)) << penalty.front();
        EXPECT_EQ(std::set<uint32_t>(tokens.begin(), tokens.end()).size(), tokens.size()) << penalty.front();
    }
    EXPECT_EQ(run_repeating({"--repeat-penalty", "1", "--presence-penalty", "0"})["completions"], plain["completions"]);
}

TEST(CliSampling, StopTextsEndTheAnswer) {
    const std::string whole = run_with({})["completions"][0]["text"];
    const std::string stop = whole.substr(whole.size() / 2, 6);
    const std::string before = whole.substr(0, whole.find(stop));
    for (const Arguments& flags : {Arguments{"--stop", stop}, {"--stop", "never said", "--stop", stop}}) {
        const Json completion = run_with(flags)["completions"][0];
        EXPECT_EQ(completion["stop_reason"], "stop_text");
        EXPECT_EQ(completion["text"], before);
    }
    EXPECT_NE(run_cli({"run", "-n", "40", "--stop", stop}).err.find("stop_text"), std::string::npos);
    EXPECT_EQ(run_with({"--stop", "never said"})["completions"][0]["stop_reason"], "length");
}

TEST(CliSampling, Refusals) {
    for (const char* flag : {"--top-p", "--min-p"})
        for (const char* value : {"", "x", "-0.1", "1.1", "nan", "0x1", "1 "})
            expect_error({"run", flag, value}, kUsage, std::string(flag) + " ");
    for (const char* value : {"", "x", "-1", "1.5"})
        expect_error({"chat", "--top-k", value}, kUsage, "--top-k");
    for (const char* value : {"", "0", "-1", "101", "inf"})
        expect_error({"bench", "--repeat-penalty", value}, kUsage, "--repeat-penalty");
    for (const char* flag : {"--presence-penalty", "--frequency-penalty"})
        for (const char* value : {"", "x", "100.5", "-101", "nan"})
            expect_error({"run", std::string(flag) + "=" + value}, kUsage, flag);
    for (const char* value :
         {"", "x", "5", "5+", "+1", "-5", "5*2", "5+x", "5+inf", "5--1", "5+ 1", "5-nan", "4294967296+1", "5+1e7"})
        expect_error({"run", std::string("--logit-bias=") + value}, kUsage, "--logit-bias");
    expect_error({"run", "--logit-bias", "5+1", "--ban", "4,5"}, kUsage, "token 5 twice");
    expect_error({"run", "--ban", "4,x"}, kUsage, "--ban x");
    expect_error({"run", "--ban", "4096"}, kUsage, "4096");
    expect_error({"run", "--stop", ""}, kUsage, "--stop \"\"");
    expect_error({"run", "--stop", "caf\xe9"}, kUsage, "--stop: expected UTF-8");
}

TEST(CliSampling, ChatTakesThemToo) {
    const auto chat = [](const std::string& lines, const Arguments& flags) {
        return run_cli(with_flags({"chat", "--chat-template", "llama2", "-n", "9", "-s", "4"}, flags),
                       {.input = lines, .has_input = true});
    };
    const CliResult set = chat("/set temp 1\n/set top-k 3\n/set drafter ngram\n/set draft-len 2\nHello\n/set\n", {});
    EXPECT_EQ(set.exit_code, 0) << set.err;
    EXPECT_EQ(set.out, chat("Hello\n", {"--temp", "1", "--top-k", "3", "--drafter", "ngram", "--draft-len", "2"}).out);
    EXPECT_NE(set.err.find("temp 1, top-k 3, drafter ngram, draft-len 2\n"), std::string::npos) << set.err;
    for (const auto& [line, named] : {std::pair{"/set top-p 2", "/set top-p 2"},
                                      {"/set drafter oracle", "/set drafter oracle"},
                                      {"/set draft-len 9", "/set draft-len 9"},
                                      {"/set colour red", "frequency-penalty"}}) {
        const CliResult refused = chat(std::string(line) + "\n", {});
        EXPECT_EQ(refused.exit_code, kUsage) << line;
        EXPECT_NE(refused.err.find(named), std::string::npos) << refused.err;
    }
    const CliResult alone = chat("/set drafter model\n", {"-m", kTarget});
    EXPECT_EQ(alone.exit_code, kUsage);
    EXPECT_NE(alone.err.find("there is no draft model"), std::string::npos) << alone.err;
    EXPECT_EQ(chat("/set lenience 0.5\n/set acceptance coupled\n", {}).exit_code, kUsage);
}

} // namespace auspex::test::speculation_flags_test
