// What happens to answers whose clients leave or do not read, when there are too many, and when the server or its engine ends. stuck_test: when the engine hangs.
#include "server_peers.h"

namespace auspex::test::life_test {
namespace {

const std::string kForever = completion(R"("stream":true,"max_tokens":4000)");
const std::string kForeverWhole = completion(R"("max_tokens":4000)");

double metric(uint16_t port, const std::string& sample) {
    const std::string text = ask(port, get("/metrics")).body;
    const size_t at = text.find("\n" + sample + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + sample.size() + 2));
}

// ---- clients that leave
// ------------------------------------------------------------------------------------------------

TEST(ServerLeaving, EndsWhatTheyAskedFor) {
    ServedStandIn served;
    served.backend.slots = 2;
    served.backend.event_us = 2000;
    size_t n_left = 0;
    for (const bool is_reset : {false, true}) {
        std::vector<std::unique_ptr<StreamClient>> clients;
        for (const std::string& body : {kForever, kForeverWhole, kForever, kForeverWhole}) // two run, two wait
            clients.push_back(std::make_unique<StreamClient>(served.port(), post_json("/v1/completions", body)));
        ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 4; }));
        ASSERT_TRUE(clients[0]->wait_for("w0"));
        StreamClient stays(served.port(), post_json("/v1/completions", completion(R"("max_tokens":3)")));
        ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 5; }));
        for (auto& client : clients)
            is_reset ? client->client.reset() : client->client.close();
        n_left += 4;
        EXPECT_EQ(json_of(stays.client.read_reply())["choices"][0]["text"], words(3));
        EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
        EXPECT_EQ(served.backend.n_abandoned, n_left);
        EXPECT_EQ(metric(served.port(), R"(auspex_requests_total{endpoint="/v1/completions",result="cancelled"})"), n_left);
    }
    EXPECT_TRUE(wait_until([&] { return metric(served.port(), "auspex_requests_running") == 0; }));
    EXPECT_EQ(metric(served.port(), "auspex_requests_waiting"), 0);
    EXPECT_EQ(metric(served.port(), R"(auspex_connections{state="streaming"})"), 0);
}

TEST(ServerLeaving, BeforeTheEngineHasLooked) {
    ServedStandIn served;
    served.backend.event_us = 1000;
    StreamClient first(served.port(), post_json("/v1/completions", kForever));
    ASSERT_TRUE(first.wait_for("w0"));
    served.backend.hold(true);
    ASSERT_TRUE(wait_until([&] { return served.backend.is_held.load(); }));
    for (int i = 0; i < 20; ++i) {
        StreamClient left(served.port(), post_json("/v1/completions", i % 2 ? kForever : kForeverWhole));
        ASSERT_TRUE(wait_until([&] { return served.server.engine().n_open() == 2u + static_cast<size_t>(i); }));
    }
    EXPECT_TRUE(wait_until([&] { return metric(served.port(), R"(auspex_requests_total{endpoint="/v1/completions",result="cancelled"})") == 20; }));
    served.backend.hold(false);
    EXPECT_TRUE(wait_until([&] { return served.server.engine().n_open() == 1; }));
    EXPECT_EQ(served.backend.n_begun, 1u); // the engine never saw the others
    first.client.close();
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
}

// An answer that is on its way to a client who leaves must not be taken for another that lies where it lay.
TEST(ServerLeaving, AfterTheAnswerConcernsNobodyElse) {
    ServedStandIn served;
    for (int round = 0; round < 3; ++round) {
        served.backend.padding = 1 << 20;
        Client slow(served.port(), 4096);
        slow.send(post_json("/v1/completions", completion(R"("max_tokens":16)"))); // more than sockets take
        EXPECT_TRUE(wait_until([&] { return served.backend.n_begun == static_cast<size_t>(round) * 5 + 1 && served.is_idle(); }));
        served.backend.padding = 0;
        served.backend.event_us = 5000;
        std::vector<std::unique_ptr<StreamClient>> others;
        for (int i = 0; i < 4; ++i)
            others.push_back(std::make_unique<StreamClient>(served.port(), post_json("/v1/completions", completion(R"("max_tokens":20)"))));
        ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 4; }));
        slow.reset();
        for (auto& other : others)
            EXPECT_EQ(other->client.read_reply().status, 200);
        served.backend.event_us = 0;
        EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
    }
    EXPECT_EQ(served.backend.n_abandoned, 0u);
}

// ---- readers that are slow
// ---------------------------------------------------------------------------------------------

