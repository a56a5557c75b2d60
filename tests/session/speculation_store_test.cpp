// The file of what was learnt about speculation: keeps it, and may hold anything.
#include "session/speculation/speculation_store.h"
#include "session/speculation_beds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace auspex::speculation_store_test {
namespace {

using simulated::Bed;
using simulated::beds;
using simulated::Decoded;
using simulated::Engine;
using simulated::Machine;
using simulated::text_of;

struct SpeculationStoreTest : testing::Test {
    std::filesystem::path folder = std::filesystem::temp_directory_path() / ("auspex_speculation_" + std::to_string(entropy_seed()));
    std::vector<std::string> log_lines;
    Logger log{[this](LogLevel, std::string_view line) { log_lines.emplace_back(line); }};
    SpeculationKey key{"device", "driver 1", "target \"a\" \xff", "draft", "f16"};

    static uint64_t entropy_seed() { return std::random_device{}(); }
    void SetUp() override { std::filesystem::create_directories(folder); }
    void TearDown() override { std::filesystem::remove_all(folder); }
    void write(const std::string& text) { std::ofstream(folder / "speculation.json", std::ios::binary) << text; }
    std::string read() {
        std::ifstream file(folder / "speculation.json", std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    // The file of an engine that gave a text.
    std::string saved(Engine& engine, const Bed& bed) {
        Machine(bed.device, 3).decode(engine, text_of(0.8), 300, {});
        SpeculationStore(folder.string()).save(key, engine.costs, engine.long_run, log);
        return read();
    }
};

TEST_F(SpeculationStoreTest, RoundTrip) {
    const Bed bed = beds()[1];
    Engine engine(bed.prior), again(bed.prior), other(bed.prior);
    Machine(bed.device, 3).decode(engine, text_of(0.8), 600, {});
    const SpeculationStore store(folder.string());
    EXPECT_FALSE(store.load(key, again.costs, again.long_run, log));
    store.save(key, engine.costs, engine.long_run, log);
    SpeculationKey newer = key;
    newer.driver = "driver 2";
    EXPECT_FALSE(store.load(newer, other.costs, other.long_run, log));
    store.save(newer, engine.costs, engine.long_run, log);
    ASSERT_TRUE(store.load(key, again.costs, again.long_run, log));
    EXPECT_TRUE(log_lines.empty());
    EXPECT_TRUE(again.costs.is_calibrated());
    EXPECT_NEAR(again.costs.c(), engine.costs.c(), 1e-9);
    for (uint32_t rows = 1; rows <= 9; ++rows) EXPECT_NEAR(again.costs.v(rows), engine.costs.v(rows), 1e-9);
    EXPECT_NEAR(again.long_run.alpha(DraftClass::model), engine.long_run.alpha(DraftClass::model), 1e-9);
    for (const auto& file : std::filesystem::directory_iterator(folder)) EXPECT_EQ(file.path().filename(), "speculation.json");
    // A stored pair drafts at once.
    const Decoded run = Machine(bed.device, 4).decode(again, text_of(0.8), 50, {});
    EXPECT_GT(run.choices[0].draft_len, 0u);
}

TEST_F(SpeculationStoreTest, KeepsABoundedNumberOfPairs) {
    Engine engine(beds()[1].prior);
    Machine(beds()[1].device, 3).decode(engine, text_of(0.8), 100, {});
    const SpeculationStore store(folder.string());
    for (int i = 0; i < 40; ++i) {
        key.draft = "draft " + std::to_string(i);
        store.save(key, engine.costs, engine.long_run, log);
    }
    EXPECT_TRUE(store.load(key, engine.costs, engine.long_run, log));
    key.draft = "draft 0";
    EXPECT_FALSE(store.load(key, engine.costs, engine.long_run, log));
    EXPECT_LE(read().size(), 256u << 10);
    EXPECT_TRUE(log_lines.empty()) << log_lines.front();
}

TEST_F(SpeculationStoreTest, HostileFilesAreLeftBehind) {
    const Bed bed = beds()[1];
    Engine engine(bed.prior);
    const SpeculationStore store(folder.string());
    const std::string good = saved(engine, bed);
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return text.replace(at, from.size(), to);
    };
    const size_t costs_at = good.find("\"costs\":[[") + 10;
    const std::string first = good.substr(costs_at, good.find(']', costs_at) - costs_at);
    const std::vector<std::string> hostile = {
        "", "{", "[]", "null", std::string(1000, '['), good.substr(0, good.size() / 2), std::string(300 << 10, ' ') + good,
        with("\"format\":1", "\"format\":2"), with("\"acceptance\":[[", "\"acceptance\":[[1e9,"), with("\"savings\":", "\"savings\":-1,\"x\":"),
        with("\"recent\":[[", "\"recent\":[[1e9,"), with("\"recent\":[", "\"recent\":[[],"), with("\"recent\":", "\"recent\":7,\"x\":"),
        with("\"savings\":", "\"savings\":1e300,\"x\":"), with(first, "0,0,1e308,0.1"), with(first, "0,0,-1,0.1"), with(first, "99,1,1,0.1"),
        with(first, "1,4294967295,1,0.1"), with(first, "1,2.5,1,0.1"), with(first, "1,0,1,0.1"), with(first, "1,2,\"x\",0.1"),
        with(first, "1,2,1"), with(first, "1,2,1,null"), with("\"entries\":[", "\"entries\":[1,null,[],"), std::string("{\"a\":\0}", 7)};
    for (const std::string& text : hostile) {
        write(text);
        log_lines.clear();
        CostModel costs(bed.prior);
        LongRun long_run;
        const double before = costs.round_ms({.model = true, .draft_len = 3});
        if (store.load(key, costs, long_run, log)) {
            EXPECT_NE(text.find("[1,null,[],"), std::string::npos) << "taken: " << text.substr(0, 200);
            continue; // strange neighbours are none of our business
        }
        EXPECT_EQ(log_lines.size(), 1u) << text.substr(0, 200);
        EXPECT_EQ(costs.round_ms({.model = true, .draft_len = 3}), before);
        EXPECT_EQ(long_run.counts(DraftClass::model).tested, 0);
        store.save(key, engine.costs, engine.long_run, log); // it is replaced by a sound one
        EXPECT_TRUE(store.load(key, costs, long_run, log));
    }
}

// What an earlier version wrote still counts, and what only that one knew does not, whatever it is.
TEST_F(SpeculationStoreTest, AnEntryWithKeysOfAnEarlierVersionIsTaken) {
    const Bed bed = beds()[1];
    Engine engine(bed.prior);
    std::string text = saved(engine, bed);
    const size_t at = text.find("\"savings\"");
    ASSERT_NE(at, std::string::npos);
    write(text.insert(at, "\"tokens\":[7000,150],\"compiled\":[[1,0,2,1,0],[2,0,0,-1,7]],\"compiling\":12.5,\"set_up\":null,"));
    CostModel costs(bed.prior);
    LongRun long_run;
    EXPECT_TRUE(SpeculationStore(folder.string()).load(key, costs, long_run, log));
    EXPECT_TRUE(log_lines.empty());
    EXPECT_EQ(long_run.counts(DraftClass::model).tested, engine.long_run.counts(DraftClass::model).tested);
}

// What was learnt before the last texts were kept apart still counts.
TEST_F(SpeculationStoreTest, AnEntryWithoutTheLastTextsIsTaken) {
    const Bed bed = beds()[1];
    Engine engine(bed.prior);
    std::string text = saved(engine, bed);
    const size_t at = text.find("\"recent\"");
    ASSERT_NE(at, std::string::npos);
    write(text.replace(at, 8, "\"x\""));
    CostModel costs(bed.prior);
    LongRun long_run;
    EXPECT_TRUE(SpeculationStore(folder.string()).load(key, costs, long_run, log));
    EXPECT_TRUE(log_lines.empty());
    EXPECT_EQ(long_run.counts(DraftClass::model).tested, engine.long_run.counts(DraftClass::model).tested);
    EXPECT_EQ(long_run.recent(DraftClass::model).tested, 0);
}

TEST_F(SpeculationStoreTest, NoFolderKeepsNothing) {
    Engine engine(beds()[1].prior);
    SpeculationStore("").save(key, engine.costs, engine.long_run, log);
    EXPECT_FALSE(SpeculationStore("").load(key, engine.costs, engine.long_run, log));
    Machine(beds()[1].device, 3).decode(engine, text_of(0.8), 50, {});
    SpeculationStore((folder / "absent").string()).save(key, engine.costs, engine.long_run, log);
    EXPECT_EQ(log_lines.size(), 1u);
}

} // namespace
} // namespace auspex::speculation_store_test
