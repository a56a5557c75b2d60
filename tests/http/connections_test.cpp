// Clients that leave, that are slow, that are too many; and how a server begins and ends.
#include "http_peers.h"
#include "temp_folder.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>

namespace auspex::test::connections_test {
namespace {

using http::BindError;
using http::Exchange;
using http::Limits;
using http::Response;
using http::Server;
using End = Client::End;

// Half of a POST, and its last byte.
const std::string half_of_a_post = post("/", "bo").substr(0, post("/", "bo").size() - 1), other_half = "o";

// ---- leaving -----------------------------------------------------------------------------------------------
enum class Leaving { close, half_close, reset };

void leave(Client& client, Leaving how) {
    if (how == Leaving::close) client.close();
    if (how == Leaving::half_close) client.half_close();
    if (how == Leaving::reset) client.reset();
}

// Of the server's sockets; 8 is CLOSE_WAIT. -1: this system does not say.
int n_sockets_in_state(uint16_t port, int state) {
    std::ifstream table("/proc/net/tcp");
    if (!table) return -1;
    int n = 0;
    char address[16];
    std::snprintf(address, sizeof address, ":%04X", port);
    for (std::string line; std::getline(table, line);) {
        int found = 0;
        char local[64] = {};
        if (std::sscanf(line.c_str(), " %*d: %63s %*s %x", local, reinterpret_cast<unsigned*>(&found)) == 2 &&
            std::string(local).ends_with(address) && found == state)
            ++n;
    }
    return n;
}

TEST(HttpLeaving, IsSeenWhileAWholeAnswerIsAwaited) {
    TestServer server;
    for (const Leaving how : {Leaving::close, Leaving::half_close, Leaving::reset}) {
        const int n_before = server.held.n_gone;
        const size_t index = server.held.size();
        Client client(server);
        client.send(get("/later"));
        const auto exchange = server.held.at(index);
        ASSERT_NE(exchange, nullptr);
        EXPECT_FALSE(exchange->is_gone());
        const auto begin = Clock::now();
        leave(client, how);
        EXPECT_TRUE(wait_until([&] { return exchange->is_gone() && server.held.n_gone > n_before; }));
        EXPECT_LT(Clock::now() - begin, 5s); // not by a deadline
        EXPECT_EQ(server.held.n_gone, n_before + 1);
        server.respond(exchange, "nobody reads this");
        if (how == Leaving::half_close) {
            EXPECT_EQ(client.end(), End::closed);
        }
    }
    EXPECT_TRUE(wait_until([&] { return server.server.counts().open == 0; }));
    EXPECT_LE(n_sockets_in_state(server.server.port(), 8), 0);
}

TEST(HttpLeaving, IsSeenBehindPipelinedRequests) {
    TestServer server;
    for (const size_t n_bytes : {100u, 4000u}) { // below what is read ahead
        const size_t index = server.held.size();
        Client client(server);
        client.send(get("/later") + "GET /" + std::string(n_bytes, 'x'));
        ASSERT_NE(server.held.at(index), nullptr);
        client.close();
        EXPECT_TRUE(wait_until([&] { return server.held.at(index)->is_gone(); }));
    }
    Client client(server); // beyond: a reset is still seen
    client.send(get("/later") + "GET /" + std::string(14000, 'x'));
    ASSERT_NE(server.held.at(2), nullptr);
    std::this_thread::sleep_for(20ms);
    client.reset();
    EXPECT_TRUE(wait_until([&] { return server.held.n_gone == 3; }));
}

TEST(HttpLeaving, IsNobodysConcernAfterTheAnswer) {
    TestServer server;
    Client client(server);
    client.send(get("/later"));
    const auto exchange = server.held.at(0);
    server.respond(exchange, "all");
    EXPECT_EQ(client.read_reply().body, "all");
    client.close();
    EXPECT_TRUE(wait_until([&] { return server.server.counts().open == 0; }));
    EXPECT_EQ(server.held.n_gone, 0);
    EXPECT_FALSE(exchange->is_gone());
    EXPECT_EQ(exchange->n_unsent(), 0u);
}

TEST(HttpLeaving, AmidARequestOrBeforeOneIsNoRequest) {
    TestServer server;
    for (const std::string& begun : {std::string(), std::string("GET / HT"), half_of_a_post})
        for (const Leaving how : {Leaving::close, Leaving::half_close, Leaving::reset}) {
            Client client(server);
            client.send(begun);
            leave(client, how);
            if (how == Leaving::half_close) {
                EXPECT_EQ(client.end(), End::closed);
            }
        }
    EXPECT_TRUE(wait_until([&] { return server.server.counts().accepted == 9 && server.server.counts().open == 0; }));
    EXPECT_EQ(server.n_handled, 0);
    EXPECT_LE(n_sockets_in_state(server.server.port(), 8), 0);
}

// ---- deadlines ---------------------------------------------------------------------------------------------
TEST(HttpDeadlines, OfAHead) {
    TestServer server({.header_time = 100ms});
    Client silent(server), slow(server);
    const auto begin = Clock::now();
    slow.send("GET /");
    std::atomic<bool> is_answered = false;
    std::thread trickle([&] { // bytes that come do not help it
        while (!is_answered && slow.send("x") == 1)
            std::this_thread::sleep_for(15ms);
    });
    EXPECT_EQ(slow.read_reply().status, 408);
    is_answered = true;
    EXPECT_GE(Clock::now() - begin, 100ms);
    EXPECT_EQ(silent.ask(get("/")).status, 200); // had not begun
    trickle.join();
    EXPECT_NE(slow.end(), End::open);
}

TEST(HttpDeadlines, OfABody) {
    TestServer server({.header_time = 300ms, .body_time = 300ms});
    Client moves(server), stands(server);
    stands.send(half_of_a_post);
    moves.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    for (int i = 0; i < 10; ++i) { // longer than the limit altogether
        std::this_thread::sleep_for(40ms);
        moves.send("x");
    }
    EXPECT_EQ(moves.read_reply().status, 200);
    EXPECT_EQ(stands.read_reply().status, 408);
    EXPECT_EQ(stands.end(), End::closed);
}

TEST(HttpDeadlines, BetweenRequests) {
    TestServer server({.keep_alive_time = 100ms});
    Client silent(server), asked(server), answering(server);
    answering.send(get("/later"));
    EXPECT_EQ(asked.ask(get("/")).status, 200);
    EXPECT_EQ(asked.end(), End::closed); // without a word
    EXPECT_EQ(silent.end(), End::closed);
    EXPECT_FALSE(answering.read_some(50ms)); // may take as long as it takes
    server.respond(server.held.at(0), "at last");
    EXPECT_EQ(answering.read_reply().body, "at last");
}

// ---- caps --------------------------------------------------------------------------------------------------
void expect_refused(Client& client) {
    const Reply reply = client.ask(get("/"));
    EXPECT_EQ(reply.status, 503);
    EXPECT_TRUE(reply.has("Retry-After: 1"));
    EXPECT_EQ(client.end(), End::closed);
}

TEST(HttpCaps, OfConnections) {
    for (const bool by_address : {false, true}) {
        TestServer server({.connections = by_address ? 100u : 3u, .connections_per_address = by_address ? 3u : 100u});
        std::vector<Client> clients;
        for (int i = 0; i < 3; ++i) {
            clients.emplace_back(server);
            EXPECT_EQ(clients.back().ask(get("/")).status, 200);
        }
        for (int i = 0; i < 5; ++i) {
            Client refused(server);
            expect_refused(refused);
        }
        EXPECT_EQ(server.server.counts().accepted, 8u);
        EXPECT_EQ(server.server.counts().refused, 5u);
        EXPECT_EQ(server.server.counts().open, 3u);
        clients.pop_back();
        EXPECT_TRUE(wait_until([&] { return server.server.counts().open == 2; }));
        EXPECT_EQ(Client(server).ask(get("/")).status, 200);
    }
}

TEST(HttpCaps, TooManyRefusedOnesAreClosedAtOnce) {
    TestServer server({.connections = 0});
    std::vector<Client> clients;
    for (int i = 0; i < 200; ++i)
        clients.emplace_back(server);
    EXPECT_TRUE(wait_until([&] { return server.server.counts().refused == 200; }));
    int n_told = 0;
    for (Client& client : clients)
        n_told += client.read_reply().status == 503;
    EXPECT_GE(n_told, 64);
    EXPECT_EQ(server.server.counts().open, 0u);
}

TEST(HttpCaps, FileDescriptorsRunOut) {
    TestServer server;
    Client first(server), second(std::move(first)), waiting(server);
    EXPECT_EQ(second.ask(get("/")).status, 200);
    EXPECT_EQ(waiting.ask(get("/")).status, 200);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rlimit limit;
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit low{static_cast<rlim_t>(fd) + 1, limit.rlim_max};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::setrlimit(RLIMIT_NOFILE, &low);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::clock_t before = std::clock();
    EXPECT_EQ(second.ask(get("/")).status, 200); // who is in is served
    std::this_thread::sleep_for(250ms);
    EXPECT_LT(double(std::clock() - before) / CLOCKS_PER_SEC, 0.1); // and nothing spins
    EXPECT_EQ(server.server.counts().accepted, 2u);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_TRUE(wait_until([&] { return server.server.counts().accepted == 3; }));
    ::close(fd);
}

// ---- addresses ---------------------------------------------------------------------------------------------
TEST(HttpAddresses, ATakenPortIsSaid) {
    TestServer server;
    EXPECT_EQ(server.server.url(), "http://127.0.0.1:" + std::to_string(server.server.port()));
    const std::string taken = "127.0.0.1:" + std::to_string(server.server.port());
    try {
        Server second({.port = server.server.port()}, {});
        FAIL();
    } catch (const BindError& error) {
        EXPECT_NE(std::string(error.what()).find(taken), std::string::npos) << error.what();
    }
    EXPECT_THROW(Server({.host = "no.such.host.invalid", .port = 0}, {}), BindError);
    EXPECT_THROW(Server({.host = "192.0.2.1", .port = 0}, {}), BindError);
    const uint16_t port = server.server.port();
    Client(server).ask(get("/", "Connection: close\r\n"));
    server.stop();
    EXPECT_NO_THROW(Server({.port = port}, {})); // though connections linger
    EXPECT_EQ(Server({.host = "localhost", .port = 0}, {}).url().find("http://localhost:"), 0u);
}

class HttpUnix : public testing::Test {
  protected:
    const TempFolder folder_;
    const std::string path_ = folder_.file("socket");
};

TEST_F(HttpUnix, IsServedToItsOwnerAndRemoved) {
    const mode_t mask = ::umask(0);
    std::string peer;
    {
        TestServer server({.connections_per_address = 0},
                          {.check =
                               [&](const http::Request& request) {
                                   peer = request.peer;
                                   return std::optional<Response>();
                               }},
                          path_);
        struct stat file {};
        ASSERT_EQ(::stat(path_.c_str(), &file), 0);
        EXPECT_EQ(file.st_mode & 0777, 0600u);
        EXPECT_EQ(server.server.url(), "unix:" + path_);
        EXPECT_EQ(server.server.port(), 0);
        Client client(path_), leaving(path_);
        EXPECT_EQ(client.ask(post("/", std::string(300000, 'x'))).status, 200);
        EXPECT_EQ(peer, "unix");
        leaving.send(get("/later"));
        ASSERT_NE(server.held.at(0), nullptr);
        leaving.close();
        EXPECT_TRUE(wait_until([&] { return server.held.n_gone == 1; }));
        EXPECT_THROW(Server({.unix_path = path_}, {}), BindError); // somebody listens
        EXPECT_EQ(client.ask(get("/")).status, 200);               // and still does
    }
    EXPECT_FALSE(std::filesystem::exists(path_));
    ::umask(mask);
}

TEST_F(HttpUnix, AStaleOneIsReplacedAndNothingElse) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(fd); // the file stays
    {
        TestServer server({}, {}, path_);
        EXPECT_EQ(Client(path_).ask(get("/")).status, 200);
        std::filesystem::rename(path_, path_ + ".old");
        std::ofstream(path_) << "another's";
    }
    EXPECT_TRUE(std::filesystem::is_regular_file(path_)); // not ours to remove
    EXPECT_THROW(Server({.unix_path = path_}, {}), BindError);
    EXPECT_TRUE(std::filesystem::is_regular_file(path_));
    EXPECT_THROW(Server({.unix_path = folder_.path() + "/no/folder"}, {}), BindError);
    EXPECT_THROW(Server({.unix_path = folder_.path() + std::string(200, 'x')}, {}), BindError);
}

// ---- the end -----------------------------------------------------------------------------------------------
TEST(HttpEnd, StopAcceptingLetsWhatRunsFinish) {
    TestServer server;
    Client idle(server), answering(server), streaming(server), reading(server);
    EXPECT_EQ(idle.ask(get("/")).status, 200);
    answering.send(get("/later"));
    ASSERT_NE(server.held.at(0), nullptr);
    streaming.send(get("/later"));
    ASSERT_NE(server.held.at(1), nullptr);
    server.run_there([&] { server.held.at(1)->begin_stream({}); });
    EXPECT_EQ(reading.ask(get("/")).status, 200);
    reading.send(half_of_a_post);
    std::this_thread::sleep_for(20ms);
    server.run_there([&] { server.server.stop_accepting(); });
    EXPECT_EQ(idle.end(), End::closed);
    EXPECT_FALSE(Client(server).is_connected());
    reading.send(other_half);
    Reply reply = reading.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.has("Connection: close"));
    EXPECT_EQ(reading.end(), End::closed);
    server.respond(server.held.at(0), "whole");
    EXPECT_EQ(answering.read_reply().body, "whole");
    EXPECT_EQ(answering.end(), End::closed);
    server.run_there([&] {
        server.held.at(1)->write("stream");
        server.held.at(1)->end();
    });
    reply = streaming.read_reply();
    EXPECT_EQ(reply.body, "stream");
    EXPECT_TRUE(reply.is_whole);
    EXPECT_EQ(streaming.end(), End::closed);
    for (Client* client : {&idle, &answering, &streaming, &reading})
        client->close();
    EXPECT_TRUE(wait_until([&] { return server.server.counts().open == 0; }));
    EXPECT_EQ(server.held.n_gone, 0);
}