TEST(ServerReaders, SlowOnesArePausedAndGoOn) {
    ServedStandIn served;
    served.backend.padding = 16 << 10;
    served.backend.event_us = 200;
    StreamClient slow(served.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":2000)")), 4096);
    ASSERT_TRUE(wait_until([&] { return served.backend.n_parked == 1; }));
    EXPECT_TRUE(wait_until([&] { return metric(served.port(), "auspex_requests_paused") == 1; }));
    EXPECT_TRUE(wait_until([&] { return json_of(ask(served.port(), get("/slots")))[0].value("state", "") == "parked"; }));
    std::this_thread::sleep_for(300ms); // at 5,000 events each second it would have ended
    EXPECT_LT(served.backend.n_predicted, 1000u); // the kernel's buffers and 256 KiB
    served.backend.event_us = 1000;
    EXPECT_EQ(json_of(ask(served.port(), post_json("/v1/completions", completion(R"("max_tokens":3)"))))["usage"]["completion_tokens"], 3); // others go on
    served.backend.event_us = 0;
    const Reply reply = slow.client.read_reply();
    EXPECT_TRUE(reply.is_whole);
    const Events events(reply.body);
    EXPECT_TRUE(events.is_done);
    EXPECT_EQ(events.data.size(), 2001u); // nothing was lost
    EXPECT_GE(served.backend.n_resumed, 1u);
    EXPECT_TRUE(wait_until([&] { return metric(served.port(), "auspex_requests_paused") == 0; }));
}

TEST(ServerReaders, AreGivenUpAfterAWhile) {
    Settings settings = quick_settings();
    settings.most_pause = 300ms;
    ServedStandIn served(settings);
    served.backend.padding = 16 << 10;
    served.backend.event_us = 200;
    StreamClient slow(served.port(), post_json("/v1/completions", kForever), 4096);
    ASSERT_TRUE(wait_until([&] { return served.backend.n_parked == 1; }));
    const auto parked = Clock::now();
    ASSERT_TRUE(wait_until([&] { return served.backend.n_abandoned == 1; }));
    EXPECT_GE(Clock::now() - parked, 250ms);
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
    const Reply reply = slow.client.read_reply();
    EXPECT_FALSE(reply.is_whole);
    EXPECT_EQ(Events(reply.body).data.back()["error"]["message"], "the answer was not read for 0.3 s");
    EXPECT_LT(served.backend.n_predicted, 4000u);
}

// ---- too many
// ----------------------------------------------------------------------------------------------------------

TEST(ServerLoad, MoreThanThereMayBeAreRefused) {
    for (const int status : {429, 503}) {
        Settings settings = quick_settings();
        settings.slots = 1;
        settings.queue = 1;
        settings.overload_status = status;
        ServedStandIn served(settings);
        served.backend.slots = 1;
        served.backend.event_us = 2000;
        StreamClient first(served.port(), post_json("/v1/completions", kForever)), second(served.port(), post_json("/v1/completions", kForeverWhole));
        ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 2; }));
        for (const char* members : {R"("stream":true)", R"("n":1)"}) {
            const Reply reply = ask(served.port(), post_json("/v1/completions", completion(members)));
            EXPECT_EQ(refusal_of(reply), std::to_string(status) + " - overloaded");
            EXPECT_EQ(json_of(reply)["error"]["type"], status == 429 ? "rate_limit_error" : "unavailable_error");
            EXPECT_EQ(header_of(reply, "Retry-After"), "3"); // of 2.3 s
            EXPECT_EQ(header_of(reply, "X-Request-Id").size(), 28u);
        }
        EXPECT_EQ(ask(served.port(), get("/health")).status, 200); // a full server is healthy
        first.client.close();
        ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 1; }));
        Client late(served.port());
        late.send(post_json("/v1/completions", completion(R"("n":1,"max_tokens":1)"))); // there is a place again
        ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 2; }));
        second.client.close();
        EXPECT_EQ(late.read_reply().status, 200);
        EXPECT_EQ(metric(served.port(), R"(auspex_requests_total{endpoint="/v1/completions",result="rejected"})"), 2);
    }
}

