// auspex info and auspex bench: keys, and that the figures fit together.
#include "cli/cli_process.h"

#include <cmath>

namespace auspex::test {

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
    EXPECT_EQ(keys_of(info), (Keys{"schema", "devices", "models", "memory"}));
    EXPECT_TRUE(info["memory"].is_null()) << "nothing was asked about";
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
                                               "ffn_size":768,"vocab_size":4096,"max_position":512})"));
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
    const Json bench = run_cli_json({"bench", "-n", "24", "-r", "3", "--draft-len", "1,3"});
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
}

TEST(CliBench, TableIsTextOnStdout) {
    const CliResult result = run_cli({"bench", "-n", "8", "-r", "1", "--draft-len", "2"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const char* word : {"plain", "tok/s", "accept", "v(K+1)", "speed-up", "predicted", "GB/s"})
        EXPECT_NE(result.out.find(word), std::string::npos) << word;
    EXPECT_EQ(result.err, "");
}

} // namespace auspex::test