TEST(HttpEnd, StopEndsWhatRuns) {
    std::shared_ptr<Exchange> survivor;
    std::vector<Client> clients;
    {
        TestServer server;
        for (size_t i = 0; i < 10; ++i) {
            clients.emplace_back(server);
            clients.back().send(get("/later"));
            survivor = server.held.at(i);
            ASSERT_NE(survivor, nullptr);
            if (i % 2 == 0) server.run_there([&] { survivor->begin_stream({}); });
        }
        EXPECT_EQ(server.server.counts().streaming, 5u);
        server.stop();
        EXPECT_EQ(server.held.n_gone, 10);
        EXPECT_EQ(server.server.counts().open, 0u);
        EXPECT_EQ(server.server.counts().streaming, 0u);
    }
    for (Client& client : clients) {
        while (client.read_some()) {
        }
        client.got_.clear();
        EXPECT_NE(client.end(), End::open);
    }
    EXPECT_TRUE(survivor->is_gone());
    survivor->write("nobody is there"); // outlives its server
    survivor->respond({});
    EXPECT_EQ(survivor->request().path, "/later");
}

TEST(HttpEnd, ServersThatNeverRanOrAreStoppedBefore) {
    auto server = std::make_unique<Server>(http::Options{.port = 0}, http::Handler{});
    EXPECT_TRUE(Client(server->port()).is_connected()); // listens
    server.reset();
    Server stopped({.port = 0}, {});
    stopped.stop();
    stopped.run();
    EXPECT_EQ(stopped.counts().accepted, 0u);
}

