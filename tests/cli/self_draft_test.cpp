// Drafts by the target's own weights, as people ask for them.
#include "cli/batch_files.h"

#include "apps/cli/common/engine/client.h"
#include "apps/cli/common/engine/self_draft.h"

#include <regex>

namespace auspex::test::self_draft_test {

namespace {

using Arguments = std::vector<std::string>;

Json run_with(Arguments flags) {
    flags.insert(flags.begin(), {"run", "-n", "40", "-s", "5"});
    return run_cli_json(flags);
}

uint64_t self_rounds(const Json& run) {
    return run["speculation"]["drafter_rounds"]["self"].get<uint64_t>();
}

} // namespace

TEST(CliSelfDraft, TheTextIsThePlainText) {
    const Json plain = run_with({"--no-draft"});
    for (const char* type : {"q4_0", "q4_k", "q8_0", "as-is"}) {
        const Json run = run_with({"--drafter", "self", "--draft-len", "3", "--self-quant", type});
        EXPECT_EQ(run["completions"], plain["completions"]) << type;
        EXPECT_GT(self_rounds(run), 5u) << type;
        EXPECT_EQ(run["speculation"]["lossless"], true);
        EXPECT_TRUE(run["model"]["draft"].is_null()) << "no draft model was loaded";
    }
    const Json automatic = run_with({"-m", kTarget, "--self-quant", "q4_0", "--no-stop"});
    EXPECT_EQ(automatic["completions"], run_with({"--no-draft", "--no-stop"})["completions"]);
    EXPECT_EQ(self_rounds(run_with({"-m", kTarget})), 0u) << "a CPU takes no copy unasked";
}

TEST(CliSelfDraft, ADraftModelBesideItIsNotLoadedAndThatIsSaid) {
    const CliResult both = run_cli({"run", "-n", "4", "-m", kTarget, "-md", kDraft, "--drafter", "self"});
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_NE(both.err.find("--drafter self: the draft model " + std::string(kDraft) + " is not loaded"), std::string::npos) << both.err;
    expect_error({"run", "-m", kTarget, "-md", kDraft, "--self-quant", "q4_0"}, kUsage, "--self-quant and -md exclude each other");
    for (const char* command : {"run", "bench"})
        expect_error({command, "-m", kTarget, "--drafter", "model", "--self-quant", "q4_0"}, kUsage, "--self-quant and --drafter model exclude each other");
    expect_error({"bench", "--drafter", "self,model"}, kUsage, "self and the draft model exclude each other");
    expect_error({"run", "--self-quant", "q3"}, kUsage, "--self-quant");
}

// It has both: ngram where its match is long, else whatever the engine drafts with by passes.
TEST(CliSelfDraft, HybridTakesItForTheDraftModel) {
    const Arguments hybrid = {"-m", kTarget, "--drafter", "hybrid", "--self-quant", "q4_0"};
    Arguments flags = hybrid;
    flags.insert(flags.end(), {"--draft-len", "3"});
    const Json run = run_with(flags);
    EXPECT_EQ(run["completions"], run_with({"--no-draft"})["completions"]);
    EXPECT_GT(self_rounds(run), 5u) << "a text that repeats little";
    EXPECT_EQ(run["speculation"]["drafter"], "hybrid");
    flags = hybrid;
    flags.insert(flags.begin(), "bench");
    flags.insert(flags.end(), {"--draft-len", "2", "-n", "16", "-p", "0", "-r", "1", "--json"});
    const Json bench = run_cli_json(flags);
    bool seen = false;
    for (const Json& row : bench["results"]) seen = seen || row["drafter"] == "hybrid";
    EXPECT_TRUE(seen) << bench.dump();
}

// What may be asked for while an engine runs is what it was made for.
TEST(CliSelfDraft, ChatAndBatchTakeWhatTheCopyServes) {
    for (const char* drafter : {"self", "hybrid"}) {
        const std::string set = "/set drafter " + std::string(drafter) + "\n";
        const std::vector<std::string> flags = {"chat", "-m", kTarget, "--self-quant", "q4_0", "-n", "12", "--draft-len", "3", "--chat-template", "llama2"};
        const CliResult chat = run_cli(flags, {.input = set + "Tell me a story.\n/stats\n", .has_input = true});
        EXPECT_EQ(chat.exit_code, 0) << chat.err;
        EXPECT_TRUE(std::regex_search(chat.err, std::regex("[1-9] self"))) << "rounds by the copy: " << chat.err;
        EXPECT_EQ(chat.out, run_cli(flags, {.input = "/set draft-len 0\nTell me a story.\n", .has_input = true}).out);
        const CliResult refused = run_cli(flags, {.input = "/set drafter model\n", .has_input = true});
        EXPECT_EQ(refused.exit_code, kUsage);
        EXPECT_NE(refused.err.find("there is no draft model, expected auto, none, ngram, lookup, hybrid or self"), std::string::npos) << refused.err;
    }
    std::string requests;
    for (const char* drafter : {"none", "self", "hybrid", "auto"})
        requests += request(drafter, {{"prompt", "Once upon a time there was a fox."}, {"max_tokens", 20}, {"temperature", 0}, {"drafter", drafter}});
    const Files files(requests);
    files.run({"-m", kTarget, "--self-quant", "q4_0"});
    const auto texts = texts_of(files.out);
    ASSERT_EQ(texts.size(), 4u);
    for (const auto& [drafter, choices] : texts) EXPECT_EQ(choices, texts.at("none")) << drafter;
}

TEST(CliSelfDraft, ACopyThatSavesTooLittleIsRefusedWithBothSizes) {
    const CliResult refused = run_cli({"run", "-m", kTarget, "--quant", "q8_0", "--drafter", "self", "--self-quant", "q8_0"});
    EXPECT_EQ(refused.exit_code, kUsage) << refused.err;
    EXPECT_NE(refused.err.find("self_draft_weights as q8_0 would take "), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("expected to save at least a quarter"), std::string::npos) << refused.err;
}

TEST(CliSelfDraft, InfoSaysWhetherItWouldBeTaken) {
    const Json memory = run_cli_json({"info", "-m", kTarget, "-c", "512", "--json"})["memory"];
    EXPECT_EQ(memory["self_draft"]["type"], "q4_0");
    EXPECT_GT(memory["self_draft"]["bytes"], 1000000);
    EXPECT_EQ(memory["self_draft"]["taken"], false);
    EXPECT_EQ(memory["self_draft"]["because"], "the device is a CPU");
    EXPECT_FALSE(run_cli_json({"info", "-m", kTarget, "-md", kDraft, "--json"})["memory"].contains("self_draft"));
    EXPECT_NE(run_cli({"info", "-m", kTarget}).out.find("not taken unless asked for, the device is a CPU"), std::string::npos);
}

// The rule by itself: this machine has no GPU.
TEST(CliSelfDraft, ItIsTakenWhereItSavesAndFits) {
    auspex_memory_plan plan = {};
    plan.total = 8'900;
    plan.device_free_bytes = 10'000;
    plan.target_pass_bytes = 6'400;
    plan.draft_pass_bytes = 1'800;
    EXPECT_EQ(cli::self_draft_refusal(plan), "");
    plan.total = 9'100;
    EXPECT_EQ(cli::self_draft_refusal(plan), "it leaves less than a tenth of the memory");
    plan.total = 8'900;
    plan.draft_pass_bytes = 3'600; // 0.56
    EXPECT_EQ(cli::self_draft_refusal(plan), "it saves too little");
    plan.draft_pass_bytes = 3'520; // 0.55
    EXPECT_EQ(cli::self_draft_refusal(plan), "");
    plan.device_is_cpu = 1;
    EXPECT_EQ(cli::self_draft_refusal(plan), "the device is a CPU");
}

// The plan that is judged is the engine's: whatever the request takes of the memory counts, not the copy alone.
TEST(CliSelfDraft, ItIsJudgedWithAllThatTheRequestTakes) {
    cli::ModelOptions models;
    models.target = kTarget;
    models.context = 512;
    const auto judged = [&](const cli::Client::Request& request) { return cli::judge_self_draft(request).plan; };
    const auto planned = [&](cli::Client::Request request) {
        cli::ModelOptions with_copy = models;
        with_copy.self_draft = AUSPEX_SELF_DRAFT_Q4_0;
        return cli::plan_memory({with_copy, request.synthetic, request.max_sequences, request.max_draft_len, request.max_waiting, request.cache_tokens, request.often_one, request.prefix_cache});
    };
    const cli::Client::Request plain = {.models = models, .max_sequences = 16, .max_draft_len = 8};
    cli::Client::Request small = plain, deep = plain, waiting = plain;
    small.cache_tokens = 1024;
    deep.max_draft_len = 15;
    waiting.max_waiting = 4096;
    EXPECT_LT(judged(small).target_cache, judged(plain).target_cache) << "sixteen whole contexts";
    EXPECT_GT(judged(deep).activations, judged(plain).activations);
    for (const cli::Client::Request& request : {plain, small, deep, waiting}) {
        const auspex_memory_plan judges = judged(request), plans = planned(request);
        EXPECT_EQ(judges.total, plans.total);
        EXPECT_EQ(judges.target_cache, plans.target_cache);
        EXPECT_EQ(judges.activations, plans.activations);
    }
}

// Engines, tune and info load the same models. On a CPU none of them makes a copy unasked.
TEST(CliSelfDraft, OnACpuNoneIsMadeUnasked) {
    cli::ModelOptions models;
    models.target = kTarget;
    models.may_self_draft = true;
    const cli::Client::Request request = {.models = models, .max_draft_len = 8};
    EXPECT_EQ(cli::models_loaded(request).self_draft, AUSPEX_SELF_DRAFT_NONE);
    models.draft_needed_by = "--drafter hybrid";
    try {
        cli::models_loaded(request);
        FAIL() << "hybrid cannot do without drafts";
    } catch (const cli::Failure& failure) {
        EXPECT_NE(std::string(failure.what()).find("the device is a CPU"), std::string::npos) << failure.what();
    }
    EXPECT_EQ(cli::models_loaded({.models = models, .max_draft_len = 0}).self_draft, AUSPEX_SELF_DRAFT_NONE) << "nothing is drafted";
    models.self_draft = AUSPEX_SELF_DRAFT_Q8_0; // asked for
    models.may_self_draft = false;
    EXPECT_EQ(cli::models_loaded(request).self_draft, AUSPEX_SELF_DRAFT_Q8_0);
}

TEST(CliSelfDraft, BenchMeasuresIt) {
    const Json bench = run_cli_json({"bench", "-m", kTarget, "--drafter", "self,auto", "--draft-len", "2", "-n", "16", "-p", "16", "-r", "1", "--json"});
    bool seen = false;
    for (const Json& row : bench["results"]) seen = seen || (row["drafter"] == "self" && row["c"].is_number());
    EXPECT_TRUE(seen) << bench.dump();
    const Json shape = run_cli_json({"bench", "--shape", "d=64,L=1,ffn=96,heads=2,vocab=97", "--drafter", "self", "--alpha", "0.9", "--draft-len", "3", "-n", "16", "-p", "16", "-r", "1", "--json"});
    EXPECT_FALSE(shape["results"].empty());
}

} // namespace auspex::test::self_draft_test
