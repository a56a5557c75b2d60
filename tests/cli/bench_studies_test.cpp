// auspex bench --tables, --never-slower and --plot: that their figures fit together, and what they refuse. How fast
// anything is belongs to no test.
#include "cli/model_copy.h"

#include <algorithm>
#include <set>

namespace auspex::test::bench_studies_test {

namespace {

using Keys = std::vector<std::string>;

uint64_t count_of(const std::string& text, const std::string& part) {
    uint64_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++n;
    return n;
}

} // namespace

TEST(CliBenchStudies, TablesFitTheory) {
    const TempFolder folder;
    const Json study = run_cli_json({"bench", "--tables", "-n", "8", "-r", "1", "--plot", folder.file("speedup.svg")});
    EXPECT_EQ(keys_of(study), (Keys{"schema", "device", "model", "predicted_n", "repetitions", "seed", "tables"}));
    const Json& tables = study["tables"];
    EXPECT_EQ(keys_of(tables), (Keys{"alpha", "improvement_t0", "improvement_t1", "operations", "tokens_per_round"}));

    ASSERT_EQ(tables["alpha"].size(), 5u);
    for (const Json& row : tables["alpha"]) {
        SCOPED_TRACE(row.dump());
        const bool has_distribution = row["drafter"] != "ngram" && row["drafter"] != "lookup";
        for (const char* key : {"alpha_t0", "alpha_t1"}) {
            EXPECT_EQ(row[key].is_number(), has_distribution);
            if (!has_distribution) continue;
            EXPECT_GE(row[key], 0.0);
            EXPECT_LE(row[key], 1.0 + 1e-6);
        }
    }
    const Json& model = tables["alpha"][4];
    EXPECT_EQ(model["drafter"], "model");
    EXPECT_GT(model["alpha_t1"], tables["alpha"][1]["alpha_t1"])
        << "a trained draft knows more than bigrams of 64 tokens";
    EXPECT_EQ(model["drafted_t0"], 1.0);

    for (const Json& row :
         tables["operations"]) { // the paper's own figures: α 0.8, γ 5 → 3.69 tokens, 1.63 times the operations
        if (row["alpha"] != 0.8 || row["gamma"] != 5.0) continue;
        EXPECT_NEAR(row["tokens_per_round"].get<double>(), 3.69, 0.005);
        EXPECT_NEAR(row["operations_free_draft"].get<double>(), 1.63, 0.005);
    }
    ASSERT_EQ(tables["improvement_t0"].size(), 10u);
    ASSERT_EQ(tables["tokens_per_round"].size(), 10u);
    for (size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(tables["improvement_t1"][i]["gamma"], i + 1);
        EXPECT_GT(tables["improvement_t0"][i]["measured"], 0.0);
        EXPECT_LE(tables["tokens_per_round"][i]["measured_t0"], static_cast<double>(i) + 2.0);
    }
    std::ifstream file(folder.file("speedup.svg"));
    const std::string svg(std::istreambuf_iterator<char>(file), {});
    EXPECT_TRUE(svg.starts_with("<svg")) << svg;
    EXPECT_EQ(count_of(svg, "<polyline"), 4u) << "measured and predicted, at two temperatures";
}

TEST(CliBenchStudies, NeverSlowerJudgesWhatItMeasured) {
    const Json study = run_cli_json({"bench", "--never-slower", "-n", "3", "-r", "1"});
    ASSERT_EQ(study["results"].size(), 2u * (8 + 4 + 4))
        << "temperatures; kinds of prompts with the pair and with two others";
    double least = 1e9, sum = 0.0;
    std::set<std::string> pairs, kinds;
    for (const Json& row : study["results"]) {
        least = std::min(least, row["auto_over_plain"].get<double>());
        sum += row["auto_over_best"].get<double>();
        pairs.insert(row["pair"]);
        kinds.insert(row["prompt"]);
        EXPECT_GE(row["best_per_second"], row["plain_per_second"]) << "plain is one of the fixed ways";
    }
    EXPECT_EQ(pairs, (std::set<std::string>{"the pair", "useless draft", "draft = target"}));
    EXPECT_EQ(kinds.size(), 8u);
    EXPECT_DOUBLE_EQ(study["least_over_plain"].get<double>(), least);
    EXPECT_NEAR(study["mean_over_best"].get<double>(), sum / static_cast<double>(study["results"].size()), 1e-9);
    EXPECT_EQ(study["holds"], least >= 0.97 && study["mean_over_best"] >= 0.95);
}

TEST(CliBenchStudies, Refusals) {
    expect_error({"bench", "--tables", "--never-slower"}, kUsage, "--never-slower");
    expect_error({"bench", "--never-slower", "-o", "csv"}, kUsage, "-o and --never-slower");
    expect_error({"bench", "--tables", "-o", "xml"}, kUsage, "-o xml: expected md|csv|json|jsonl");
    expect_error({"bench", "--tables", "--json", "-o", "csv"}, kUsage, "--json");
    for (const char* study : {"--tables", "--never-slower"})
        for (const Keys& flag : {Keys{"--drafter", "auto"}, {"--draft-len", "3"}, {"--temp", "1"}, {"--no-draft"}}) {
            Keys arguments = {"bench", study};
            arguments.insert(arguments.end(), flag.begin(), flag.end());
            expect_error(arguments, kUsage, std::string(study) + " and " + flag[0] + " exclude");
        }
    expect_error({"bench", "--tables", "--top-k", "4"}, kUsage, "--top-k");
    expect_error({"bench", "--never-slower", "--prompt", "a"}, kUsage, "--prompt");
    for (const char* study : {"--tables", "--never-slower"})
        for (const Keys& flag : {Keys{"-p", "8"}, {"-d", "8"}, {"--rows", "2"}, {"--stages"}, {"--peak", "1"}, {"--alpha", "0.5"}}) {
            Keys arguments = {"bench", study};
            arguments.insert(arguments.end(), flag.begin(), flag.end());
            expect_error(arguments, kUsage, "exclude");
        }
    expect_error({"bench", "--tables", "-n", "8,9"}, kUsage, "-n");
    expect_error({"bench", "--tables", "-m", kTarget}, kUsage, "--tables: expected a draft model too");
    expect_error({"bench", "--plot", ""}, kUsage, "--plot");
    expect_error({"bench", "--plot", "/nonexistent/a.svg"}, kFile, "/nonexistent/a.svg");
    expect_error({"bench", "--drafter", "ngram", "--plot", "a.svg"}, kUsage, "--plot");
}

} // namespace auspex::test::bench_studies_test
