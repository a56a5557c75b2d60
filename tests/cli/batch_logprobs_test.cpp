// Log-probabilities in the answers of auspex batch: those of auspex score, whoever drafts, and none of what is not in
// the answer.
#include "cli/batch_files.h"

#include <algorithm>

namespace auspex::test::batch_logprobs_test {

namespace {

const std::string kStory = "Once upon a time there was a curious fox named Ruby.";

std::string joined(const Json& ids) {
    std::string text;
    for (const Json& id : ids)
        text += (text.empty() ? "" : ",") + id.dump();
    return text;
}

std::string bytes_of(const Json& content) {
    std::string text;
    for (const Json& token : content)
        for (const Json& byte : token["bytes"])
            text += static_cast<char>(byte.get<int>());
    return text;
}

void expect_sorted(const Json& top, size_t n) {
    EXPECT_EQ(top.size(), n);
    EXPECT_TRUE(std::is_sorted(top.begin(), top.end(), [](const Json& a, const Json& b) {
        return a["logprob"].get<double>() > b["logprob"].get<double>();
    })) << top;
}

} // namespace

TEST(CliBatch, LogProbabilitiesAreThoseOfScore) {
    std::string lines;
    for (const int draft_len : {0, 3})
        lines += request("text " + std::to_string(draft_len),
                         {{"prompt", kStory}, {"max_tokens", 40}, {"logprobs", 5}, {"draft_len", draft_len}}) +
                 chat_request("chat " + std::to_string(draft_len),
                              {{"messages", {{{"role", "user"}, {"content", "Hello!"}}}},
                               {"max_tokens", 40},
                               {"logprobs", true},
                               {"top_logprobs", 20},
                               {"draft_len", draft_len}});
    lines += request("none", {{"prompt", kStory}, {"max_tokens", 40}});
    const Files files(lines);
    files.run();
    auto texts = texts_of(files.out);
    const Json &text = texts["text 0"][0], &chat = texts["chat 0"][0];
    EXPECT_EQ(texts["text 3"], texts["text 0"]) << "bit for bit, with drafts and without";
    EXPECT_EQ(texts["chat 3"], texts["chat 0"]);
    EXPECT_TRUE(texts["none"][0]["logprobs"].is_null());
    EXPECT_EQ(texts["none"][0]["text"], text["text"]);

    const auto expect_score = [](const std::vector<std::string>& flags, const std::vector<double>& logprobs) {
        std::vector<std::string> all = {"run", "-c", "512", "-n", "40"};
        all.insert(all.end(), flags.begin(), flags.end());
        const Json run = run_cli_json(all);
        const Json &prompt = run["prompt_tokens"], &said = run["completions"][0]["tokens"];
        const bool has_end = run["completions"][0]["stop_reason"] == "eos";
        ASSERT_EQ(logprobs.size(), said.size() - (has_end ? 1 : 0));
        const Json score =
            run_cli_json({"score", "-c", "512", "--tokens", joined(prompt) + "," + joined(said)})["logprobs"];
        for (size_t i = 0; i < logprobs.size(); ++i)
            EXPECT_NEAR(logprobs[i], score[prompt.size() + i].get<double>(), 1e-4) << i;
    };
    const Json& of_text = text["logprobs"];
    EXPECT_EQ(keys_of(of_text), (std::vector<std::string>{"tokens", "token_logprobs", "top_logprobs", "text_offset"}));
    expect_score({"-p", kStory}, of_text["token_logprobs"].get<std::vector<double>>());
    std::string all;
    for (size_t i = 0; i < of_text["tokens"].size(); ++i) {
        EXPECT_EQ(of_text["text_offset"][i], all.size()); // all of it is ASCII
        all += of_text["tokens"][i];
        const Json& top = of_text["top_logprobs"][i];
        EXPECT_EQ(top.size(), 5u) << "a greedy answer says one of them";
        EXPECT_EQ(top.begin().key(), of_text["tokens"][i].get<std::string>());
        EXPECT_TRUE(std::is_sorted(top.begin(), top.end(),
                                   [](const Json& a, const Json& b) { return a.get<double>() > b.get<double>(); }));
    }
    EXPECT_EQ(all, text["text"].get<std::string>());

    const Json& content = chat["logprobs"]["content"];
    std::vector<double> logprobs;
    for (const Json& token : content) {
        EXPECT_EQ(keys_of(token), (std::vector<std::string>{"token", "logprob", "bytes", "top_logprobs"}));
        logprobs.push_back(token["logprob"]);
        expect_sorted(token["top_logprobs"], 20);
        EXPECT_EQ(token["top_logprobs"][0]["bytes"], token["bytes"]);
        EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);
    }
    expect_score({"--chat", "-p", "Hello!"}, logprobs);
    EXPECT_EQ(bytes_of(content), chat["message"]["content"].get<std::string>());
}

