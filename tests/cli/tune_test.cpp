// auspex tune: what it prints and keeps, and that info and run then know of it.
#include "cli/cli_process.h"

#include <filesystem>
#include <unistd.h>

namespace auspex::test::tune_test {

namespace {

// Removed at the end.
struct CacheFolder {
    std::string path = (std::filesystem::temp_directory_path() / ("auspex_tune_cli_" + std::to_string(getpid()))).string();
    CacheFolder() { EXPECT_TRUE(std::filesystem::create_directory(path)); }
    ~CacheFolder() { std::filesystem::remove_all(path); }
    CliSetting setting() const { return {.environment = {{"XDG_CACHE_HOME", path.c_str()}}}; }
};

} // namespace

TEST(CliTune, MeasuresAndKeeps) {
    const CacheFolder cache;
    const CliResult before = run_cli({"info", "-m", kDraft}, cache.setting());
    EXPECT_NE(before.out.find("not compared yet"), std::string::npos) << before.out;

    const CliResult result = run_cli({"tune", "-m", kDraft, "--json"}, cache.setting());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const Json tune = Json::parse(result.out);
    EXPECT_EQ(keys_of(tune), (std::vector<std::string>{"schema", "tuning", "complete", "candidates"}));
    EXPECT_EQ(tune["tuning"]["rows_agree"], true);
    EXPECT_EQ(tune["tuning"]["kept"], true);
    for (const Json& candidate : tune["candidates"])
        EXPECT_EQ(keys_of(candidate), (std::vector<std::string>{"knob", "candidate", "ms", "default", "chosen"}));

    const Json info = Json::parse(run_cli({"info", "-m", kDraft, "--json"}, cache.setting()).out);
    EXPECT_EQ(info["tuning"]["sizes"], tune["tuning"]["sizes"]);
    EXPECT_EQ(info["tuning"]["timed"], tune["tuning"]["timed"]);
    const CliResult listing = run_cli({"info", "-m", kDraft}, cache.setting());
    EXPECT_NE(listing.out.find("bit by bit the same"), std::string::npos) << listing.out;
}

// What is kept belongs to types and widths, whatever the weights are.
TEST(CliTune, AShapeStandsForTheModelsThatHaveIt) {
    const CacheFolder cache;
    const CliResult tune = run_cli({"tune", "--shape", "d=128,L=1,ffn=384,heads=2,kv_heads=1,head_dim=64,vocab=512,dtype=bf16", "--json"}, cache.setting());
    ASSERT_EQ(tune.exit_code, 0) << tune.err;
    EXPECT_EQ(Json::parse(tune.out)["tuning"]["kept"], true);
    const Json info = Json::parse(run_cli({"info", "-m", kDraft, "--json"}, cache.setting()).out);
    EXPECT_EQ(info["tuning"]["timed"], true);
    EXPECT_EQ(info["tuning"]["rows_agree"], true);
}

TEST(CliTune, SaysWhatIsWrong) {
    expect_error({"tune", "-m", "/nonexistent/model"}, kFile, "/nonexistent/model");
    expect_error({"tune", "--device", "nosuchdevice"}, kDevice, "nosuchdevice");
    expect_error({"tune", "--temp", "1"}, kUsage, "--temp");
    expect_error({"tune", "--shape", "d=64"}, kUsage, "--shape d=64");
    expect_error({"tune", "--shape", "llama-3.2-1b", "-m", kDraft}, kUsage, "exclude each other");
}

} // namespace auspex::test::tune_test
