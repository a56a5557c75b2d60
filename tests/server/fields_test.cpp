// Every field of a request at its least and most, beyond them, and of every wrong type; and requests that are put together by chance.
#include "server_peers.h"

#include <random>

namespace auspex::test::fields_test {
namespace {

enum class Where { all, openai, chat, completions, llama };

struct Field {
    const char* name;
    std::vector<std::string> good, bad;
    Where where = Where::all;
    const char* beside = "";          // what else it needs
    const char* named = nullptr;      // in errors, where it is another
};

const std::string kLong256 = "\"" + std::string(256, 'a') + "\"", kLong257 = "\"" + std::string(257, 'a') + "\"";

std::string repeated(const std::string& what, int n) {
    std::string text;
    for (int i = 0; i < n; ++i)
        text += (i > 0 ? "," : "") + what;
    return "[" + text + "]";
}

std::string biases(int n) {
    std::string text;
    for (int i = 0; i < n; ++i)
        text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
    return "{" + text + "}";
}

// Wrong for whole numbers, for all numbers, for booleans and for strings.
const std::vector<std::string> kNoWhole = {"1.5", "\"1\"", "true", "[]", "{}", "9223372036854775808", "-9223372036854775809", "1e300", "18446744073709551616"};
const std::vector<std::string> kNoNumber = {"\"1\"", "true", "[1]", "{}", "1e300", "-1e300"};
const std::vector<std::string> kNoBoolean = {"0", "1", "\"true\"", "[]", "{}"};
const std::vector<std::string> kNoText = {"1", "true", "[\"a\"]", "{}"};

std::vector<std::string> operator+(std::vector<std::string> all, const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

const std::vector<Field>& fields() {
    using V = std::vector<std::string>;
    static const std::vector<Field> all = {
        {"model", {"\"\"", kLong256, "null"}, V{kLong257} + kNoText},
        {"user", {"\"\"", kLong256}, V{kLong257} + kNoText},
        {"prompt_cache_key", {kLong256}, V{kLong257} + kNoText},
        {"cache_salt", {"\"\"", kLong256, "null"}, V{kLong257, "\"a\\u0000\""} + kNoText},
        {"max_tokens", {"0", "1", "4096", "null"}, V{"-1", "4097"} + kNoWhole},
        {"max_completion_tokens", {"0", "4096"}, V{"-1", "4097"} + kNoWhole},
        {"n_predict", {"-1", "0", "4096"}, V{"-2", "4097"} + kNoWhole},
        {"n", {"1", "16", "null"}, V{"0", "-1", "17"} + kNoWhole, Where::openai},
        {"n", {"1"}, {"0", "2"}, Where::llama},
        {"seed", {"0", "-9223372036854775808", "9223372036854775807"}, kNoWhole},
        {"temperature", {"0", "5", "0.5", "5e-324", "-0.0"}, V{"-0.001", "5.001"} + kNoNumber},
        {"top_p", {"1", "0.0001", "5e-324"}, V{"0", "-1", "1.001"} + kNoNumber},
        {"min_p", {"0", "1"}, V{"-0.1", "1.1"} + kNoNumber},
        {"top_k", {"0", "32000"}, V{"-1", "32001"} + kNoWhole},
        {"repeat_penalty", {"0.1", "10"}, V{"0.09", "10.1", "0", "-1"} + kNoNumber},
        {"presence_penalty", {"-2", "2"}, V{"-2.1", "2.1"} + kNoNumber},
        {"frequency_penalty", {"-2", "2"}, V{"-2.1", "2.1"} + kNoNumber},
        {"priority", {"-10", "10"}, V{"-11", "11"} + kNoWhole},
        {"logit_bias",
         {"{}", "[]", R"({"0":-100,"31999":100})", "[[5,false],[6,1.5]]", biases(1024)},
         {"5", "\"a\"", "true", R"({"32000":1})", R"({"-1":1})", R"({"a":1})", R"({"1.5":1})", R"({"":1})", R"({"99999999999999999999":1})", R"({"5":100.1})", R"({"5":-101})", R"({"5":"a"})", R"({"5":true})", R"({"5":null})", "[5]", "[[5]]", "[[5,1,2]]", "[[5,1],[5,2]]", R"([["5",1]])", "[[-1,1]]", "[[5,[]]]", R"({"5":1,"05":2})", biases(1025)}},
        {"stop",
         {"null", "[]", "\"a\"", kLong256, repeated("\"ab\"", 16)},
         {"\"\"", "5", "true", "{}", "[5]", "[\"\"]", "[[\"a\"]]", "[null]", kLong257, "\"a\\u0000\"", repeated("\"ab\"", 17)}},
        {"ignore_eos", {"true", "false", "null"}, kNoBoolean},
        {"cache_prompt", {"true", "false"}, kNoBoolean},
        {"timings_per_token", {"false", "null"}, V{"true"} + kNoBoolean},
        {"return_progress", {"false", "null"}, V{"true"} + kNoBoolean},
        {"return_tokens", {"true", "false"}, kNoBoolean},
        {"echo", {"true", "false"}, kNoBoolean, Where::completions},
        {"echo", {"false"}, {"true"}, Where::completions, R"("logprobs":1)"},
        {"echo", {"false", "null"}, V{"true"} + kNoBoolean, Where::llama},
        {"logprobs", {"false", "null"}, {"0", "1", "true", "\"1\""}, Where::llama},
        {"stream", {"true", "false", "null"}, kNoBoolean},
        {"stream_options", {"{}", "null", R"({"include_usage":true,"continuous_usage_stats":false})"}, V{"5", "[]", "\"a\"", "true"}, Where::all, R"("stream":true)"},
        {"stream_options", {}, {R"({"include_usage":1})", R"({"include_usage":"true"})"}, Where::all, R"("stream":true)", "stream_options.include_usage"},
        {"stream_options", {}, {R"({"continuous_usage_stats":1})"}, Where::all, R"("stream":true)", "stream_options.continuous_usage_stats"},
        {"stream_options", {"null"}, {"{}"}, Where::all, R"("stream":false)"},
        {"auspex", {"{}", "null", R"({"origins":true})"}, V{"5", "[]", "\"a\"", "true"}},
        {"auspex", {}, {R"({"origins":1})"}, Where::all, R"("stream":true)", "auspex.origins"},
        {"logprobs", {"0", "20", "false", "null"}, V{"-1", "21"} + kNoWhole, Where::completions},
        {"logprobs", {"true", "false", "null"}, kNoBoolean, Where::chat},
        {"top_logprobs", {"0", "20", "null"}, V{"-1", "21"} + kNoWhole, Where::chat, R"("logprobs":true)"},
        {"top_logprobs", {"null"}, {"0", "5"}, Where::chat, R"("logprobs":false)"},
        {"draft_len", {"0", "8", "\"auto\"", "null"}, V{"-1", "9", "\"many\""} + kNoWhole},
        {"drafter", {"\"model\"", "null"}, V{"\"nobody\"", "5", "true", "[]", "{}", "\"self\""}},
        {"acceptance", {"\"rejection\"", "\"coupled\""}, V{"\"other\"", "5", "true", "[]"}},
        {"response_format", {R"({"type":"text"})", "null"}, {"5", "\"text\"", "[]", R"({"type":"json_object"})", R"({"type":"json_schema","json_schema":{}})"}},
        {"response_format", {}, {"{}", R"({"type":5})"}, Where::all, "", "response_format.type"},
        {"tools", {"[]", "null"}, {R"([{"type":"function"}])", "{}", "5", "\"a\""}},
        {"functions", {"[]"}, {R"([{}])", "5"}},
        {"tool_choice", {"\"none\"", "\"auto\"", "null"}, {"\"required\"", "{}", "5"}},
        {"function_call", {"\"none\"", "\"auto\""}, {R"({"name":"a"})", "5"}},
        {"suffix", {"\"\"", "null"}, {"\"a\"", "5"}},
        {"n_probs", {"0"}, V{"1", "-1"} + kNoWhole},
        {"best_of", {"1"}, V{"2", "0"} + kNoWhole},
        {"prompt",
         {"\"a\"", "[\"a\",\"b\"]", "[0,31999]", "[[0],[31999]]"},
         {"null", "5", "true", "{}", "[]", "[32000]", "[-1]", "[1,1.5]", "[1,\"a\"]", "[1,null]", repeated("\"a\"", 1025)}, Where::completions},
        {"prompt", {}, {"[\"a\",5]", "[\"a\",null]", "[[0],5]"}, Where::completions, "", "prompt[1]"},
        {"prompt", {}, {"[[]]", "[[32000]]", "[[1.5]]", "[true]", "[{}]"}, Where::completions, "", "prompt[0]"},
        {"prompt", {"\"a\"", "[5,6]"}, {"null", "5", "[]", "[\"a\",\"b\"]", "[[5],[6]]"}, Where::llama},
        {"messages",
         {R"([{"role":"user","content":"a"}])", R"([{"role":"developer","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]},{"role":"assistant","content":""}])"},
         {"null", "5", "\"a\"", "[]", "{}"}, Where::chat},
        {"messages", {}, {"[5]", "[null]", "[[]]"}, Where::chat, "", "messages[0]"},
        {"messages", {}, {"[{}]", R"([{"role":5,"content":"a"}])", R"([{"role":"robot","content":"a"}])", R"([{"role":"tool","content":"a"}])", R"([{"role":"function","content":"a"}])"}, Where::chat, "", "messages[0].role"},
        {"messages", {}, {R"([{"role":"user"}])", R"([{"role":"user","content":null}])", R"([{"role":"user","content":5}])", R"([{"role":"user","content":{}}])"}, Where::chat, "", "messages[0].content"},
        {"messages", {}, {R"([{"role":"user","content":[{"type":"image_url"}]}])", R"([{"role":"user","content":[{}]}])"}, Where::chat, "", "messages[0].content[0].type"},
        {"messages", {}, {R"([{"role":"user","content":[{"type":"text"}]}])", R"([{"role":"user","content":[{"type":"text","text":5}]}])"}, Where::chat, "", "messages[0].content[0].text"},
        {"messages", {}, {R"([{"role":"assistant","content":"a","tool_calls":[]}])"}, Where::chat, "", "messages[0].tool_calls"},
    };
    return all;
}

