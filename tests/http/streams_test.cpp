// Answers in pieces, and their readers.
#include "http_peers.h"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace auspex::test::streams_test {
namespace {

using http::Exchange;
using End = Client::End;

class HttpStreams : public testing::Test {
  protected:
    // A client that has asked, and its exchange.
    std::shared_ptr<Exchange> begin(Client& client, const std::string& request = get("/later")) {
        const size_t index = server_.held.size();
        client.send(request);
        auto exchange = server_.held.at(index);
        if (exchange) server_.run_there([&] { exchange->begin_stream({.content_type = "text/event-stream"}); });
        return exchange;
    }
    TestServer server_{{.write_time = 400ms}};
};

TEST_F(HttpStreams, WhatATaskWritesIsOneChunk) {
    Client client(server_);
    const auto exchange = begin(client);
    for (int i = 0; i < 3; ++i) {
        server_.run_there([&] {
            exchange->write("a");
            exchange->write("");
            exchange->write("bc");
        });
        EXPECT_TRUE(wait_until([&] { return exchange->n_unsent() == 0; }));
    }
    EXPECT_EQ(server_.server.counts().streaming, 1u);
    server_.run_there([&] {
        exchange->write(std::string(300, 'x'));
        exchange->end();
        exchange->write("too late");
        exchange->end();
        exchange->respond({});
    });
    Reply reply = client.read_reply();
    EXPECT_TRUE(reply.is_whole);
    EXPECT_TRUE(reply.has("Content-Type: text/event-stream"));
    EXPECT_EQ(reply.chunks, (std::vector<std::string>{"abc", "abc", "abc", std::string(300, 'x')}));
    EXPECT_EQ(client.ask(get("/next")).body, "GET /next "); // the connection goes on
    EXPECT_EQ(server_.server.counts().streaming, 0u);
    EXPECT_EQ(server_.held.n_gone, 0);
}

TEST_F(HttpStreams, OldClientsReadToTheEnd) {
    Client client(server_), cut(server_);
    const std::string request = "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    auto exchange = begin(client, request);
    server_.run_there([&] {
        exchange->write("one ");
        exchange->write("two");
        exchange->end();
    });
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.body, "one two");
    EXPECT_TRUE(reply.has("Connection: close"));
    EXPECT_TRUE(reply.is_whole);
    exchange = begin(cut, request);
    server_.run_there([&] {
        exchange->write("one ");
        exchange->abort();
    });
    EXPECT_FALSE(cut.read_reply().is_whole); // a reset
}

TEST_F(HttpStreams, HeadHasNone) {
    Client client(server_);
    const auto exchange = begin(client, "HEAD /later HTTP/1.1\r\nHost: a\r\n\r\n");
    server_.run_there([&] {
        exchange->write("piece");
        exchange->end();
    });
    EXPECT_EQ(client.read_reply(false).status, 200);
    EXPECT_EQ(client.ask(get("/next")).body, "GET /next ");
}

TEST_F(HttpStreams, AnAbortedOneShowsWhatWasWrittenAndNoEnd) {
    Client client(server_);
    const auto exchange = begin(client);
    server_.run_there([&] {
        exchange->write("data: {\"error\"}\n\n");
        exchange->abort();
    });
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.body, "data: {\"error\"}\n\n");
    EXPECT_FALSE(reply.is_whole);
    EXPECT_EQ(client.end(), End::closed);
    EXPECT_EQ(server_.held.n_gone, 0);
}

TEST_F(HttpStreams, LeavingIsSeenThoughNothingIsWritten) {
    for (int how = 0; how < 3; ++how) {
        Client client(server_);
        const auto exchange = begin(client);
        const auto start = Clock::now();
        if (how == 0) client.close();
        if (how == 1) client.half_close();
        if (how == 2) client.reset();
        EXPECT_TRUE(wait_until([&] { return server_.held.n_gone == how + 1; }));
        EXPECT_LT(Clock::now() - start, 5s);
        server_.run_there([&] {
            EXPECT_TRUE(exchange->is_gone());
            exchange->write("to nobody");
            exchange->end();
        });
        EXPECT_EQ(exchange->n_unsent(), 0u);
    }
    EXPECT_EQ(server_.held.n_gone, 3);
    EXPECT_EQ(server_.server.counts().streaming, 0u);
}