TEST(ServerLoad, PromptTokensThatWaitAreCounted) {
    Settings settings = quick_settings();
    settings.queue_tokens = 100;
    ServedStandIn served(settings);
    served.backend.slots = 1;
    served.backend.says_nothing = true;
    const auto prompt = [](size_t n) { return post_json("/v1/completions", R"({"prompt":")" + std::string(n, 'a') + R"("})"); };
    std::vector<Client> clients;
    const auto ask_for = [&](size_t n, size_t n_alive) {
        clients.emplace_back(served.port()).send(prompt(n));
        EXPECT_TRUE(wait_until([&] { return served.backend.n_alive_now == n_alive; })) << n;
    };
    ask_for(1000, 1); // runs
    ask_for(60, 2);
    ask_for(40, 3);
    const Reply refused = ask(served.port(), prompt(1));
    EXPECT_EQ(refusal_of(refused), "429 - overloaded");
    EXPECT_EQ(json_of(refused)["error"]["message"], "100 prompt tokens wait already, of at most 100; try again in 3 s");
    clients[2].close();
    ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 2; }));
    EXPECT_EQ(ask(served.port(), prompt(41)).status, 429);
    clients[1].close();
    ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 1; }));
    ask_for(500, 2); // nobody waits
    EXPECT_EQ(ask(served.port(), prompt(1)).status, 429);
}

TEST(ServerLoad, AThousandAtOnce) {
    ServedStandIn served; // 16 and 64
    served.backend.event_us = 1000;
    served.backend.says_nothing = true;
    std::vector<Client> clients;
    for (int i = 0; i < 1000; ++i)
        clients.emplace_back(served.port());
    const std::string request = post_json("/v1/completions", completion(R"("max_tokens":5)"));
    const auto begin = Clock::now();
    for (Client& client : clients)
        client.send(request);
    size_t n_refused = 0, n_answered = 0;
    std::vector<size_t> left(clients.size());
    for (size_t i = 0; i < clients.size(); ++i)
        left[i] = i;
    auto last_refusal = begin;
    while (!left.empty() && Clock::now() < begin + 60s) {
        std::erase_if(left, [&](size_t i) {
            if (!clients[i].read_some(0ms)) return false;
            const Reply reply = clients[i].read_reply();
            if (reply.status == 429) {
                ++n_refused;
                last_refusal = Clock::now();
                if (n_refused == 920) served.backend.says_nothing = false;
                EXPECT_NE(header_of(reply, "Retry-After"), "");
            } else if (reply.status == 200) {
                ++n_answered;
                EXPECT_EQ(json_of(reply)["choices"][0]["text"], words(5));
            }
            return true;
        });
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(n_refused, 920u);
    EXPECT_EQ(n_answered, 80u);
    const double seconds = std::chrono::duration<double>(last_refusal - begin).count();
    std::printf("920 of 1,000 requests at once: refused within %.3f s\n", seconds);
    EXPECT_LT(seconds, 2.0); // 0.5 on a machine with nothing else to do
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
}

// ---- the end
// -----------------------------------------------------------------------------------------------------------

TEST(ServerEnd, RunningAnswersAreFinished) {
    ServedStandIn served;
    served.backend.event_us = 20000;
    StreamClient stream(served.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":15)")));
    StreamClient whole(served.port(), post_json("/v1/completions", completion(R"("max_tokens":15)")));
    Client idle(served.port()), asks(served.port());
    EXPECT_EQ(idle.ask(get("/health")).status, 200);
    EXPECT_EQ(asks.ask(get("/health")).status, 200);
    ASSERT_TRUE(stream.wait_for("w0"));
    ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 2; }));
    served.server.drain();
    ASSERT_TRUE(wait_until([&] { return served.server.engine().is_draining(); }));
    Reply reply = asks.ask(get("/health"));
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.body, R"({"error":{"code":503,"message":"the server is shutting down","type":"unavailable_error"}})");
    EXPECT_EQ(asks.ask(get("/health/live")).status, 200);
    reply = asks.ask(post_json("/v1/completions", completion(R"("n":1)")));
    EXPECT_EQ(refusal_of(reply), "503 - -");
    EXPECT_EQ(header_of(reply, "Retry-After"), "1");
    EXPECT_EQ(metric(served.port(), "auspex_up"), 0);
    reply = stream.client.read_reply();
    EXPECT_EQ(Events(reply.body).text(), words(15));
    EXPECT_TRUE(Events(reply.body).is_done);
    EXPECT_EQ(json_of(whole.client.read_reply())["choices"][0]["text"], words(15));
    EXPECT_EQ(served.wait(), 0);
    EXPECT_EQ(idle.end(), Client::End::closed);
    EXPECT_EQ(served.backend.n_abandoned, 0u);
}

TEST(ServerEnd, ComesAtOnceWhereNothingRuns) {
    ServedStandIn served;
    const auto begin = Clock::now();
    served.server.drain();
    EXPECT_EQ(served.wait(), 0);
    EXPECT_LT(Clock::now() - begin, 1s);
}