bool is_at(Where where, const std::string& path) {
    switch (where) {
    case Where::all:
        return true;
    case Where::openai:
        return path != "/completion";
    case Where::chat:
        return path == "/v1/chat/completions";
    case Where::completions:
        return path == "/v1/completions";
    case Where::llama:
        return path == "/completion";
    }
    return false;
}

// With the field; what else is needed comes before it.
std::string body_with(const std::string& path, const Field& field, const std::string& value) {
    std::string body = "{";
    const std::string name = field.name;
    if (name != "prompt" && path != "/v1/chat/completions") body += R"("prompt":"a",)";
    if (name != "messages" && path == "/v1/chat/completions") body += R"("messages":[{"role":"user","content":"a"}],)";
    if (*field.beside) body += std::string(field.beside) + ",";
    return body + "\"" + name + "\":" + value + "}";
}

TEST(ServerFields, AtTheirLimitsAndBeyond) {
    ServedStandIn served;
    served.backend.n_tokens = 1;
    served.backend.tokens_per_event = 4096;
    Client client(served.port());
    size_t n = 0;
    for (const std::string path : {"/v1/chat/completions", "/v1/completions", "/completion"})
        for (const Field& field : fields()) {
            if (!is_at(field.where, path)) continue;
            for (const std::string& value : field.good) {
                const Reply reply = client.ask(post_json(path, body_with(path, field, value)));
                EXPECT_EQ(reply.status, 200) << path << " " << body_with(path, field, value).substr(0, 200) << reply.body;
                ++n;
            }
            for (const std::string& value : field.bad) {
                const Reply reply = client.ask(post_json(path, body_with(path, field, value)));
                const std::string named = field.named ? field.named : field.name;
                EXPECT_TRUE(refusal_of(reply).starts_with("400 " + named + " ")) << path << " " << body_with(path, field, value).substr(0, 200) << reply.status << reply.body;
                ++n;
            }
        }
    EXPECT_GT(n, 700u);
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
}

