// Long texts take seconds to become tokens: nobody else waits for that.
#include "server/server_peers.h"

namespace auspex::test::long_texts_test {
namespace {

using namespace std::chrono_literals;

std::string long_request(const std::string& members = R"("n":1)", size_t bytes = 20000) {
    return post_json("/v1/completions", R"({"prompt":")" + std::string(bytes, 'x') + R"(",)" + members + "}");
}

TEST(ServerLongTexts, OthersGoOnMeanwhile) {
    ServedStandIn served;
    served.backend.event_us = 1000;
    StreamClient stream(served.port(), post_json("/v1/completions", R"({"prompt":"a","max_tokens":4000,"stream":true})"));
    ASSERT_TRUE(stream.wait_for("w0"));
    served.backend.holds_reading = true;
    StreamClient reads(served.port(), long_request());
    ASSERT_TRUE(wait_until([&] { return served.backend.n_reading == 1; }));
    EXPECT_TRUE(stream.wait_for("w300 ")) << "while the prompt is read";
    EXPECT_EQ(served.backend.n_reading, 1u);
    EXPECT_EQ(ask(served.port(), get("/health")).status, 200);
    served.backend.holds_reading = false;
    EXPECT_TRUE(reads.wait_for("\"finish_reason\":\"stop\""));
}

TEST(ServerLongTexts, AreRefusedAndFailAsOthersDo) {
    ServedStandIn served;
    EXPECT_EQ(ask(served.port(), long_request()).status, 200);
    served.backend.refuses_prepare = true;
    for (const char* members : {R"("n":1)", R"("stream":true)"})
        EXPECT_EQ(refusal_of(ask(served.port(), long_request(members))), "400 prompt context_length_exceeded");
    served.backend.refuses_prepare = false;
    served.backend.prepare_throws = true;
    EXPECT_EQ(refusal_of(ask(served.port(), long_request())), "500 - -");
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
}

TEST(ServerLongTexts, AreForgottenWhenTheirClientLeaves) {
    ServedStandIn served;
    served.backend.holds_reading = true;
    {
        StreamClient first(served.port(), long_request()), second(served.port(), long_request());
        ASSERT_TRUE(wait_until([&] { return served.backend.n_reading == 1 && served.server.engine().n_open() == 2; }));
    }
    std::this_thread::sleep_for(50ms);
    served.backend.holds_reading = false;
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
    EXPECT_EQ(served.backend.n_begun, 0u);
}

TEST(ServerLongTexts, NoMoreAreKeptThanMayWait) {
    Settings settings = quick_settings();
    settings.slots = 2;
    settings.queue = 2;
    ServedStandIn served(settings);
    served.backend.holds_reading = true;
    std::vector<std::unique_ptr<StreamClient>> kept;
    for (size_t i = 0; i < 4; ++i) {
        kept.push_back(std::make_unique<StreamClient>(served.port(), long_request()));
        ASSERT_TRUE(wait_until([&] { return served.server.engine().n_open() == i + 1; }));
    }
    const Reply refused = ask(served.port(), long_request());
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(header_of(refused, "Retry-After"), "3");
    served.backend.holds_reading = false;
    for (const auto& client : kept)
        EXPECT_TRUE(client->wait_for("\"finish_reason\":\"stop\""));
}

TEST(ServerLongTexts, ShortOnesDoNotWaitForThem) {
    ServedStandIn served;
    served.backend.holds_reading = true;
    StreamClient reads(served.port(), long_request());
    ASSERT_TRUE(wait_until([&] { return served.backend.n_reading == 1; }));
    StreamClient tokenizes(served.port(), post_json("/tokenize", R"({"content":")" + std::string(20000, 'x') + R"("})"));
    EXPECT_EQ(ask(served.port(), post_json("/tokenize", R"({"content":"ab"})")).body, R"({"tokens":[97,98]})");
    EXPECT_EQ(ask(served.port(), post_json("/detokenize", R"({"tokens":[97,98]})")).status, 200);
    EXPECT_EQ(ask(served.port(), post_json("/apply-template", R"({"messages":[{"role":"user","content":"a"}]})")).status, 200);
    EXPECT_FALSE(tokenizes.wait_for("120", 50ms)) << "which comes after the long prompt";
    served.backend.holds_reading = false;
    EXPECT_TRUE(tokenizes.wait_for("120,120]}"));
    EXPECT_TRUE(reads.wait_for("\"finish_reason\":\"stop\""));
}

TEST(ServerLongTexts, TheServerEndsMeanwhile) {
    ServedStandIn served;
    served.backend.holds_reading = true;
    StreamClient client(served.port(), long_request());
    ASSERT_TRUE(wait_until([&] { return served.backend.n_reading == 1; }));
    served.server.drain();
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(refusal_of(ask(served.port(), post_json("/v1/completions", R"({"prompt":"a"})"))), "503 - -");
    served.backend.holds_reading = false;
    EXPECT_EQ(served.wait(), 0);
    EXPECT_TRUE(client.wait_for("shutting down"));
}

} // namespace
} // namespace auspex::test::long_texts_test
