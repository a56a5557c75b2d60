// A target with control tokens that its draft lacks, as a user meets it: the same text with and without the draft, biases and bans of
// such ids, and a selftest that looks at them.
#include "cli/cli_process.h"
#include "model/bpe_folder.h"

namespace auspex::test::vocabularies_test {

class CliVocabularies : public ::testing::Test {
  protected:
    static constexpr uint32_t kTool = kBpeTokens, kEnd = kBpeTokens + 1;
    void SetUp() override {
        write_bpe_model(target_, 1, {"<|tool|>", "<|im_end|>"}, 5);
        write_bpe_model(draft_, 1, {}, 2);
    }
    Json run(std::vector<std::string> arguments, bool with_draft) {
        std::vector<std::string> all = {"run", "-m", target_.path(), "--tokens", "1,838,7", "-n", "24"};
        if (with_draft) all.insert(all.end(), {"-md", draft_.path(), "--draft-len", "4", "--drafter", "model"});
        all.insert(all.end(), arguments.begin(), arguments.end());
        return run_cli_json(all);
    }
    static std::vector<uint32_t> tokens_of(const Json& run) { return run["completions"][0]["tokens"].get<std::vector<uint32_t>>(); }

    TempFolder target_, draft_;
};

TEST_F(CliVocabularies, TextsBiasesAndBansAreTheTargets) {
    for (const std::vector<std::string>& asked : std::vector<std::vector<std::string>>{
             {"--no-stop"}, {"--no-stop", "--logit-bias", "838+4"}, {"--no-stop", "--temp", "1", "-s", "3", "--acceptance", "coupled", "--logit-bias", "838+4"},
             {"--no-stop", "--logit-bias", "838+1000", "--ban", "839"}, {"--logit-bias", "839+1000"}}) {
        const Json alone = run(asked, false), pair = run(asked, true);
        EXPECT_EQ(tokens_of(pair), tokens_of(alone)) << asked.back();
        EXPECT_EQ(pair["completions"][0]["stop_reason"], alone["completions"][0]["stop_reason"]);
        EXPECT_TRUE(pair["speculation"]["lossless"].get<bool>());
    }
    EXPECT_EQ(tokens_of(run({"--no-stop", "--logit-bias", "838+1000"}, true)), std::vector<uint32_t>(24, kTool));
    EXPECT_EQ(tokens_of(run({"--logit-bias", "839+1000"}, true)), std::vector<uint32_t>{kEnd});
}

TEST_F(CliVocabularies, SelftestLooksAtThem) {
    const Json selftest = run_cli_json({"selftest", "-m", target_.path(), "-md", draft_.path()});
    EXPECT_TRUE(selftest["passed"].get<bool>()) << selftest.dump();
    const Json& last = selftest["checks"].back();
    EXPECT_EQ(last["name"], "pair-vocabulary");
    EXPECT_GT(last["measured"]["lacking_n"].get<double>(), 0.0);
    EXPECT_EQ(last["measured"]["different"].get<double>(), 0.0);
}

} // namespace auspex::test::vocabularies_test
