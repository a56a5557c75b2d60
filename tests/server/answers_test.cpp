// Answers, whole and piece by piece, in every form, and the errors before and after the head of a stream.
#include "server_peers.h"

namespace auspex::test::answers_test {
namespace {

class ServerAnswers : public testing::Test {
  protected:
    Json whole(const std::string& path, const std::string& body) {
        const Reply reply = ask(served_.port(), post_json(path, body));
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_EQ(header_of(reply, "Content-Type"), "application/json");
        EXPECT_TRUE(reply.is_whole);
        return json_of(reply);
    }
    Events stream(const std::string& path, const std::string& body) {
        const Reply reply = ask(served_.port(), post_json(path, body));
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_EQ(header_of(reply, "Content-Type"), "text/event-stream");
        EXPECT_EQ(header_of(reply, "Cache-Control"), "no-cache");
        EXPECT_EQ(header_of(reply, "X-Accel-Buffering"), "no");
        EXPECT_EQ(header_of(reply, "X-Request-Id").size(), 28u);
        EXPECT_TRUE(reply.is_whole);
        return Events(reply.body);
    }
    ServedStandIn served_;
};

TEST_F(ServerAnswers, WholeChat) {
    const Json answer = whole("/v1/chat/completions", kChat);
    EXPECT_EQ(answer["object"], "chat.completion");
    EXPECT_TRUE(answer["id"].get<std::string>().starts_with("chatcmpl-"));
    EXPECT_EQ(answer["created"], 1700000000);
    EXPECT_EQ(answer["model"], "stand-in");
    EXPECT_EQ(answer["choices"], Json::parse(R"([{"index":0,"message":{"role":"assistant","content":"w0 w1 w2 w3 w4 w5 w6 w7 "},"logprobs":null,"finish_reason":"stop"}])"));
    EXPECT_EQ(answer["usage"], Json::parse(R"({"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2}})"));
    EXPECT_EQ(answer["timings"]["cache_n"], 2);
    EXPECT_EQ(answer["timings"]["prompt_n"], 3);
    EXPECT_EQ(answer["timings"]["predicted_n"], 9);
    EXPECT_EQ(answer["auspex"]["seed"], 5);
}

TEST_F(ServerAnswers, WholeCompletions) {
    const Json answer = whole("/v1/completions", R"({"prompt":["ab","abcd"],"n":2,"max_tokens":3,"echo":true,"return_tokens":true,"seed":-7})");
    EXPECT_EQ(answer["object"], "text_completion");
    ASSERT_EQ(answer["choices"].size(), 4u);
    for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ(answer["choices"][i], (Json{{"index", i}, {"text", (i < 2 ? "ab" : "abcd") + words(3)}, {"token_ids", {100, 101, 102}}, {"logprobs", nullptr}, {"finish_reason", "length"}}));
    EXPECT_EQ(answer["usage"]["prompt_tokens"], 6); // each prompt once
    EXPECT_EQ(answer["usage"]["completion_tokens"], 12);
    EXPECT_EQ(answer["auspex"]["seed"], -7);
    EXPECT_EQ(whole("/v1/completions", R"({"prompt":[5,6,7],"max_tokens":0})")["choices"][0]["text"], "");
    EXPECT_EQ(whole("/v1/completions", R"({"prompt":[[5],[6]],"max_tokens":1})")["choices"].size(), 2u);
    const Json probable = whole("/v1/completions", completion(R"("max_tokens":2,"logprobs":1)"))["choices"][0]["logprobs"];
    EXPECT_EQ(probable, Json::parse(R"({"tokens":["w0 ","w1 "],"token_logprobs":[-0.5,-0.5625],"top_logprobs":[{"w0 ":-0.5},{"w1 ":-0.5625}],"text_offset":[0,3]})"));
}

TEST_F(ServerAnswers, WholeCompletionOfLlamaCpp) {
    const Json answer = whole("/completion", R"({"prompt":"abc","n_predict":2,"return_tokens":true})");
    EXPECT_EQ(answer["content"], "w0 w1 ");
    EXPECT_EQ(answer["tokens"], Json({100, 101}));
    EXPECT_EQ(answer["stop"], true);
    EXPECT_EQ(answer["stop_type"], "limit");
    EXPECT_EQ(answer["tokens_predicted"], 2);
    EXPECT_EQ(answer["tokens_evaluated"], 3);
}

TEST_F(ServerAnswers, StreamsOfChat) {
    served_.backend.tokens_per_event = 3;
    const Events events = stream("/v1/chat/completions", chat(R"("stream":true)"));
    EXPECT_TRUE(events.is_done);
    ASSERT_EQ(events.data.size(), 4u);
    EXPECT_EQ(events.data[0]["choices"], Json::parse(R"([{"index":0,"delta":{"role":"assistant","content":"w0 w1 w2 "},"logprobs":null,"finish_reason":null}])"));
    EXPECT_EQ(events.data[1]["choices"][0]["delta"], (Json{{"content", "w3 w4 w5 "}})); // the role comes once
    EXPECT_EQ(events.data[2]["choices"][0]["finish_reason"], nullptr);
    EXPECT_EQ(events.data[3]["choices"][0]["delta"], Json::object());
    EXPECT_EQ(events.data[3]["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(events.text(), words(8));
    for (const Json& chunk : events.data) {
        EXPECT_EQ(chunk["object"], "chat.completion.chunk");
        EXPECT_EQ(chunk["id"], events.data[0]["id"]);
        EXPECT_FALSE(chunk.contains("usage")); // nobody asked
        EXPECT_EQ(chunk.contains("timings"), &chunk == &events.data.back());
    }
}

TEST_F(ServerAnswers, UsageComesInTheFormThatIsAskedFor) {
    const Events once = stream("/v1/chat/completions", chat(R"("stream":true,"max_tokens":2,"stream_options":{"include_usage":true})"));
    EXPECT_TRUE(once.is_done);
    ASSERT_EQ(once.data.size(), 4u);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(once.data[i].contains("usage") && once.data[i]["usage"].is_null());
        EXPECT_FALSE(once.data[i].contains("timings"));
    }
    EXPECT_EQ(once.data[3]["choices"], Json::array());
    EXPECT_EQ(once.data[3]["usage"]["completion_tokens"], 2);
    EXPECT_EQ(once.data[3]["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
    EXPECT_EQ(once.data[3]["timings"]["predicted_n"], 2);
    const Events always = stream("/v1/completions", completion(R"("stream":true,"max_tokens":2,"stream_options":{"continuous_usage_stats":true})"));
    ASSERT_EQ(always.data.size(), 3u);
    EXPECT_EQ(always.data[0]["usage"]["completion_tokens"], 1);
    EXPECT_EQ(always.data[1]["usage"]["completion_tokens"], 2);
    EXPECT_EQ(always.data[1]["usage"]["prompt_tokens"], 3);
    EXPECT_FALSE(always.data[0]["usage"].contains("prompt_tokens_details")); // not known before the end
    EXPECT_EQ(always.data[2]["usage"].value("prompt_tokens_details", Json()), (Json{{"cached_tokens", 1}}));
    served_.backend.counts_prompts_first = true;
    for (const char* members : {R"("stream":true,"max_tokens":2,"stream_options":{"continuous_usage_stats":true})", R"("stream":true,"max_tokens":2,"n":2,"stream_options":{"continuous_usage_stats":true,"include_usage":true})"})
        for (const Json& chunk : stream("/v1/completions", completion(members)).data)
            EXPECT_EQ(chunk["usage"].value("prompt_tokens_details", Json()), (Json{{"cached_tokens", 1}})) << chunk;
}

TEST_F(ServerAnswers, StreamsTellWhereTokensComeFrom) {
    served_.backend.tokens_per_event = 3;
    const Events events = stream("/v1/chat/completions", chat(R"("stream":true,"max_tokens":4,"auspex":{"origins":true},"return_tokens":true)"));
    EXPECT_EQ(events.data[0]["auspex"]["tokens"], Json::parse("[[100,1,3],[101,1,3],[102,3,3]]"));
    EXPECT_EQ(events.data[1]["auspex"]["tokens"], Json::parse("[[103,1,3]]"));
    EXPECT_EQ(events.data[0]["tokens"], Json({100, 101, 102}));
    const Json& last = events.data.back();
    EXPECT_EQ(last["timings"]["draft_n_accepted"], 3);
    EXPECT_EQ(last["auspex"]["accepted_histogram"], Json({0, 0, 0, 1}));
}

TEST_F(ServerAnswers, StreamsOfSeveralChoicesAndEcho) {
    const Events events = stream("/v1/completions", R"({"prompt":["ab","c"],"n":2,"echo":true,"stream":true,"max_tokens":3})");
    EXPECT_TRUE(events.is_done);
    std::map<size_t, int> ends;
    size_t with_timings = 0;
    for (const Json& chunk : events.data) {
        ASSERT_EQ(chunk["choices"].size(), 1u);
        if (!chunk["choices"][0]["finish_reason"].is_null()) ++ends[chunk["choices"][0]["index"]];
        with_timings += chunk.contains("timings") ? 1 : 0;
    }
    EXPECT_EQ(ends, (std::map<size_t, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
    EXPECT_EQ(with_timings, 1u);
    for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ(events.text(i), (i < 2 ? "ab" : "c") + words(3));
}

TEST_F(ServerAnswers, StreamsOfLogprobs) {
    Json tokens = Json::array(), whole_tokens = whole("/v1/chat/completions", chat(R"("logprobs":true,"top_logprobs":2)"))["choices"][0]["logprobs"]["content"];
    for (const Json& chunk : stream("/v1/chat/completions", chat(R"("logprobs":true,"top_logprobs":2,"stream":true)")).data)
        for (const Json& token : chunk["choices"][0]["logprobs"].value("content", Json::array()))
            tokens.push_back(token);
    EXPECT_EQ(tokens.size(), 8u); // the end token has no text
    EXPECT_EQ(tokens, whole_tokens);
    EXPECT_EQ(tokens[1], Json::parse(R"({"token":"w1 ","logprob":-0.5625,"bytes":[119,49,32],"top_logprobs":[{"token":"w1 ","logprob":-0.5625,"bytes":[119,49,32]},{"token":"w2 ","logprob":-1.5625,"bytes":[119,50,32]}]})"));
}

TEST_F(ServerAnswers, StreamsOfLlamaCpp) {
    const Events events = stream("/completion", R"({"prompt":"abc","n_predict":2,"stream":true})");
    EXPECT_FALSE(events.is_done); // it has no such word
    ASSERT_EQ(events.data.size(), 3u);
    EXPECT_EQ(events.data[0], Json::parse(R"({"index":0,"content":"w0 ","stop":false,"tokens_predicted":1,"tokens_evaluated":3})"));
    EXPECT_EQ(events.data[2]["stop"], true);
    EXPECT_EQ(events.data[2]["content"], "");
    EXPECT_EQ(events.data[2]["stop_type"], "limit");
    EXPECT_EQ(events.text(), words(2));
}

TEST_F(ServerAnswers, NothingToSay) {
    const Events events = stream("/v1/chat/completions", chat(R"("stream":true,"max_tokens":0)"));
    ASSERT_EQ(events.data.size(), 1u);
    EXPECT_EQ(events.data[0]["choices"][0]["delta"], Json::parse(R"({"role":"assistant","content":""})"));
    EXPECT_EQ(events.data[0]["choices"][0]["finish_reason"], "length");
    EXPECT_TRUE(events.is_done);
}

TEST_F(ServerAnswers, WhoeverWaitsIsTold) {
    served_.backend.slots = 1;
    served_.backend.event_us = 1000;
    served_.backend.says_nothing = true;
    served_.backend.rows_to_read = 12;
    StreamClient first(served_.port(), post_json("/v1/chat/completions", chat(R"("stream":true)")));
    ASSERT_TRUE(first.wait_for(": prompt 0/12\n\n"));
    StreamClient second(served_.port(), post_json("/v1/chat/completions", chat(R"("stream":true)")));
    ASSERT_TRUE(second.wait_for(": queued 1\n\n"));
    StreamClient third(served_.port(), post_json("/v1/chat/completions", chat(R"("stream":true)")));
    ASSERT_TRUE(third.wait_for(": queued 2\n\n"));
    served_.backend.rows_read = 6;
    ASSERT_TRUE(first.wait_for(": prompt 6/12\n\n"));
    second.client.close();
    ASSERT_TRUE(third.wait_for(": queued 1\n\n"));
    served_.backend.says_nothing = false;
    for (StreamClient* stream : {&first, &third}) {
        const Reply reply = stream->client.read_reply();
        EXPECT_TRUE(Events(reply.body).is_done);
        EXPECT_EQ(Events(reply.body).text(), words(8));
    }
}

TEST(ServerSilence, IsFilledWithComments) {
    Settings settings = quick_settings();
    settings.silence = 50ms;
    ServedStandIn served(settings);
    served.backend.says_nothing = true;
    StreamClient stream(served.port(), post_json("/v1/completions", completion(R"("stream":true)")));
    std::this_thread::sleep_for(300ms);
    served.backend.says_nothing = false;
    const Reply reply = stream.client.read_reply();
    const Events events(reply.body);
    EXPECT_GE(events.comments.size(), 2u);
    EXPECT_EQ(events.comments[0], "still here");
    EXPECT_EQ(events.text(), words(8));
}

// ---- errors
// ------------------------------------------------------------------------------------------------------------

TEST_F(ServerAnswers, RefusedBeforeTheHead) {
    for (const char* members : {R"("stream":true)", R"("stream":false)"}) {
        served_.backend.refuses_prepare = true;
        Reply reply = ask(served_.port(), post_json("/v1/completions", completion(members)));
        EXPECT_EQ(refusal_of(reply), "400 prompt context_length_exceeded");
        EXPECT_EQ(header_of(reply, "X-Request-Id").size(), 28u);
        served_.backend.refuses_prepare = false;
        served_.backend.refuses_begin = true;
        EXPECT_EQ(refusal_of(ask(served_.port(), post_json("/v1/completions", completion(members)))), "400 - -");
        served_.backend.refuses_begin = false;
    }
    EXPECT_EQ(refusal_of(ask(served_.port(), post_json("/v1/completions", R"({"prompt":["a","b","c"],"n":16,"seed":3.5})"))), "400 seed -");
    EXPECT_EQ(served_.backend.n_begun, 0u);
    EXPECT_TRUE(served_.is_idle());
    EXPECT_EQ(ask(served_.port(), post_json("/v1/completions", completion(R"("n":1)"))).status, 200);
}

TEST_F(ServerAnswers, MoreChoicesThanThereMayEverBe) {
    EXPECT_EQ(refusal_of(ask(served_.port(), post_json("/v1/completions", R"({"prompt":["a","b","c","d","e","f"],"n":16})"))).substr(0, 3), "400"); // 96 of 80
    EXPECT_EQ(ask(served_.port(), post_json("/v1/completions", R"({"prompt":["a","b","c","d","e"],"n":16})")).status, 200);
}

TEST_F(ServerAnswers, FailureOfOneIsNotTheOthers) {
    served_.backend.event_us = 20000;
    StreamClient stream(served_.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":1000)")));
    ASSERT_TRUE(stream.wait_for("w0"));
    served_.backend.fails_job = true;
    const Reply reply = stream.client.read_reply();
    EXPECT_FALSE(reply.is_whole); // the client sees that something is missing
    const Events events(reply.body);
    EXPECT_FALSE(events.is_done);
    EXPECT_EQ(events.data.back()["error"]["type"], "server_error");
    EXPECT_EQ(events.data.back()["error"]["message"], "its numbers are none");
    EXPECT_EQ(stream.client.end(), Client::End::closed);
    EXPECT_EQ(refusal_of(ask(served_.port(), post_json("/v1/completions", completion(R"("n":1)")))), "500 - -");
    served_.backend.fails_job = false;
    EXPECT_EQ(ask(served_.port(), post_json("/v1/completions", completion(R"("n":1)"))).status, 200);
    EXPECT_TRUE(wait_until([&] { return served_.is_idle(); }));
}

} // namespace
} // namespace auspex::test::answers_test
