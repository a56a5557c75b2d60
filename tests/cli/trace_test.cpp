// auspex run --trace: a file that Perfetto reads, whose turns and stages fit each other and what the run's summary
// says.
#include "cli/cli_process.h"
#include "model/file_fixtures.h"

#include <csignal>
#include <fstream>
#include <map>
#include <set>

namespace auspex::test::trace_test {

namespace {

struct Event {
    std::string name;
    double begin_us, end_us;
    Json arguments;
};

// Of the three tracks, by name.
std::map<std::string, std::vector<Event>> read_trace(const std::string& path) {
    std::ifstream file(path);
    const Json trace = Json::parse(file, nullptr, false);
    EXPECT_FALSE(trace.is_discarded()) << path << " is no JSON";
    std::map<std::string, std::vector<Event>> tracks;
    if (trace.is_discarded()) return tracks;
    std::map<int, std::string> names;
    for (const Json& event : trace["traceEvents"]) {
        const int track = event["tid"].get<int>();
        EXPECT_EQ(event["pid"].get<int>(), 1);
        if (event["ph"] == "M") {
            if (event["name"] == "thread_name") tracks[names[track] = event["args"]["name"]] = {};
            continue;
        }
        EXPECT_EQ(event["ph"], "X");
        const double begin = event["ts"].get<double>(), duration = event["dur"].get<double>();
        EXPECT_GE(duration, 0.0);
        tracks[names.at(track)].push_back({event["name"], begin, begin + duration, event["args"]});
    }
    return tracks;
}

constexpr double kToleranceUs = 1.0;

// Events of one track follow one another.
void expect_apart(const std::vector<Event>& events) {
    for (size_t i = 1; i < events.size(); ++i)
        EXPECT_GE(events[i].begin_us, events[i - 1].end_us - kToleranceUs)
            << events[i - 1].name << " and " << events[i].name << ", event " << i;
}

double sum_ms(const std::vector<Event>& events, const std::string& name) {
    double sum = 0.0;
    for (const Event& event : events)
        if (event.name == name) sum += (event.end_us - event.begin_us) * 1e-3;
    return sum;
}

} // namespace

TEST(CliTrace, HoldsTheRoundsOfTheSummary) {
    TempFolder folder;
    const std::string path = folder.file("trace.json");
    const Json run = run_cli_json({"run", "-n", "60", "--draft-len", "4", "--no-stop", "-s", "1", "--trace", path});
    auto tracks = read_trace(path);
    ASSERT_EQ(tracks.size(), 3u);
    const std::vector<Event>&rounds = tracks["GPU rounds"], &stages = tracks["GPU stages"], &host = tracks["host"];
    expect_apart(rounds);
    expect_apart(stages);
    expect_apart(host);

    std::map<uint64_t, const Event*> turns;
    std::set<std::string> drafters;
    uint64_t n_rounds = 0, n_accepted = 0, n_tokens = 0, n_prefills = 0;
    for (const Event& turn : rounds) {
        turns[turn.arguments["turn"].get<uint64_t>()] = &turn;
        n_prefills += turn.name == "prefill" ? 1 : 0;
        if (turn.name != "round") continue;
        EXPECT_LE(turn.arguments["draft_len"].get<uint32_t>(), 4u);
        EXPECT_EQ(turn.arguments["batch"].get<uint32_t>(), 1u);
        const auto tokens = turn.arguments["tokens"].get<uint64_t>();
        if (tokens == 0) continue; // queued before the end was read
        drafters.insert(turn.arguments["drafter"]);
        n_rounds += 1;
        n_tokens += tokens;
        n_accepted += turn.arguments["accepted"].get<uint64_t>();
    }
    EXPECT_EQ(turns.size(), rounds.size()) << "a turn is told once";
    EXPECT_GE(n_prefills, 1u);
    EXPECT_TRUE(drafters.contains("model") || drafters.contains("ngram")) << "somebody drafted";
    EXPECT_FALSE(drafters.contains("mixed")) << "one sequence";
    EXPECT_EQ(n_rounds, run["speculation"]["rounds"].get<uint64_t>());
    EXPECT_EQ(n_tokens, run["timings"]["predicted_n"].get<uint64_t>());
    EXPECT_EQ(n_accepted, run["timings"]["draft_n_accepted"].get<uint64_t>());

    std::map<const Event*, double> stages_us;
    for (const Event& stage : stages) {
        const Event* turn = turns.at(stage.arguments["turn"].get<uint64_t>());
        EXPECT_GE(stage.begin_us, turn->begin_us - kToleranceUs) << stage.name;
        EXPECT_LE(stage.end_us, turn->end_us + kToleranceUs) << stage.name;
        stages_us[turn] += stage.end_us - stage.begin_us;
    }
    ASSERT_FALSE(stages.empty());
    EXPECT_EQ(stages_us.size(), rounds.size()) << "every turn has stages";
    for (const auto& [turn, us] : stages_us)
        EXPECT_LE(us, turn->end_us - turn->begin_us + kToleranceUs) << turn->name;
    for (const char* stage : {"draft", "verify", "accept"}) {
        const double expected = run["speculation"][std::string(stage) + "_ms"].get<double>();
        EXPECT_NEAR(sum_ms(stages, stage), expected, 0.001 * static_cast<double>(stages.size())) << stage;
    }
    // The GPU worked while the host stepped or waited, not before and not after.
    ASSERT_FALSE(host.empty());
    EXPECT_GE(rounds.front().begin_us, host.front().begin_us - kToleranceUs);
    EXPECT_LE(rounds.back().end_us, host.back().end_us + kToleranceUs);
}

TEST(CliTrace, TellsForksAndBatches) {
    TempFolder folder;
    const std::string path = folder.file("trace.json");
    run_cli_json({"run", "-n", "8", "--temp", "1", "--samples", "3", "-s", "1", "--trace", path});
    const auto rounds = read_trace(path)["GPU rounds"];
    expect_apart(rounds);
    size_t n_forks = 0, n_batches = 0;
    for (const Event& turn : rounds) {
        n_forks += turn.name == "fork" ? 1 : 0;
        n_batches += turn.name == "round" && turn.arguments["batch"].get<uint32_t>() == 3 ? 1 : 0;
    }
    EXPECT_GE(n_forks, 1u);
    EXPECT_GE(n_batches, 1u);
}

TEST(CliTrace, IsWholeAfterAnInterruptAndAnError) {
    TempFolder folder;
    const std::string path = folder.file("trace.json");
    const CliResult interrupted = run_cli({"run", "-n", "3000", "--no-stop", "--trace", path}, {.n_interrupts = 1});
    EXPECT_EQ(interrupted.exit_code, kInterrupted) << interrupted.err;
    EXPECT_FALSE(read_trace(path)["GPU rounds"].empty());

    run_cli({"run", "-n", "3000", "--no-stop", "--trace", path}, {.n_interrupts = 2}); // ended at once
    EXPECT_EQ(read_trace(path).size(), 3u);

    const CliResult too_long =
        run_cli({"run", "-c", "8", "-p", "Once upon a time there was a curious fox.", "--trace", path});
    EXPECT_EQ(too_long.exit_code, kCapacity);
    EXPECT_EQ(read_trace(path).size(), 3u);
}

TEST(CliTrace, NeedsAFile) {
    TempFolder folder;
    expect_error({"run", "--trace", folder.path()}, kFile, folder.path());
    expect_error({"run", "--trace", folder.file("none/trace.json")}, kFile, "none/trace.json");
}

} // namespace auspex::test::trace_test