TEST(CliBatch, LogProbabilitiesOfEveryChoiceAndEveryEnd) {
    const Json user = {{{"role", "user"}, {"content", "Tell me a story."}}};
    const Json common = {{"messages", user}, {"logprobs", true}, {"top_logprobs", 2}, {"temperature", 1}, {"seed", 5}};
    const auto with = [&](Json more) {
        more.update(common);
        return more;
    };
    const Files files(chat_request("choices", with({{"max_tokens", 30}, {"n", 5}})) +
                      chat_request("to its end", with({{"max_tokens", 400}, {"n", 2}})) +
                      chat_request("past its end", with({{"max_tokens", 400}, {"ignore_eos", true}})) +
                      chat_request("nothing", with({{"max_tokens", 0}, {"n", 2}})));
    files.run();
    auto texts = texts_of(files.out);
    size_t n_controls = 0;
    for (const auto& [id, choices] : texts) {
        SCOPED_TRACE(id);
        for (const Json& choice : choices) {
            const Json& content = choice["logprobs"]["content"];
            std::string all;
            for (const Json& token : content) {
                expect_sorted(token["top_logprobs"], 2);
                if (token["bytes"].is_null()) {
                    ++n_controls;
                    EXPECT_EQ(id, "past its end");
                    EXPECT_NE(token["token"], "");
                } else {
                    all += bytes_of(Json::array({token}));
                }
            }
            EXPECT_EQ(all, choice["message"]["content"].get<std::string>());
            if (id == "choices" && choice["finish_reason"] == "length") {
                EXPECT_EQ(content.size(), 30u);
            }
        }
    }
    EXPECT_GT(n_controls, 0u) << "an end that is ignored has its spelling";
    EXPECT_EQ(texts["past its end"][0]["logprobs"]["content"].size(), 400u);
    EXPECT_EQ(texts["nothing"][1]["logprobs"]["content"], Json::array());
}

TEST(CliBatch, AStopTextTrimsLogProbabilities) {
    const Files whole(request("whole", {{"prompt", kStory}, {"max_tokens", 60}, {"logprobs", 1}}));
    whole.run();
    const Json all = texts_of(whole.out)["whole"][0];
    const std::string text = all["text"];
    // Stops that begin with a token, inside one, and that end inside one; of drafts and without.
    std::string lines;
    std::vector<size_t> ends;
    for (const size_t at : {9, 17, 26, 33, 41})
        for (const size_t n_bytes : {3, 8})
            for (const int draft_len : {0, 1, 3, 8}) {
                lines += request(std::to_string(ends.size()), {{"prompt", kStory},
                                                               {"max_tokens", 60},
                                                               {"logprobs", 1},
                                                               {"stop", text.substr(at, n_bytes)},
                                                               {"draft_len", draft_len}});
                ends.push_back(text.find(text.substr(at, n_bytes)));
            }
    const Files files(lines);
    files.run();
    auto texts = texts_of(files.out);
    for (size_t i = 0; i < ends.size(); ++i) {
        SCOPED_TRACE(i);
        const Json& choice = texts[std::to_string(i)][0];
        EXPECT_EQ(choice["text"], text.substr(0, ends[i]));
        EXPECT_EQ(choice["finish_reason"], "stop");
        const Json& trimmed = choice["logprobs"];
        for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
            Json expected = Json::array();
            for (size_t k = 0; k < all["logprobs"]["tokens"].size(); ++k)
                if (all["logprobs"]["text_offset"][k] < ends[i]) expected.push_back(all["logprobs"][list][k]);
            EXPECT_EQ(trimmed[list], expected) << list;
        }
    }
}

} // namespace auspex::test::batch_logprobs_test