// Requests from a grammar: fields with good and bad values in any number and order. Each is answered, or refused for one of
// the fields that are wrong.
TEST(ServerFields, PutTogetherByChance) {
    ServedStandIn served;
    served.backend.n_tokens = 1;
    served.backend.tokens_per_event = 4096;
    Client client(served.port());
    std::mt19937 random(7);
    const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
    size_t n_answered = 0;
    const char* times = std::getenv("AUSPEX_REQUESTS");
    const int n_requests = times ? std::atoi(times) : 600;
    for (int i = 0; i < n_requests; ++i) {
        const std::string path = std::array{"/v1/chat/completions", "/v1/completions", "/completion"}[pick(3)];
        std::map<std::string, std::string> members = {{"prompt", "\"a\""}, {"messages", R"([{"role":"user","content":"a"}])"}};
        for (size_t k = pick(8); k > 0; --k) {
            const Field& field = fields()[pick(fields().size())];
            const bool is_good = field.bad.empty() || (pick(8) != 0 && !field.good.empty());
            const auto& values = is_good ? field.good : field.bad;
            if (!values.empty()) members[field.name] = values[pick(values.size())];
        }
        std::string body;
        for (const auto& [name, value] : members)
            body += (body.empty() ? "{\"" : ",\"") + name + "\":" + value;
        body += "}";
        if (pick(10) == 0) body.erase(pick(body.size()), 1 + pick(3)); // damaged
        const Reply reply = client.ask(post_json(path, body));
        const Json answer = json_of(reply);
        if (reply.status == 200) {
            ++n_answered;
            EXPECT_TRUE(reply.is_whole) << body;
            if (header_of(reply, "Content-Type") == "text/event-stream")
                EXPECT_FALSE(Events(reply.body).data.empty());
            else
                EXPECT_TRUE(answer.is_object()) << body;
        } else {
            ASSERT_EQ(reply.status, 400) << body << reply.body;
            ASSERT_TRUE(answer.is_object() && answer["error"]["message"].is_string()) << reply.body;
            const Json& param = answer["error"]["param"];
            const std::string message = answer["error"]["message"];
            EXPECT_TRUE(!param.is_string() || message.starts_with(param.get<std::string>() + ": ")) << reply.body;
        }
    }
    EXPECT_GT(n_answered, static_cast<size_t>(n_requests) / 10);
    EXPECT_TRUE(wait_until([&] { return served.is_idle(); }));
}

} // namespace
} // namespace auspex::test::fields_test
