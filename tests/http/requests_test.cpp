// What is a request, what is refused, and with which status; each over a connection, as clients send it.
#include "http_peers.h"

#include "server/http/request_reader.h"
#include "server/http/response_text.h"

namespace auspex::test::requests_test {
namespace {

using http::Exchange;
using http::Limits;
using http::Response;
using End = Client::End;

TEST(HttpRequests, AreAnsweredOneAfterTheOther) {
    TestServer server;
    Client client(server);
    for (int round = 0; round < 3; ++round) {
        Reply reply = client.ask(get("/a%20b?c=%20d"));
        EXPECT_EQ(reply.status, 200);
        EXPECT_EQ(reply.body, "GET /a b ");
        EXPECT_TRUE(reply.has("Content-Type: text/plain"));
        EXPECT_EQ(reply.head.find("Connection"), std::string::npos);
        EXPECT_NE(reply.head.find("\r\nDate: "), std::string::npos);
        reply = client.ask(post("/x", "body"));
        EXPECT_EQ(reply.body, "POST /x body");
        reply = client.ask("POST /y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "3;name=value\r\nabc\r\n1\r\nd\r\n0\r\nHost: trailer\r\n\r\n");
        EXPECT_EQ(reply.body, "POST /y abcd");
        reply = client.ask("\r\n" + get("/after-an-empty-line"));
        EXPECT_EQ(reply.status, 200);
        reply = client.ask("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_EQ(reply.body, "OPTIONS / ");
    }
    EXPECT_EQ(server.server.counts().accepted, 1u);
}

TEST(HttpRequests, TheHandlerSeesWhatWasSent) {
    http::Request seen;
    TestServer server({}, {.handle = [&](std::shared_ptr<Exchange> exchange) {
                          seen = exchange->request();
                          exchange->respond({});
                      }});
    Client client(server);
    client.ask(post("/p%C3%A4th%2f?q=%41", "x", "X-Two: first\r\nx-two:  second \r\n"));
    EXPECT_EQ(seen.method, "POST");
    EXPECT_EQ(seen.target, "/p%C3%A4th%2f?q=%41");
    EXPECT_EQ(seen.path, "/p\xC3\xA4th/");
    EXPECT_EQ(seen.peer, "127.0.0.1");
    EXPECT_EQ(seen.body_bytes, 1u);
    ASSERT_NE(seen.find("X-TWO"), nullptr);
    EXPECT_EQ(*seen.find("X-TWO"), "first");
    EXPECT_EQ(seen.count("x-tWo"), 2u);
    EXPECT_EQ(seen.headers.at(3).second, "second");
    EXPECT_EQ(seen.find("X-None"), nullptr);
}

TEST(HttpRequests, OldClientsKeepOrClose) {
    TestServer server;
    Client keeps(server);
    for (int round = 0; round < 2; ++round) {
        const Reply reply = keeps.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        EXPECT_EQ(reply.status, 200);
        EXPECT_TRUE(reply.has("Connection: keep-alive"));
    }
    for (const std::string request :
         {"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"}) {
        Client closes(server);
        const Reply reply = closes.ask(request);
        EXPECT_EQ(reply.status, 200);
        EXPECT_TRUE(reply.has("Connection: close"));
        EXPECT_EQ(closes.end(), End::closed);
    }
}

struct Refused {
    int status;
    std::string request;
};

std::string with(const std::string& headers, const std::string& body = "") {
    return "POST /x HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body;
}

std::vector<Refused> refused_requests() {
    return {
        // Where a request ends must never be in doubt.
        {400, with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {400, with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")},
        {400, with("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!")},
        {400, with("Content-Length: 5\r\nContent-Length: 5\r\n", "hello")},
        {400, with("Content-Length: 5, 5\r\n", "hello")},
        {400, with("Content-Length: +5\r\n", "hello")},
        {400, with("Content-Length: -1\r\n")},
        {400, with("Content-Length: 0x5\r\n", "hello")},
        {400, with("Content-Length: 5 5\r\n", "hello")},
        {400, with("Content-Length: 18446744073709551617\r\n", "x")},
        {400, with("Content-Length:\r\n")},
        {400, with("Content-Length: 5\r\nTransfer-Encoding: identity\r\n", "hello")},
        {501, with("Transfer-Encoding: gzip\r\n")},
        {501, with("Transfer-Encoding: identity\r\n")},
        {501, with("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
        {501, with("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")},
        {501, with("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")},
        {501, with("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")},
        {501, with("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n")},
        {501, with("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {501, with("Transfer-Encoding:\r\n")},
        {400, with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {400, with("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")},
        {400, with("Transfer-Encoding:\x0b"
                   "chunked\r\n",
                   "0\r\n\r\n")},
        {400, with("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")},
        {400, with(" Transfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {400, with("X: a\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {400, with("X: a\rTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        {400, "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {400, with("Transfer-Encoding: chunked\r\n", "0x1\r\na\r\n0\r\n\r\n")},
        {400, with("Transfer-Encoding: chunked\r\n", "-1\r\na\r\n0\r\n\r\n")},
        {400, with("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n")},
        {400, with("Transfer-Encoding: chunked\r\n", "1\na\r\n0\r\n\r\n")},
        {400, with("Transfer-Encoding: chunked\r\n", "11111111111111111\r\na\r\n0\r\n\r\n")},
        {400, with("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 3\r\n\r\nabc")},
        {400, with("Transfer-Encoding: chunked\r\n", "1;" + std::string(20000, 'x') + "\r\na\r\n0\r\n\r\n")},
        {413, with("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\na\r\n0\r\n\r\n")},
        // Lines.
        {400, "hello\r\n\r\n"},
        {400, "\x16\x03\x01\x02\x01\x01\r\n\r\n"},
        {400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
        {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
        {400, "GET / http/1.1\r\nHost: a\r\n\r\n"},
        {400, "GET /\r\n\r\n"},
        {400, with("no colon\r\n")},
        {400, with(": no name\r\n")},
        {400, with("X: " + std::string(1, '\0') + "\r\n")},
        {400, with("X: a\x7f\r\n")},
        // Whom it is for.
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
        {400, "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n"},
        {400, get("http://localhost/")},
        {400, get("localhost")},
        {400, get("*")},
        {400, "CONNECT localhost:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, get("/%")},
        {400, get("/%4")},
        {400, get("/%4g")},
        {400, get("/?%zz")},
        {400, get("/%00")},
        {400, get("/a%0d%0ab")},
        {400, get("/a\tb")},
        {400, get("/#a")},
        // What cannot be had.
        {417, with("Expect: 200-ok\r\nContent-Length: 1\r\n")},
        {417, with("Expect: 100-continue, x\r\nContent-Length: 1\r\n")},
        {417, with("Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 1\r\n")},
        {415, with("Content-Encoding: gzip\r\nContent-Length: 1\r\n", "x")},
        {415, with("Content-Encoding: identity, gzip\r\nContent-Length: 1\r\n", "x")},
    };
}

TEST(HttpRequests, AreRefusedAndTheConnectionCloses) {
    TestServer server;
    for (const Refused& one : refused_requests()) {
        SCOPED_TRACE(one.request.substr(0, 200));
        Client client(server);
        const Reply reply = client.ask(one.request + get("/smuggled"));
        EXPECT_EQ(reply.status, one.status) << reply.head << reply.body;
        EXPECT_TRUE(reply.has("Connection: close"));
        EXPECT_EQ(client.end(), End::closed);
    }
    EXPECT_EQ(server.n_handled, 0);
}

TEST(HttpRequests, NearlyRefusedOnesAreTaken) {
    TestServer server;
    Client client(server);
    for (const std::string& request :
         {with("Content-Encoding: identity\r\nContent-Length: 1\r\n", "x"), with("Content-Length: 0\r\n"),
          with("Content-Length: 00001\r\n", "x"), with("X:\r\n"), with("X: \xC3\xA4\r\n"), get("/%41%2F?%00"),
          std::string("QUERY /own-method HTTP/1.1\r\nHost: a\r\n\r\n")})
        EXPECT_EQ(client.ask(request).status, 200) << request;
}

TEST(HttpRequests, HeadsUpToTheirLimits) {
    TestServer server;
    const Limits limits;
    for (const size_t over : {0u, 1u, 5000u}) {
        const size_t frame = get("/", "X: \r\n").size();
        Client client(server);
        const Reply reply = client.ask(get("/", "X: " + std::string(limits.header_bytes - frame + over, 'x') + "\r\n"));
        EXPECT_EQ(reply.status, over == 0 ? 200 : 431);
        if (over > 0) {
            EXPECT_EQ(client.end(), End::closed);
        }
    }
    for (const size_t n : {limits.headers, limits.headers + 1}) {
        std::string headers;
        for (size_t i = 1; i < n; ++i) // besides Host
            headers += "X: y\r\n";
        EXPECT_EQ(Client(server).ask(get("/", headers)).status, n == limits.headers ? 200 : 431);
    }
    Client endless(server);
    endless.send("GET /" + std::string(100000, 'x'));
    EXPECT_EQ(endless.read_reply().status, 431);
}

TEST(HttpRequests, BodiesUpToTheirLimit) {
    TestServer server({.body_bytes = 100000});
    for (const size_t n : {size_t{100000}, size_t{100001}, size_t{1} << 40}) {
        const bool fits = n == 100000;
        const std::string body(fits ? n : 100, 'x');
        const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
        EXPECT_EQ(Client(server).ask(head + "Content-Length: " + std::to_string(n) + "\r\n\r\n" + body).status,
                  fits ? 200 : 413);
        char size[32];
        std::snprintf(size, sizeof size, "%zx", n - 50000);
        const std::string first = "c350\r\n" + std::string(50000, 'x') + "\r\n";
        const std::string rest = fits ? std::string(50000, 'y') + "\r\n0\r\n\r\n" : "y";
        EXPECT_EQ(Client(server).ask(head + "Transfer-Encoding: chunked\r\n\r\n" + first + size + "\r\n" + rest).status,
                  fits ? 200 : 413);
    }
}

TEST(HttpRequests, ContinueIsSaidOnceTheHeadHasPassed) {
    std::atomic<int> n_checked = 0;
    TestServer server({}, {.check = [&](const http::Request& request) -> std::optional<Response> {
                          ++n_checked;
                          EXPECT_EQ(request.body, "");
                          EXPECT_EQ(request.body_bytes, 4u);
                          if (request.path == "/no") return Response{.status = 401, .body = "no"};
                          return std::nullopt;
                      }});
    const std::string expects = "Content-Length: 4\r\nExpect: 100-Continue\r\n";
    Client client(server);
    EXPECT_EQ(client.ask(with(expects)).status, 100);
    EXPECT_EQ(n_checked, 1);
    EXPECT_EQ(client.ask("body").body, "POST /x body");

    EXPECT_EQ(client.ask("POST /no HTTP/1.1\r\nHost: a\r\n" + expects + "\r\n").status, 401);
    EXPECT_EQ(client.end(), End::closed);
    Client old(server); // knows no such thing
    old.send("POST /x HTTP/1.0\r\n" + expects + "\r\n");
    EXPECT_FALSE(old.read_some(50ms));
    EXPECT_EQ(old.ask("body").status, 200);
}

TEST(HttpRequests, TheAnswerToAHeadIsSeenByWhoGoesOnSending) {
    TestServer server({}, {.check = [](const http::Request&) { return Response{.status = 401, .body = "no"}; }});
    for (int round = 0; round < 10; ++round) {
        Client client(server);
        client.send(post("/", std::string(200000, 'x')));
        EXPECT_EQ(client.read_reply().body, "no");
        EXPECT_EQ(client.end(), End::closed);
    }
    Client late(server);
    EXPECT_EQ(late.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n").body, "no");
    for (int i = 0; i < 2; ++i) {
        std::this_thread::sleep_for(20ms);
        EXPECT_EQ(late.send(std::string(50000, 'x')), 50000u); // as nothing resets it
    }
    late.close();
    Client endless(server); // but not for ever
    endless.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
    const auto begin = Clock::now();
    size_t sent = 0;
    while (size_t n = endless.send(std::string(65536, 'x')))
        sent += n;
    EXPECT_LT(Clock::now() - begin, 10s);
    EXPECT_LT(sent, size_t{1} << 30);
    EXPECT_TRUE(wait_until([&] { return server.server.counts().open == 0; }));
    EXPECT_EQ(server.n_handled, 0);
}

TEST(HttpRequests, HeadAndEmptyAnswersHaveNoBody) {
    TestServer server({}, {.handle = [](std::shared_ptr<Exchange> exchange) {
                          const int status = std::stoi(exchange->request().path.substr(1));
                          exchange->respond({.status = status, .body = "12345"});
                      }});
    Client client(server);
    Reply reply = client.ask("HEAD /200 HTTP/1.1\r\nHost: a\r\n\r\n", false);
    EXPECT_TRUE(reply.has("Content-Length: 5"));
    EXPECT_EQ(reply.status, 200);
    for (const std::string status : {"204", "304"}) {
        reply = client.ask(get("/" + status), false);
        EXPECT_EQ(std::to_string(reply.status), status);
        EXPECT_EQ(reply.head.find("Content-Length"), std::string::npos);
        EXPECT_EQ(reply.head.find("Content-Type"), std::string::npos);
    }
    EXPECT_EQ(client.ask(get("/201")).body, "12345"); // in step
}

TEST(HttpRequests, PipelinedOnesAreAnsweredInOrder) {
    TestServer server;
    Client client(server);
    client.send(get("/later") + post("/2", "two") + get("/later") + get("/4", "Connection: close\r\n") + get("/never"));
    ASSERT_NE(server.held.at(0), nullptr);
    EXPECT_FALSE(client.read_some(30ms));
    EXPECT_EQ(server.n_handled, 1);
    server.respond(server.held.at(0), "one");
    EXPECT_EQ(client.read_reply().body, "one");
    EXPECT_EQ(client.read_reply().body, "POST /2 two");
    server.respond(server.held.at(1), "three");
    EXPECT_EQ(client.read_reply().body, "three");
    EXPECT_EQ(client.read_reply().body, "GET /4 ");
    EXPECT_EQ(client.end(), End::closed);
    EXPECT_EQ(server.n_handled, 4);
}

TEST(HttpRequests, LittleIsReadAhead) {
    TestServer server;
    Client client(server);
    const std::string one = get("/pipelined");
    std::string many = get("/later");
    const int n = 200000;
    for (int i = 0; i < n; ++i)
        many += one;
    const size_t sent = client.send(many, 100ms);
    EXPECT_LT(sent, many.size()); // a server that reads on takes all
    server.respond(server.held.at(0), "one");
    EXPECT_EQ(client.read_reply().body, "one");
    const size_t whole = (sent - get("/later").size()) / one.size();
    for (size_t i = 0; i < std::min<size_t>(whole, 2000); ++i)
        ASSERT_EQ(client.read_reply().body, "GET /pipelined ");
}

TEST(HttpResponses, HeadersCannotBeBroken) {
    std::vector<Response> broken = {{.headers = {{"X", "a\r\nSet-Cookie: b"}}},
                                    {.headers = {{"X", "a\nb"}}},
                                    {.headers = {{"X\r\nY", "a"}}},
                                    {.headers = {{"X Y", "a"}}},
                                    {.headers = {{"", "a"}}},
                                    {.headers = {{"X", std::string(1, '\0')}}},
                                    {.content_type = "a\r\nB: c"},
                                    {.headers = {{"content-length", "9"}}},
                                    {.headers = {{"Transfer-Encoding", "chunked"}}},
                                    {.headers = {{"Connection", "close"}}},
                                    {.status = 99},
                                    {.status = 100},
                                    {.status = 1000}};
    size_t index = 0;
    bool is_stream = false;
    TestServer server({}, {.handle = [&](std::shared_ptr<Exchange> exchange) {
                          if (is_stream) {
                              exchange->begin_stream(broken[index]);
                              exchange->write("piece");
                              exchange->end();
                          } else {
                              exchange->respond(broken[index]);
                          }
                      }});
    for (; index < broken.size(); ++index) {
        for (const bool streams : {false, true}) {
            is_stream = streams;
            Client client(server);
            const Reply reply = client.ask(get("/"));
            EXPECT_EQ(reply.status, 500) << index;
            EXPECT_EQ(reply.head.find("Set-Cookie"), std::string::npos);
            EXPECT_EQ(client.end(), End::closed);
        }
    }
}

TEST(HttpResponses, RefusalsAreTheHandlersToWord) {
    http::Handler handler;
    handler.refuse = [](int status, const std::string& message) {
        if (message.find("Host") != std::string::npos) throw std::runtime_error("no words");
        return Response{
            .status = status, .body = "{\"error\":\"" + message + "\"}", .headers = {{"X-Request-Id", "r1"}}};
    };
    TestServer server({}, handler);
    Reply reply = Client(server).ask(get("*"));
    EXPECT_EQ(reply.status, 400);
    EXPECT_TRUE(reply.has("X-Request-Id: r1"));
    EXPECT_EQ(reply.body.find("{\"error\""), 0u);
    reply = Client(server).ask("GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(reply.status, 400);
    EXPECT_TRUE(reply.has("Content-Type: text/plain"));
}

TEST(HttpResponses, Dates) {
    const std::chrono::sys_seconds time{784111777s};
    EXPECT_EQ(http::date_text(time), "Sun, 06 Nov 1994 08:49:37 GMT");
}

} // namespace
} // namespace auspex::test::requests_test
