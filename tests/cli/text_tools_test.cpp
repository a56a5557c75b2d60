// auspex tokenize, score and quantize, on the bundled pair: shapes of their output, round trips, goldens, refusals.
#include "cli/model_copy.h"

#include <cmath>
#include <sys/stat.h>

namespace auspex::test::text_tools_test {

namespace {

using Keys = std::vector<std::string>;
using Ids = std::vector<uint32_t>;

constexpr const char* kText = "Once upon a time — \"Zuri\" & a fox\t🦊\n  said: caf\u00e9!";

std::string joined(const Ids& ids) {
    std::string text;
    for (const uint32_t id : ids)
        text += (text.empty() ? "" : ",") + std::to_string(id);
    return text;
}

const Json& goldens() {
    static const Json read = [] {
        std::ifstream file(AUSPEX_TEST_DATA "/goldens.json");
        return Json::parse(file);
    }();
    return read;
}

} // namespace

// With --special control tokens have their text, and the text gives the ids again: in both directions, each kind of file.
TEST(CliTokenize, ControlTokensKeepTheirText) {
    const std::string bpe = AUSPEX_TEST_DATA "/bpe";
    const struct {
        std::string model, text;
    } cases[] = {{kTarget, "<s>Once upon a time</s>there<s></s>  was"}, {kTarget, "no control token"}, {kTarget, "</s>"},
                 {bpe, "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi <|eot_id|> there"}};
    for (const auto& [model, text] : cases) {
        const Json ids = run_cli_json({"tokenize", "-m", model, "--special", "-p", text})["ids"];
        const std::vector<std::string> back = {"tokenize", "-m", model, "--detokenize", "--tokens", joined(ids)};
        EXPECT_EQ(run_cli_json({back[0], back[1], back[2], back[3], back[4], back[5], "--special"})["text"], text);
        EXPECT_EQ(run_cli_json(back)["text"] == text, text.find('<') == std::string::npos) << "left out without it";
    }
}

TEST(CliTokenize, GivesTheGoldensAndTheirText) {
    for (size_t i = 0; i < 3; ++i) {
        const Json& golden = goldens()[i];
        const std::string prompt = golden["prompt"];
        const Json result = run_cli_json({"tokenize", "--bos", "-p", prompt});
        EXPECT_EQ(keys_of(result), (Keys{"ids", "pieces"}));
        EXPECT_EQ(result["ids"], golden["ids"]);
        EXPECT_EQ(result["pieces"].size(), result["ids"].size());
        EXPECT_EQ(run_cli_json({"tokenize", "--detokenize", "--tokens", joined(golden["ids"])}),
                  (Json{{"text", prompt}}));
    }
}

TEST(CliTokenize, EveryTextComesBack) {
    const Json result = run_cli_json({"tokenize", "-m", kDraft, "-p", kText});
    std::string pieces, bytes;
    for (const std::string piece : result["pieces"])
        pieces += piece;
    EXPECT_EQ(pieces.find("\ufffd"), std::string::npos);
    EXPECT_NE(pieces.find("<0xF0><0x9F><0xA6><0x8A>"), std::string::npos) << pieces;
    const std::string ids = joined(result["ids"]);
    EXPECT_EQ(run_cli_json({"tokenize", "-m", kDraft, "--detokenize", "--tokens", ids})["text"], kText);
    // Ids as programs and people write them; text ends with one line end.
    for (const std::string& written : {ids + "\n", result["ids"].dump(), " " + with(ids, ",", " , ") + " "}) {
        const CliResult back = run_cli({"tokenize", "--detokenize"}, {.input = written, .has_input = true});
        EXPECT_EQ(back.exit_code, 0) << back.err;
        EXPECT_EQ(back.out, std::string(kText) + "\n") << written;
        EXPECT_EQ(back.err, "");
    }
}

TEST(CliTokenize, ControlTokensOnlyWhenAsked) {
    const Json text = run_cli_json({"tokenize", "-p", "a</s>"});
    const Json control = run_cli_json({"tokenize", "--special", "-p", "a</s>"});
    EXPECT_EQ(control["ids"].back(), 2);
    EXPECT_EQ(control["pieces"].back(), "</s>");
    for (const Json& id : text["ids"])
        EXPECT_GT(id, 2);
    EXPECT_EQ(run_cli_json({"tokenize", "--detokenize", "--tokens", joined(text["ids"])})["text"], "a</s>");
}

TEST(CliTokenize, ForPeople) {
    const CliResult result = run_cli({"tokenize", "-p", "a \"fox\"\n"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("264  \" a\"\n"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("\"\\n\""), std::string::npos) << result.out;
    EXPECT_EQ(run_cli({"tokenize"}, {.input = "a \"fox\"\n\n", .has_input = true}).out, result.out) << "stdin";
}

TEST(CliTokenize, NeedsNoWeightsAndNoDevice) {
    const ModelCopy model(kTarget);
    model.remove("model.safetensors");
    const CliSetting no_driver = {
        .environment = {{"VK_DRIVER_FILES", "/nonexistent.json"}, {"VK_ICD_FILENAMES", "/nonexistent.json"}}};
    EXPECT_EQ(run_cli_json({"tokenize", "-m", model.path(), "-p", kText}, no_driver),
              run_cli_json({"tokenize", "-p", kText}));
}

TEST(CliTokenize, Refusals) {
    expect_error({"tokenize"}, kUsage, "stdin");
    expect_error({"tokenize", "-p", ""}, kUsage, "-p");
    expect_error({"tokenize", "-p", "caf\xe9"}, kUsage, "0xe9");
    expect_error({"tokenize", "-p", "a", "--tokens", "1"}, kUsage, "--tokens");
    expect_error({"tokenize", "--tokens", "1"}, kUsage, "--detokenize");
    expect_error({"tokenize", "--detokenize", "--bos", "--tokens", "1"}, kUsage, "--bos");
    expect_error({"tokenize", "--detokenize", "--bos", "--special", "--tokens", "1"}, kUsage, "--bos");
    expect_error({"tokenize", "--detokenize", "--tokens", "1,4096"}, kUsage, "4096");
    for (const char* ids : {"1,x", "-1", "4294967296", "1.5", "[1", "1]", "1;2", "\x1b[31m", "{\"ids\":[1]}"})
        expect_error({"tokenize", "--detokenize", "-p", ids}, kUsage, "-p");
    expect_error({"tokenize", "-m", "/nonexistent", "-p", "a"}, kFile, "/nonexistent");
    expect_error({"tokenize", "-f", "/nonexistent"}, kFile, "-f /nonexistent");
    const ModelCopy model(kDraft);
    model.write("tokenizer.model", model.read("tokenizer.model").substr(0, 1000));
    expect_error({"tokenize", "-m", model.path(), "-p", "a"}, kFile, model.path());
}

// The logits of an independent implementation; f32 rounding alone was seen to leave errors of 5e-6
// (session/goldens_test).
TEST(CliScore, LogitsAreTheGoldens) {
    const Json& golden = goldens()[1];
    const auto ids = golden["ids"].get<Ids>();
    const Json score = run_cli_json(
        {"score", "--cache-type", "f32", "-p", golden["prompt"], "--logits", "-1,3," + std::to_string(ids.size() - 1)});
    EXPECT_EQ(keys_of(score), (Keys{"tokens", "logprobs", "nll", "perplexity", "logits"}));
    EXPECT_EQ(score["tokens"], golden["ids"]);
    EXPECT_EQ(keys_of(score["logits"]), (Keys{"3", std::to_string(ids.size() - 1)})) << "resolved, each once";
    const auto last = score["logits"].back().get<std::vector<double>>();
    ASSERT_EQ(last.size(), 4096u);
    const Json& expected = golden["target"]["last_prompt_logits"];
    for (size_t i = 0; i < expected["id"].size(); ++i)
        EXPECT_NEAR(last[expected["id"][i].get<size_t>()], expected["logit"][i].get<double>(), 1e-4);

    // What the logits at position 3 make of the token after it.
    const auto logits = score["logits"]["3"].get<std::vector<double>>();
    double sum = 0.0;
    for (const double logit : logits)
        sum += std::exp(logit);
    EXPECT_NEAR(score["logprobs"][4].get<double>(), logits[ids[4]] - std::log(sum), 1e-4);
}

TEST(CliScore, SumsFitTogether) {
    const Json score = run_cli_json({"score", "-p", "Once upon a time there was a fox."});
    EXPECT_EQ(keys_of(score), (Keys{"tokens", "logprobs", "nll", "perplexity"}));
    ASSERT_EQ(score["logprobs"].size(), score["tokens"].size());
    EXPECT_TRUE(score["logprobs"][0].is_null());
    EXPECT_EQ(score["tokens"][0], 1) << "BOS";
    double sum = 0.0;
    for (size_t i = 1; i < score["logprobs"].size(); ++i) {
        EXPECT_LE(score["logprobs"][i].get<double>(), 0.0);
        sum -= score["logprobs"][i].get<double>();
    }
    const double nll = sum / static_cast<double>(score["tokens"].size() - 1);
    EXPECT_NEAR(score["nll"].get<double>(), nll, 1e-12);
    EXPECT_NEAR(score["perplexity"].get<double>(), std::exp(nll), 1e-9);
    const std::string ids = joined(score["tokens"]);
    EXPECT_EQ(run_cli_json({"score", "--tokens", ids}), score) << "verbatim, BOS among them";
    const Json inner = run_cli_json({"score", "--tokens", ids.substr(2)});
    EXPECT_EQ(inner["tokens"].size() + 1, score["tokens"].size()) << "no BOS is added";

    const CliResult people = run_cli({"score", "--tokens", ids});
    EXPECT_NE(people.out.find("perplexity  "), std::string::npos) << people.out;
    EXPECT_NEAR(std::stod(people.out.substr(people.out.find("nll") + 3)), nll, 1e-6);
    EXPECT_EQ(people.err, "");
}

TEST(CliScore, OneTokenHasNothingToScore) {
    const Json score = run_cli_json({"score", "--tokens", "1", "--logits", "0"});
    EXPECT_EQ(score["logprobs"], Json::array({nullptr}));
    EXPECT_TRUE(score["nll"].is_null());
    EXPECT_TRUE(score["perplexity"].is_null());
    EXPECT_EQ(score["logits"]["0"].size(), 4096u);
}

TEST(CliScore, QuantisedWeightsScoreAlmostAlike) {
    const std::string text = goldens()[0]["prompt"];
    const double whole = run_cli_json({"score", "-p", text})["nll"];
    const double q8 = run_cli_json({"score", "-p", text, "--quant", "q8_0"})["nll"];
    EXPECT_NE(q8, whole);
    EXPECT_NEAR(q8, whole, 0.02 * whole + 0.02);
}

TEST(CliScore, Refusals) {
    expect_error({"score"}, kUsage, "stdin");
    expect_error({"score", "-p", "a", "--logits", "0"}, kUsage, "--json");
    for (const char* positions : {"", "x", "-0", "1,,2", "--1", "99999999999999999999", "0.5"})
        expect_error({"score", "-p", "a", "--json", "--logits", positions}, kUsage, "--logits");
    expect_error({"score", "--tokens", "1,2", "--json", "--logits", "2"}, kUsage, "--logits 2");
    expect_error({"score", "--tokens", "1,2", "--json", "--logits", "0,-3"}, kUsage, "--logits -3");
    expect_error({"score", "--tokens", "1,4096"}, kUsage, "4096");
    expect_error({"score", "--tokens", "1,1,1,1,1", "-c", "4"}, kCapacity, "-c");
    expect_error({"score", "-p", "a", "-md", kDraft}, kUsage, "-md");
    expect_error({"score", "-p", "a", "--device", ""}, kUsage, "--device");
}

TEST(CliQuantize, WritesASmallerModelThatRuns) {
    const TempFolder folder;
    const std::string out = folder.file("small.gguf");
    const CliResult result = run_cli({"quantize", kTarget, out, "--type", "q4_k"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("14.0 MiB of weights (bf16)"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("(q4_k)"), std::string::npos) << result.err;

    const Json info = run_cli_json({"info", "-m", out})["models"][0];
    EXPECT_EQ(info["dtype"], "q4_k");
    EXPECT_EQ(info["n_parameters"], 7344384);
    EXPECT_LT(info["weights_bytes"], 2 * 7344384 * 3 / 10);
    EXPECT_EQ(run_cli_json({"tokenize", "-m", out, "-p", kText}), run_cli_json({"tokenize", "-p", kText}));
    // The file's blocks are those that loading makes of the same matrices.
    const std::vector<std::string> run = {"run", "-n", "12", "--no-draft"};
    auto from_file = run, converted = run;
    from_file.insert(from_file.end(), {"-m", out});
    converted.insert(converted.end(), {"--quant", "q4_k"});
    EXPECT_EQ(run_cli_json(from_file)["completions"], run_cli_json(converted)["completions"]);
    EXPECT_EQ(run_cli_json({"run", "-n", "8", "-m", kTarget, "-md", out})["completions"],
              run_cli_json({"run", "-n", "8", "--no-draft"})["completions"])
        << "a GGUF draft changes no token";
}

TEST(CliQuantize, OverwritesOnlyWhenTold) {
    const TempFolder folder;
    folder.write("old.gguf", "precious");
    const std::string out = folder.file("old.gguf");
    const auto content = [&] {
        std::ifstream file(out, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    expect_error({"quantize", kDraft, out, "--type", "q8_0"}, kUsage, "--force");
    EXPECT_EQ(content(), "precious");
    EXPECT_EQ(run_cli({"quantize", kDraft, out, "--type", "q8_0", "--force"}).exit_code, 0);
    EXPECT_EQ(content().substr(0, 4), "GGUF");
    const std::string written = content();
    // Under another name the input is still the input.
    std::filesystem::create_symlink(out, folder.file("link.gguf"));
    expect_error({"quantize", folder.file("link.gguf"), out, "--type", "q4_0", "-y"}, kUsage, "same file");
    EXPECT_TRUE(content() == written) << "the file was touched";
}

TEST(CliQuantize, WritesThroughLinksAndReplacesNothingButFiles) {
    const TempFolder folder;
    folder.write("real.gguf", "old");
    std::filesystem::create_symlink("real.gguf", folder.file("link.gguf"));
    const std::vector<std::string> quantize = {"quantize", kDraft, folder.file("link.gguf"), "--type", "q8_0", "--force"};
    EXPECT_EQ(run_cli(quantize).exit_code, 0);
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link.gguf")));
    EXPECT_GT(std::filesystem::file_size(folder.file("real.gguf")), 1000u);
    ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
    expect_error({"quantize", kDraft, folder.file("pipe"), "--type", "q8_0", "--force"}, kFile,
                 folder.file("pipe") + ": found a device or a pipe");
    EXPECT_TRUE(std::filesystem::is_fifo(folder.file("pipe")));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 3);
}

// A template of two megabytes is read beside a vocabulary and not inside a GGUF file.
TEST(CliQuantize, LeavesNothingThatItCannotReadAgain) {
    const TempFolder folder;
    const ModelCopy model(kDraft);
    model.write("tokenizer_config.json", "{\"chat_template\": \"" + std::string(2 << 20, ' ') + "\"}");
    const std::string out = folder.file("out.gguf");
    expect_error({"quantize", model.path(), out, "--type", "q8_0"}, kFile, out + ": not written");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    folder.write("out.gguf", "precious");
    expect_error({"quantize", model.path(), out, "--type", "q8_0", "--force"}, kFile, out + ": not written");
    EXPECT_EQ(std::filesystem::file_size(out), 8u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(CliQuantize, Refusals) {
    const TempFolder folder;
    const std::string out = folder.file("out.gguf");
    expect_error({"quantize"}, kUsage, "IN OUT");
    expect_error({"quantize", kDraft}, kUsage, "IN OUT");
    expect_error({"quantize", kDraft, out}, kUsage, "--type");
    expect_error({"quantize", kDraft, out, "--type", "q5_1"}, kUsage, "--type q5_1");
    expect_error({"quantize", kDraft, out, "more", "--type", "q8_0"}, kUsage, "more");
    expect_error({"quantize", "/nonexistent", out, "--type", "q8_0"}, kFile, "/nonexistent");
    expect_error({"quantize", kDraft, folder.path(), "--type", "q8_0"}, kFile, folder.path());
    expect_error({"quantize", kDraft, folder.file("none/out.gguf"), "--type", "q8_0"}, kFile, "none/out.gguf");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a refusal leaves no file behind";
}

} // namespace auspex::test::text_tools_test
