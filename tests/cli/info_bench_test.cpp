// auspex info and auspex bench: keys, and that the figures fit together.
#include "cli/cli_process.h"

#include <cmath>
#include <sstream>

namespace auspex::test::info_bench_test {

namespace {

using Keys = std::vector<std::string>;

bool starts_with(const Keys& keys, const Keys& beginning) {
    return keys.size() >= beginning.size() && std::equal(beginning.begin(), beginning.end(), keys.begin());
}

} // namespace

TEST(CliInfo, ListsDevices) {
    const CliResult result = run_cli({"info"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const char* label : {"device 0: ", "driver", "subgroup size", "one binding", "features", "numerics id"})
        EXPECT_NE(result.out.find(label), std::string::npos) << label;

    const Json info = run_cli_json({"info"});
    EXPECT_EQ(keys_of(info), (Keys{"schema", "devices", "models", "memory", "tuning"}));
    EXPECT_TRUE(info["memory"].is_null()) << "nothing was asked about";
    EXPECT_TRUE(info["tuning"].is_null());
    ASSERT_FALSE(info["devices"].empty());
    const Json& device = info["devices"][0];
    EXPECT_TRUE(starts_with(keys_of(device), {"index", "name", "driver", "api_version"}));
    EXPECT_EQ(device["index"], 0);
    EXPECT_GT(device["subgroup_size"], 0);
    EXPECT_GE(device["max_storage_buffer_range"], 1u << 27); // Vulkan's least
    EXPECT_NE(device["numerics_id"], "");
}

TEST(CliInfo, DescribesTheBundledPair) {
    const Json info = run_cli_json({"info", "-m", kTarget, "-md", kDraft});
    ASSERT_EQ(info["models"].size(), 2u);
    const Json& target = info["models"][0];
    EXPECT_EQ(target["path"], kTarget);
    EXPECT_EQ(target["shape"], Json::parse(R"({"hidden_size":256,"n_layers":8,"n_heads":4,"n_kv_heads":2,"head_dim":64,
                                               "ffn_size":768,"vocab_size":4096,"max_position":1024})"));
    EXPECT_EQ(target["dtype"], "bf16");
    EXPECT_EQ(target["n_parameters"], 7344384); // 4096·256 + 8·(2·256·256 + 2·128·256 + 3·768·256 + 2·256) + 256
    EXPECT_GE(target["weights_bytes"], 2 * 7344384);
    EXPECT_EQ(target["cache_bytes_per_token"], 8 * 2 * 2 * 64 * 2); // layers, K and V, KV heads, head_dim, f16
    EXPECT_EQ(run_cli_json({"info", "-m", kTarget, "--cache-type", "f32"})["models"][0]["cache_bytes_per_token"],
              8 * 2 * 2 * 64 * 4);
    EXPECT_EQ(run_cli_json({"info", "-m", kTarget, "--cache-type", "q8_0"})["models"][0]["cache_bytes_per_token"],
              8 * 2 * 2 * 64 * 17 / 16);
    EXPECT_NE(run_cli({"info", "-m", kTarget}).out.find("7.34 M"), std::string::npos);
}

TEST(CliInfo, ReckonsTheMemoryThatARunThenTakes) {
    const std::vector<std::string> models = {"-m", kTarget, "-md", kDraft, "-c", "256", "--draft-quant", "q4_0"};
    std::vector<std::string> info = {"info"}, run = {"run", "-n", "2"};
    info.insert(info.end(), models.begin(), models.end());
    run.insert(run.end(), models.begin(), models.end());
    const Json memory = run_cli_json(info)["memory"];
    EXPECT_EQ(keys_of(memory), (Keys{"context", "target_weights", "draft_weights", "target_cache", "draft_cache",
                                     "activations", "total", "device_bytes", "device_free_bytes", "fits"}));
    EXPECT_EQ(memory["context"], 256);
    EXPECT_EQ(memory["target_cache"], 256 * 8 * 2 * 2 * 64 * 2); // tokens, layers, K and V, KV heads, head_dim, f16
    EXPECT_EQ(memory["fits"], true);
    EXPECT_EQ(run_cli_json(run)["device"]["memory_bytes"], memory["total"]);
    EXPECT_NE(run_cli(info).out.find("memory of one sequence, context 256"), std::string::npos);
}

TEST(CliInfo, DeviceCanBeNamed) {
    const std::string name = run_cli_json({"info"})["devices"][0]["name"];
    EXPECT_EQ(run_cli_json({"run", "-n", "2", "--device", "0"})["device"]["name"], name);
    EXPECT_EQ(run_cli_json({"run", "-n", "2", "--device", name.substr(0, 6)})["device"]["name"], name);
}

TEST(CliBench, ComparesPlainWithEveryDraftLen) {
    const Json bench = run_cli_json({"bench", "-n", "24", "-p", "0", "-r", "3", "--draft-len", "1,3"});
    EXPECT_TRUE(starts_with(keys_of(bench), {"schema", "device", "results"}));
    ASSERT_EQ(bench["results"].size(), 4u) << "plain, model 1, model 3, auto";
    const Json& plain = bench["results"][0];
    for (const Json& result : bench["results"]) {
        SCOPED_TRACE(result.dump());
        EXPECT_TRUE(starts_with(keys_of(result),
                                {"test", "draft_len", "tokens_per_second", "stddev", "samples", "acceptance_rate",
                                 "tokens_per_round", "c", "v", "speedup", "predicted_speedup"}));
        EXPECT_EQ(result["samples"].size(), 3u);
        auto samples = result["samples"].get<std::vector<double>>();
        std::sort(samples.begin(), samples.end());
        EXPECT_DOUBLE_EQ(result["tokens_per_second"].get<double>(), samples[1]) << "the median";
        EXPECT_NEAR(result["speedup"].get<double>(),
                    result["tokens_per_second"].get<double>() / plain["tokens_per_second"].get<double>(), 1e-9);
    }
    EXPECT_EQ(plain["test"], "plain");
    EXPECT_EQ(plain["draft_len"], 0);
    EXPECT_TRUE(plain["acceptance_rate"].is_null());
    EXPECT_TRUE(plain["c"].is_null());
    EXPECT_EQ(plain["tokens_per_round"], 1.0);
    EXPECT_EQ(plain["drafter"], "none");
    EXPECT_EQ(bench["results"][3]["drafter"], "auto");
    EXPECT_TRUE(bench["results"][3]["draft_len"].is_null());
    const Json& spec = bench["results"][2];
    EXPECT_EQ(spec["test"], "spec");
    EXPECT_EQ(spec["drafter"], "model");
    EXPECT_GT(spec["overlap"], 0.0);
    EXPECT_EQ(spec["draft_len"], 3);
    EXPECT_GT(spec["tokens_per_round"], 1.0);
    if (spec["v"].is_number()) { // the device has timestamps
        const double alpha = spec["alpha"], c = spec["c"], v = spec["v"];
        const double expected = 1 + alpha + alpha * alpha + alpha * alpha * alpha;
        EXPECT_NEAR(spec["theorem_speedup"].get<double>(), expected / (3 * c + v), 1e-9);
        EXPECT_TRUE(std::isfinite(spec["predicted_speedup"].get<double>()));
    }
}

TEST(CliBench, RunsShapesWithoutFiles) {
    const std::string shape = "layers=2,ffn=96,heads=3,kv_heads=1,head_dim=32,vocab=500";
    const Json pair = run_cli_json({"bench", "--shape", "d=72," + shape + ",dtype=bf16,tied=1", "--draft-shape",
                                    "d=40," + shape, "-n", "6", "-r", "1", "--draft-len", "2"});
    ASSERT_EQ(pair["results"].size(), 3u);
    EXPECT_EQ(pair["results"][1]["draft_len"], 2);
    EXPECT_TRUE(pair["model"]["target"].is_null());
    const Json alone = run_cli_json({"bench", "--shape", "d=72," + shape, "-n", "6", "-r", "1"});
    ASSERT_EQ(alone["results"].size(), 2u) << "no draft: plain, and what auto finds in the text";
    EXPECT_EQ(alone["results"][1]["drafter"], "auto");
    const Json plain = run_cli_json({"bench", "--shape", "d=72," + shape, "-n", "6", "-r", "1", "--no-draft"});
    EXPECT_EQ(plain["results"].size(), 1u);
    const Json none = run_cli_json({"bench", "--shape", "d=72," + shape, "-n", "0", "-p", "8", "-r", "1", "--rows", "0"});
    EXPECT_TRUE(none["results"].empty());
    EXPECT_TRUE(none["passes"].empty());
    EXPECT_TRUE(none["copy"].is_null());
    EXPECT_EQ(none["throughput"].size(), 1u);
}

// As llama-bench's: a row for every prompt and every length after every depth.
TEST(CliBench, RowsOfPromptsAndGeneration) {
    const std::string shape = "d=128,L=2,ffn=192,heads=4,kv_heads=2,head_dim=32,vocab=500,dtype=q8_0";
    const Json bench = run_cli_json({"bench", "--shape", shape, "-p", "16,24", "-n", "12", "-d", "0,40", "-r", "3", "--rows",
                                     "1,5", "--stages", "--peak", "10", "--no-draft"});
    const Json& rows = bench["throughput"];
    ASSERT_EQ(rows.size(), 6u);
    std::vector<std::string> tests;
    for (const Json& row : rows) {
        SCOPED_TRACE(row.dump());
        tests.push_back(row["test"].get<std::string>() + "@" + std::to_string(row["depth"].get<int>()));
        auto samples = row["samples"].get<std::vector<double>>();
        ASSERT_EQ(samples.size(), 3u);
        std::sort(samples.begin(), samples.end());
        EXPECT_DOUBLE_EQ(row["tokens_per_second"].get<double>(), samples[1]);
        if (row["n_prompt"] == 0) {
            EXPECT_GT(row["cpu_us_per_round"], 0.0);
            EXPECT_NEAR(row["floor_percent"].get<double>(),
                        100 * row["gb_per_second"].get<double>() / bench["copy"]["gb_per_second"].get<double>(), 1e-9);
            EXPECT_TRUE(row["first_token_ms"].is_null());
        } else {
            EXPECT_NEAR(row["first_token_ms"].get<double>() * row["tokens_per_second"].get<double>(),
                        1e3 * row["n_prompt"].get<double>(), 1e-6);
            const double layers = 128 * (128 + 2 * 64) + 128 * 128 + 3 * 128 * 192; // weights of one
            EXPECT_NEAR(row["tflops"].get<double>(), 2 * 2 * layers * row["tokens_per_second"].get<double>() * 1e-12, 1e-15);
            EXPECT_NEAR(row["peak_percent"].get<double>(), 10 * row["tflops"].get<double>(), 1e-12);
        }
    }
    EXPECT_EQ(tests, (std::vector<std::string>{"pp16@0", "pp24@0", "tg12@0", "pp16@40", "pp24@40", "tg12@40"}));

    Json passes = Json::array(), prompts = Json::array();
    for (const Json& pass : bench["passes"]) (pass["is_prompt"].get<bool>() ? prompts : passes).push_back(pass);
    ASSERT_EQ(passes.size(), 4u) << "rows 1 and 5 at two depths";
    ASSERT_EQ(prompts.size(), 4u) << "the stages of both prompts at both";
    EXPECT_EQ(prompts[0]["rows"], 16);
    EXPECT_EQ(prompts[3]["rows"], 24);
    EXPECT_EQ(prompts[3]["depth"], 40);
    EXPECT_TRUE(prompts[3]["v"].is_null());
    EXPECT_EQ(passes[0]["rows"], 1);
    EXPECT_EQ(passes[1]["rows"], 5);
    EXPECT_EQ(passes[3]["depth"], 40);
    EXPECT_EQ(passes[0]["cache_bytes"], 2 * 2 * 64 * 2) << "K and V, layers, heads x head_dim, f16, one position";
    EXPECT_EQ(passes[3]["cache_bytes"], 2 * 2 * 64 * 2 * 45);
    const bool has_timestamps = passes[0]["gpu_ms"].is_number();
    const char* ms = has_timestamps ? "gpu_ms" : "wall_ms";
    EXPECT_NEAR(passes[1]["v"].get<double>(), passes[1][ms].get<double>() / passes[0][ms].get<double>(), 1e-9);
    EXPECT_TRUE(passes[0]["v"].is_null());
    if (has_timestamps) {
        double sum = 0;
        for (const Json& stage : passes[1]["stages"]) sum += stage["ms"].get<double>();
        EXPECT_GT(sum, 0.2 * passes[1]["gpu_ms"].get<double>()) << "stages are what a pass is made of";
        EXPECT_EQ(bench["results"][0]["test"], "plain");
        EXPECT_GT(bench["results"][0]["round_over_passes_gpu"], 0.0);
    }
    EXPECT_GT(bench["copy"]["bytes"], 0);
}

TEST(CliBench, SimulatedAcceptanceSaysSo) {
    const std::string shape = "d=64,L=1,ffn=96,heads=2,vocab=300";
    const std::vector<std::string> arguments = {"bench", "--shape", shape, "--draft-shape", shape + ",dtype=q4_0", "-p", "0", "-n",
                                                "400", "-r", "1", "--draft-len", "4", "--alpha", "0.8", "--rows", "1,5"};
    const Json bench = run_cli_json(arguments);
    EXPECT_EQ(bench["simulated_alpha"], 0.8);
    EXPECT_EQ(bench["lossless"], false);
    ASSERT_EQ(bench["results"].size(), 2u) << "plain and the model's: auto would judge coins";
    const Json& spec = bench["results"][1];
    // 3.36 tokens a round of K = 4 at 0.8; 119 rounds have a deviation of 1.6 / √119 = 0.15.
    EXPECT_NEAR(spec["tokens_per_round"].get<double>(), 3.36, 5 * 0.15);
    EXPECT_NEAR(spec["overlap"].get<double>(), 0.8, 1e-5);
    EXPECT_GT(spec["cpu_us_per_round"], 0.0);
    EXPECT_GT(spec["first_token_ms"], 0.0);
    EXPECT_GT(spec["round_over_passes_wall"], 0.0);
    const CliResult shown = run_cli(arguments);
    EXPECT_NE(shown.out.find("SIMULATED"), std::string::npos) << shown.out;
    EXPECT_NE(shown.out.find("mean\nnothing"), std::string::npos) << shown.out;
    EXPECT_TRUE(run_cli_json({"bench", "-n", "4", "-p", "0", "-r", "1", "--no-draft"})["simulated_alpha"].is_null());
}

TEST(CliBench, RowsForPrograms) {
    std::vector<std::string> arguments = {"bench", "--shape", "d=64,L=1,ffn=96,heads=2,vocab=300", "-p", "8", "-n", "6", "-r", "1",
                                          "--no-draft", "-o", "jsonl"};
    const CliResult lines = run_cli(arguments);
    ASSERT_EQ(lines.exit_code, 0) << lines.err;
    std::vector<std::string> tables;
    std::istringstream stream(lines.out);
    for (std::string line; std::getline(stream, line);) {
        const Json row = Json::parse(line);
        tables.push_back(row["table"]);
        EXPECT_EQ(row.contains("depth") && row["depth"].is_number_integer(), tables.back() == "throughput" || tables.back() == "passes");
    }
    EXPECT_EQ(tables, (std::vector<std::string>{"device", "throughput", "throughput", "passes", "copy", "speculation"}));
    arguments.back() = "csv";
    EXPECT_NE(run_cli(arguments).out.find("\nthroughput,tg6,0,6,0,"), std::string::npos);
    arguments.back() = "md";
    EXPECT_NE(run_cli(arguments).out.find("| tg6 | 0 | 6 | 0 |"), std::string::npos);
    arguments.back() = "json";
    const Json whole = Json::parse(run_cli(arguments).out);
    EXPECT_EQ(whole["tables"]["throughput"][0]["test"], "pp8");
}

TEST(CliBench, TableIsTextOnStdout) {
    const CliResult result = run_cli({"bench", "-n", "8", "-r", "1", "--draft-len", "2"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const char* word : {"plain", "tok/s", "accept", "v(K+1)", "speed-up", "predicted", "GB/s", "pp512", "tg8", "copy"})
        EXPECT_NE(result.out.find(word), std::string::npos) << word;
    EXPECT_EQ(result.err, "");
}

} // namespace auspex::test::info_bench_test
