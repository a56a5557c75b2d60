// Campaigns against a whole server with a backend that stands in for an engine: `ctest --preset long`.
#include "program.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <future>
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
    const std::string metrics = ask(served.port(), get("/metrics")).body;
    EXPECT_NE(metrics.find(R"(auspex_requests_total{endpoint="/v1/completions",result="length"} 11000)" "\n"), std::string::npos);
    EXPECT_NE(metrics.find(R"(auspex_requests_total{endpoint="/v1/completions",result="rejected"} 1100)" "\n"), std::string::npos);
}

// What a client sends who reads a byte when he is told to.
class ByteReader {
  public:
    ByteReader(uint16_t port, const std::string& request) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const int room = 4096;
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    }
    ~ByteReader() { ::close(fd_); }
    ByteReader(const ByteReader&) = delete;
    ByteReader& operator=(const ByteReader&) = delete;
    void read() {
        char byte;
        static_cast<void>(::recv(fd_, &byte, 1, MSG_DONTWAIT) == 1);
    }

  private:
    int fd_;
};

// 64 that read a byte each second beside 8 that read as it comes.
TEST(ServerCampaign, SlowReadersCostTheOthersNothing) {
    Settings settings = quick_settings();
    settings.slots = 80;
    settings.most_pause = 3000ms;
    ServedStandIn served(settings);
    served.backend.slots = 80;
    served.backend.padding = 8 << 10; // their sockets are full soon
    served.backend.event_us = 5000;
    constexpr int kGood = 8, kSlow = 64, kEvents = 1200;
    const auto good_seconds = [&](int n_events) { // of the slowest
        std::vector<std::future<double>> all;
        for (int i = 0; i < kGood; ++i)
            all.push_back(std::async(std::launch::async, [&] {
                const auto begin = Clock::now();
                StreamClient good(served.port(), post_json("/v1/completions", completion("\"stream\":true,\"max_tokens\":" + std::to_string(n_events))));
                const Reply reply = good.client.read_reply();
                EXPECT_TRUE(reply.is_whole && reply.status == 200);
                return std::chrono::duration<double>(Clock::now() - begin).count();
            }));
        double most = 0;
        for (auto& one : all)
            most = std::max(most, one.get());
        return most;
    };
    const double alone = good_seconds(kEvents / 3) * 3;
    std::vector<std::unique_ptr<ByteReader>> slow;
    for (int i = 0; i < kSlow; ++i)
        slow.push_back(std::make_unique<ByteReader>(served.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":4000)"))));
    std::atomic<bool> is_over = false;
    std::thread reader([&] {
        for (; !is_over; std::this_thread::sleep_for(1s))
            for (const auto& one : slow)
                one->read();
    });
    const double beside = good_seconds(kEvents);
    EXPECT_TRUE(wait_until([&] { return served.backend.n_abandoned == kSlow; }, 30s)) << served.backend.n_abandoned;
    EXPECT_GE(served.backend.n_parked, static_cast<size_t>(kSlow)) << "each was paused first";
    is_over = true;
    reader.join();
    std::printf("8 good readers: %.2f s alone, %.2f s beside 64 slow ones\n", alone, beside);
    EXPECT_LE(beside, alone / 0.9);
    slow.clear();
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
}

// With the real pair: a text that comes goes on while long prompts of others are read.
TEST(ServeCampaign, NobodyStarves) {
    Program program({"serve", "--port", "0", "-c", "1024", "--slots", "8", "--queue", "32", "--draft-len", "0"});
    const uint16_t port = program.port();
    ASSERT_NE(port, 0) << program.shown();
    const auto gaps = [&](StreamClient& stream, const std::function<bool()>& goes_on) { // ms between events, in order
        std::vector<double> all;
        auto last = Clock::now();
        while (goes_on() && stream.client.read_some(kPatience)) {
            const auto now = Clock::now();
            all.push_back(std::chrono::duration<double, std::milli>(now - last).count());
            last = now;
        }
        std::sort(all.begin(), all.end());
        return all;
    };
    const std::string story = post_json("/v1/completions", R"({"prompt":"Once upon a time","stream":true,"ignore_eos":true,"max_tokens":1000})");
    const auto quantile = [](const std::vector<double>& sorted, double q) { return sorted.empty() ? 1e9 : sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))]; };
    constexpr int kPromptTokens = 1000; // about as many as the pair's context has
    const auto read_prompt = [&](int i) { // seconds
        std::string prompt = "[" + std::to_string(100 + i); // no two begin alike
        for (int k = 1; k < kPromptTokens; ++k)
            prompt += "," + std::to_string(100 + (i * 31 + k * 7) % 1500);
        const auto begin = Clock::now();
        Client client(port);
        client.send(post_json("/v1/completions", "{\"max_tokens\":1,\"prompt\":" + prompt + "]}"));
        client.read_some(180s); // its turn comes when it comes
        const Reply reply = client.read_reply();
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_NE(reply.body.find("\"prompt_n\":" + std::to_string(kPromptTokens) + ","), std::string::npos) << reply.body;
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    const double one_prompt = 1e3 * std::min(read_prompt(20), read_prompt(21));
    double alone = 0;
    {
        StreamClient stream(port, story);
        ASSERT_TRUE(stream.wait_for("data: "));
        int n = 0;
        alone = quantile(gaps(stream, [&] { return ++n < 100; }), 0.99);
    }
    StreamClient stream(port, story);
    ASSERT_TRUE(stream.wait_for("data: "));
    std::atomic<int> n_answered = 0;
    std::vector<std::thread> others;
    for (int i = 0; i < 20; ++i)
        others.emplace_back([&, i] {
            read_prompt(i);
            ++n_answered;
        });
    const auto beside = gaps(stream, [&] { return n_answered < 20; });
    for (std::thread& other : others)
        other.join();
    std::printf("gaps of a stream: p99 %.1f ms alone; beside 20 prompts, of which one takes %.0f ms alone: p50 %.1f ms, p90 %.1f, p99 %.1f, most %.1f, of %zu\n", alone,
                one_prompt, quantile(beside, 0.5), quantile(beside, 0.9), quantile(beside, 0.99), quantile(beside, 1), beside.size());
    EXPECT_GE(beside.size(), 100u) << "it goes on all the time";
    // The engine's bound and a round, as well as times can be predicted; where other programs take the cores, times of prompts tell by how much.
    EXPECT_LE(quantile(beside, 0.99), std::max(2 * (50 + alone), one_prompt / 3));
}

} // namespace
} // namespace auspex::test::server_long
