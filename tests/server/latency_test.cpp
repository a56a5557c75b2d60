// What the server adds to an event, from the backend's making it to its client's reading it, and how much memory connections take.
// Bounds are loose here, where other programs run; the figures are printed.
#include "server_peers.h"

#include <fstream>
#include <malloc.h>

namespace auspex::test::latency_test {
namespace {

double resident_mib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
    return 0;
}

TEST(ServerLatency, OfAnEvent) {
    ServedStandIn served;
    served.backend.event_us = 5000; // 200 events each second
    StreamClient stream(served.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":200)")));
    std::vector<Clock::time_point> read;
    while (read.size() < 200) {
        const std::string next = "\"w" + std::to_string(read.size()) + " \"";
        if (!stream.wait_for(next)) break;
        read.push_back(Clock::now());
    }
    const std::vector<Clock::time_point> told = served.backend.told_at();
    ASSERT_EQ(read.size(), 200u);
    ASSERT_EQ(told.size(), 200u);
    std::vector<double> added;
    for (size_t i = 0; i < read.size(); ++i)
        added.push_back(std::chrono::duration<double, std::milli>(read[i] - told[i]).count());
    std::sort(added.begin(), added.end());
    std::printf("added latency of an event: p50 %.3f ms, p99 %.3f ms, longest %.3f ms\n", added[100], added[197], added[199]);
    EXPECT_LT(added[100], 3);
}

TEST(ServerLatency, MemoryOfConnections) {
    Settings settings = quick_settings();
    settings.slots = 64;
    ServedStandIn served(settings);
    served.backend.slots = 64;
    served.backend.event_us = 20000;
    Client one(served.port());
    EXPECT_EQ(one.ask(get("/health")).status, 200);
    malloc_trim(0); // what earlier tests left would hide it
    const double before = resident_mib();
    std::vector<Client> idle;
    for (int i = 0; i < 2000; ++i) {
        idle.emplace_back(served.port());
        ASSERT_TRUE(idle.back().is_connected()) << i;
        idle.back().send(get("/health"));
    }
    for (Client& client : idle)
        EXPECT_EQ(client.read_reply().status, 200);
    std::vector<std::unique_ptr<StreamClient>> streams;
    for (int i = 0; i < 64; ++i)
        streams.push_back(std::make_unique<StreamClient>(served.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":4000)"))));
    for (auto& stream : streams)
        ASSERT_TRUE(stream->wait_for("w20 "));
    const double more = resident_mib() - before;
    std::printf("2,000 idle and 64 streaming connections: %.1f MiB more, their clients' own included\n", more);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(more, 200);
#endif
}

} // namespace
} // namespace auspex::test::latency_test