TEST(HttpStreamsOfPatience, ALeaverIsSeenWhileMuchIsUnsent) {
    TestServer server; // whose write_time is longer than this test
    Client client(server, 4096);
    client.send(get("/later"));
    const auto exchange = server.held.at(0);
    ASSERT_NE(exchange, nullptr);
    server.run_there([&] {
        exchange->begin_stream({});
        exchange->write(std::string(size_t{32} << 20, 'x'));
    });
    EXPECT_GT(exchange->n_unsent(), 0u);
    client.reset();
    EXPECT_TRUE(wait_until([&] { return exchange->is_gone(); }));
}

TEST_F(HttpStreams, AReaderThatTakesNothingIsGivenUp) {
    Client stands(server_, 4096), reads(server_);
    const auto stuck = begin(stands), fine = begin(reads);
    const auto start = Clock::now();
    server_.run_there([&] { stuck->write(std::string(size_t{32} << 20, 'x')); });
    const size_t unsent = stuck->n_unsent();
    EXPECT_GT(unsent, size_t{16} << 20);
    int n = 0;
    while (!stuck->is_gone() && Clock::now() - start < kPatience) { // others do not feel it
        server_.run_there([&] { fine->write("x"); });
        ASSERT_TRUE(wait_until([&] { return fine->n_unsent() == 0; }));
        ++n;
    }
    EXPECT_GT(n, 10);
    EXPECT_GE(Clock::now() - start, 400ms);
    EXPECT_EQ(server_.held.n_gone, 1);
    EXPECT_EQ(stuck->n_unsent(), 0u);
    server_.run_there([&] { fine->end(); });
    EXPECT_EQ(reads.read_reply().body.size(), static_cast<size_t>(n));
    while (stands.read_some()) {
    }
    stands.got_.clear();
    EXPECT_EQ(stands.end(), End::reset);
}

TEST_F(HttpStreams, AReaderThatTakesLittleIsNot) {
    Client slow(server_, 4096);
    const auto exchange = begin(slow);
    const size_t n = size_t{24} << 20;
    server_.run_there([&] {
        exchange->write(std::string(n, 'x'));
        exchange->end();
    });
    const auto start = Clock::now();
    while (Clock::now() - start < 600ms) { // longer than write_time
        ASSERT_TRUE(slow.read_some());
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(server_.held.n_gone, 0);
    EXPECT_EQ(slow.read_reply().body.size(), n);
    EXPECT_TRUE(wait_until([&] { return exchange->n_unsent() == 0; }));
}

// The promise is 200 MiB. Sanitizers have their own ideas of memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMostBytes = size_t{1} << 30;
#else
constexpr size_t kMostBytes = size_t{32} << 20;
#endif

// Bytes; 0: this system does not say.
size_t resident() {
    std::ifstream status("/proc/self/statm");
    size_t size = 0, pages = 0;
    status >> size >> pages;
    return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HttpMemory, IdleConnectionsHoldNone) {
    constexpr size_t n_idle = 2000, n_streaming = 64, n_files = 2 * (n_idle + n_streaming) + 200; // both ends are here
    rlimit limit;
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_GE(limit.rlim_max, n_files) << "files that a process may open: raise the hard limit (ulimit -Hn)";
    limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, n_files);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);

    TestServer server({.connections_per_address = 10000});
    std::vector<Client> clients;
    clients.reserve(n_idle + n_streaming);
    clients.emplace_back(server);
    EXPECT_EQ(clients.back().ask(get("/")).status, 200);
    const size_t before = resident();
    for (size_t i = 1; i < n_idle; ++i) {
        clients.emplace_back(server);
        clients.back().send(post("/", std::string(8000, 'x')));
    }
    for (Client& client : clients) // all have had a request and an answer
        if (&client != &clients.front()) {
            ASSERT_EQ(client.read_reply().status, 200);
        }
    for (size_t i = 0; i < n_streaming; ++i) {
        clients.emplace_back(server);
        clients.back().send(get("/later"));
        ASSERT_NE(server.held.at(i), nullptr);
    }
    server.run_there([&] {
        for (size_t i = 0; i < n_streaming; ++i) {
            server.held.at(i)->begin_stream({});
            server.held.at(i)->write(std::string(1000, 'x'));
        }
    });
    EXPECT_EQ(server.server.counts().open, n_idle + n_streaming);
    EXPECT_EQ(server.server.counts().streaming, n_streaming);
    const size_t more = resident() - std::min(before, resident());
    if (std::getenv("AUSPEX_HTTP_SHOW")) std::printf("%zu bytes more\n", more);
    EXPECT_LT(more, kMostBytes); // with what the clients here take
}

} // namespace
} // namespace auspex::test::streams_test