TEST(ServerEnd, AnswersThatTakeTooLongAreCut) {
    Settings settings = quick_settings();
    settings.drain = 200ms;
    ServedStandIn served(settings);
    served.backend.event_us = 5000;
    StreamClient stream(served.port(), post_json("/v1/completions", kForever));
    StreamClient whole(served.port(), post_json("/v1/completions", kForeverWhole));
    ASSERT_TRUE(stream.wait_for("w0"));
    ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 2; }));
    served.server.drain();
    const Reply reply = stream.client.read_reply();
    EXPECT_FALSE(reply.is_whole);
    EXPECT_FALSE(Events(reply.body).is_done);
    EXPECT_EQ(Events(reply.body).data.back()["error"], Json::parse(R"({"message":"the server is shutting down","type":"unavailable_error","param":null,"code":null})"));
    EXPECT_EQ(refusal_of(whole.client.read_reply()), "503 - -");
    stream.client.close();
    whole.client.close();
    EXPECT_EQ(served.wait(), 0);
    EXPECT_EQ(served.backend.n_abandoned, 2u);
}

TEST(ServerEnd, TheSecondTimeItIsAtOnce) {
    ServedStandIn served;
    served.backend.event_us = 5000;
    StreamClient stream(served.port(), post_json("/v1/completions", kForever));
    ASSERT_TRUE(stream.wait_for("w0"));
    served.server.drain();
    ASSERT_TRUE(stream.wait_for("w20 "));
    const auto begin = Clock::now();
    served.server.drain();
    EXPECT_EQ(served.wait(), 0);
    EXPECT_LT(Clock::now() - begin, 1s);
    EXPECT_FALSE(stream.client.read_reply().is_whole);
}

// What runs when the server goes must find nothing of it gone.
TEST(ServerEnd, ServersGoWhileTheirEnginesSpeak) {
    for (int i = 0; i < 20; ++i) {
        ServedStandIn served; // as fast as asked
        std::vector<std::unique_ptr<StreamClient>> clients;
        for (int k = 0; k < 4; ++k)
            clients.push_back(std::make_unique<StreamClient>(served.port(), post_json("/v1/completions", kForever)));
        ASSERT_TRUE(clients[3]->wait_for("w0"));
        EXPECT_EQ(served.stop(), 0);
    }
}

// ---- an engine that fails
// -------------------------------------------------------------------------------------

TEST(ServerLost, EverybodyIsToldAndTheProgramEnds) {
    Settings settings = quick_settings();
    settings.silence = 400ms; // a sign of life is the moment to end, too
    ServedStandIn served(settings);
    served.backend.event_us = 5000;
    StreamClient stream(served.port(), post_json("/v1/completions", kForever)), whole(served.port(), post_json("/v1/completions", kForeverWhole));
    Client asks(served.port());
    ASSERT_TRUE(stream.wait_for("w0"));
    ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 2; }));
    served.backend.loses_device = true;
    const Reply reply = stream.client.read_reply();
    EXPECT_FALSE(reply.is_whole);
    EXPECT_EQ(Events(reply.body).data.back()["error"]["message"], "the device was lost");
    EXPECT_EQ(refusal_of(whole.client.read_reply()), "503 - -");
    EXPECT_EQ(asks.ask(get("/health")).status, 503);
    EXPECT_EQ(asks.ask(get("/health/live")).status, 503);
    EXPECT_EQ(refusal_of(asks.ask(post_json("/v1/completions", completion(R"("n":1)")))), "503 - -");
    EXPECT_EQ(served.wait(), cli::kExitDevice);
    EXPECT_EQ(served.server.engine().n_open(), 0u);
}

TEST(ServerLost, WhatNobodyExpectsIsAnswered) {
    Settings settings = quick_settings();
    settings.silence = 200ms;
    ServedStandIn served(settings);
    served.backend.prepare_throws = true;
    for (const char* members : {R"("stream":true)", R"("n":1)"})
        EXPECT_EQ(refusal_of(ask(served.port(), post_json("/v1/completions", completion(members)))), "500 - -");
    EXPECT_TRUE(served.is_idle());
    served.backend.prepare_throws = false;
    EXPECT_EQ(ask(served.port(), post_json("/v1/completions", completion(R"("n":1)"))).status, 200);
    served.backend.advance_throws = true;
    EXPECT_EQ(refusal_of(ask(served.port(), post_json("/v1/completions", completion(R"("n":1)")))), "503 - -");
    EXPECT_EQ(served.wait(), cli::kExitInternal);
}

} // namespace
} // namespace auspex::test::life_test