TEST(HttpEnd, SignalsArriveEachTime) {
    TestServer server;
    std::atomic<int> n_signals = 0, last = 0;
    server.run_there([&] {
        server.server.on_signal([&](int signal) {
            last = signal;
            ++n_signals;
        });
    });
    int expected = 0;
    for (const int signal : {SIGTERM, SIGINT, SIGTERM}) {
        std::raise(signal);
        ++expected;
        ASSERT_TRUE(wait_until([&] { return n_signals == expected; }));
        EXPECT_EQ(last, signal);
    }
}

TEST(HttpEnd, TasksOfOtherThreadsAndLaterOnes) {
    TestServer server;
    std::vector<int> order;
    std::thread::id where;
    std::promise<void> done;
    const auto begin = Clock::now();
    server.run_there([&] {
        where = std::this_thread::get_id();
        server.server.after(60ms, [&] {
            order.push_back(3);
            done.set_value();
        });
        server.server.after(20ms, [&] { order.push_back(2); });
        server.server.post([&] { order.push_back(1); });
    });
    done.get_future().wait();
    EXPECT_GE(Clock::now() - begin, 60ms);
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
    EXPECT_NE(where, std::this_thread::get_id());
}

TEST(HttpEnd, ChildrenInheritNoSocket) {
    TestServer server;
    Client client(server);
    EXPECT_EQ(client.ask(get("/")).status, 200);
    int n_found = 0;
    for (int fd = 3; fd < 1024; ++fd) {
        sockaddr_in address{};
        socklen_t size = sizeof address;
        if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
        if (address.sin_family != AF_INET || ntohs(address.sin_port) != server.server.port()) continue;
        ++n_found;
        EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    EXPECT_EQ(n_found, 2); // the listening one and the connection
}

// ---- handlers that fail ------------------------------------------------------------------------------------
TEST(HttpFailures, BecomeAnAnswer) {
    TestServer server({}, {.check = [](const http::Request& request) -> std::optional<Response> {
                               if (request.path == "/check") throw std::runtime_error("check");
                               return std::nullopt;
                           },
                           .handle =
                               [](std::shared_ptr<Exchange> exchange) {
                                   if (exchange->request().path == "/forget") return;
                                   if (exchange->request().path == "/fine") return exchange->respond({});
                                   if (exchange->request().path == "/stream") {
                                       exchange->begin_stream({});
                                       exchange->write("begun");
                                   }
                                   throw std::runtime_error("handle");
                               }});
    for (const std::string path : {"/check", "/forget", "/handle"}) {
        Client client(server);
        const Reply reply = client.ask(get(path));
        EXPECT_EQ(reply.status, 500) << path;
        EXPECT_EQ(reply.head.find("handle"), std::string::npos);
        EXPECT_EQ(client.end(), End::closed);
    }
    Client client(server);
    const Reply reply = client.ask(get("/stream"));
    EXPECT_EQ(reply.body, "begun");
    EXPECT_FALSE(reply.is_whole);
    EXPECT_EQ(client.end(), End::closed);
    EXPECT_EQ(Client(server).ask(get("/fine")).status, 200);
}

} // namespace
} // namespace auspex::test::connections_test
