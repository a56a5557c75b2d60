// Campaigns against a whole server with a backend that stands in for an engine: `ctest --preset long`.
#include "server_peers.h"

#include <fstream>
#include <malloc.h>
#include <random>

namespace auspex::test::server_long {
namespace {

// Clients that leave at any moment: queued, at the first event, in the middle, at the end.
TEST(ServerCampaign, TenThousandLeave) {
    ServedStandIn served;
    served.backend.slots = 8;
    served.backend.event_us = 500;
    std::mt19937 random(3);
    const auto pick = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    StreamClient good(served.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":4000)")));
    std::vector<std::unique_ptr<StreamClient>> clients;
    int n_left = 0;
    while (n_left < 10000) {
        while (clients.size() < 24) {
            const std::string members = std::string(pick(2) ? R"("stream":true,)" : "") + "\"n\":" + std::to_string(1 + pick(2)) + ",\"max_tokens\":" + std::to_string(pick(30));
            clients.push_back(std::make_unique<StreamClient>(served.port(), post_json("/v1/completions", completion(members))));
        }
        const size_t at = static_cast<size_t>(pick(static_cast<int>(clients.size())));
        if (pick(3) == 0) clients[at]->client.read_some(std::chrono::milliseconds(pick(20)));
        if (pick(2) == 0) clients[at]->client.reset();
        clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(at));
        ++n_left;
    }
    clients.clear();
    good.client.close();
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
    EXPECT_TRUE(wait_until([&] { return served.server.engine().snapshot()->load.n_running == 0; }));
    EXPECT_EQ(ask(served.port(), post_json("/v1/completions", completion(R"("n":1)"))).status, 200);
    EXPECT_NE(ask(served.port(), get("/metrics")).body.find("auspex_connections{state=\"streaming\"} 0\n"), std::string::npos);
}

double resident_kib() {
    malloc_trim(0);
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::stod(line.substr(6));
    return 0;
}

TEST(ServerCampaign, TenThousandLeaveNoMemoryBehind) {
    ServedStandIn served;
    const auto ask_many = [&](int n) {
        Client client(served.port());
        for (int i = 0; i < n; ++i) {
            const std::string members = std::string(i % 2 ? R"("stream":true,)" : "") + R"("max_tokens":20)";
            ASSERT_EQ(client.ask(post_json("/v1/completions", completion(members))).status, 200);
            if (i % 10 == 0) ask(served.port(), post_json("/v1/completions", completion(R"("top_p":7)")));
        }
    };
    ask_many(1000);
    const double before = resident_kib();
    ask_many(10000);
    const double more = resident_kib() - before;
    std::printf("%.0f KiB more after 10,000 requests\n", more);
    EXPECT_LT(more, 10000); // 1 KiB each
}

} // namespace
} // namespace auspex::test::server_long
