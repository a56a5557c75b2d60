// Every path, with every method, key, origin and body that gets no further than the first look.
#include "server_peers.h"

#include <set>

namespace auspex::test::endpoints_test {
namespace {

struct Path {
    const char* method;
    const char* path;
    const char* body; // a good one
    bool is_open;
};
const std::vector<Path> kPaths = {
    {"POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})", false},
    {"POST", "/v1/completions", R"({"prompt":"a"})", false},
    {"POST", "/completion", R"({"prompt":"a"})", false},
    {"GET", "/v1/models", "", false},
    {"GET", "/v1/models/stand-in", "", false},
    {"GET", "/health", "", true},
    {"GET", "/v1/health", "", true},
    {"GET", "/health/live", "", true},
    {"GET", "/metrics", "", false},
    {"GET", "/props", "", false},
    {"GET", "/slots", "", false},
    {"POST", "/tokenize", R"({"content":"ab"})", false},
    {"POST", "/detokenize", R"({"tokens":[97,98]})", false},
    {"POST", "/apply-template", R"({"messages":[{"role":"user","content":"a"}]})", false},
    {"GET", "/", "", true},
    {"GET", "/page.js", "", true},
};

std::string request_to(const Path& path, const std::string& headers = "", const std::string& method = "") {
    const std::string how = method.empty() ? path.method : method;
    if (how != "POST") return how + " " + path.path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
    return post_json(path.path, path.body, headers);
}

void expect_id(const Reply& reply, const std::string& what) {
    const std::string id = header_of(reply, "X-Request-Id");
    EXPECT_TRUE(id.starts_with("req-") && id.size() == 28) << what << ": " << reply.head;
}

TEST(ServerPaths, AllAreThereAndNamedByAnId) {
    ServedStandIn served;
    for (const Path& path : kPaths) {
        Client client(served.port());
        const Reply reply = client.ask(request_to(path));
        EXPECT_EQ(reply.status, 200) << path.path << reply.body;
        expect_id(reply, path.path);
        if (std::string_view(path.method) != "GET") continue;
        const Reply head = client.ask(request_to(path, "", "HEAD"), false); // on the same connection: no body comes
        EXPECT_EQ(head.status, 200) << path.path;
        EXPECT_NE(header_of(head, "Content-Length"), "0") << path.path;
        expect_id(head, path.path);
    }
}

TEST(ServerPaths, OtherMethodsAndPathsAreNot) {
    ServedStandIn served;
    for (const Path& path : kPaths) {
        for (const char* method : {"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "BREW"}) {
            const bool fits = method == std::string_view(path.method) || (std::string_view(path.method) == "GET" && method == std::string_view("HEAD"));
            if (fits) continue;
            const bool is_head = method == std::string_view("HEAD");
            const Reply reply = ask(served.port(), request_to(path, "", method), !is_head);
            if (is_head)
                EXPECT_EQ(reply.status, 405) << path.path;
            else
                EXPECT_EQ(refusal_of(reply), "405 - method_not_allowed") << method << path.path;
            EXPECT_EQ(header_of(reply, "Allow"), path.method == std::string_view("GET") ? "GET, HEAD" : path.method) << method << path.path;
            expect_id(reply, path.path);
        }
    }
    for (const char* target : {"/v1", "/v1/models/", "/v1/chat/completions/", "/V1/models", "/completions", "/page.js/", "/../page.js", "//"}) {
        EXPECT_EQ(refusal_of(ask(served.port(), get(target))), "404 - not_found") << target;
        EXPECT_EQ(type_of(ask(served.port(), get(target))), "not_found_error") << target;
        EXPECT_EQ(refusal_of(ask(served.port(), post_json(target, "{}"))), "404 - not_found") << target;
    }
    EXPECT_EQ(ask(served.port(), get("/v1/models?a=/v2")).status, 200); // a query changes no path
    EXPECT_EQ(refusal_of(ask(served.port(), get("/v1/models/gpt-4"))), "404 - model_not_found");
    EXPECT_EQ(type_of(ask(served.port(), get("/v1/models/gpt-4"))), "not_found_error");
    EXPECT_EQ(type_of(ask(served.port(), post_json("/v1/models", "{}"))), "invalid_request_error");
}

TEST(ServerPaths, WhatTheySay) {
    ServedStandIn served;
    const Json models = json_of(ask(served.port(), get("/v1/models")));
    EXPECT_EQ(models["object"], "list");
    EXPECT_EQ(models["data"][0]["id"], "stand-in");
    EXPECT_EQ(models["data"][0], json_of(ask(served.port(), get("/v1/models/stand-in"))));
    EXPECT_EQ(json_of(ask(served.port(), get("/health"))), (Json{{"status", "ok"}}));
    const Json props = json_of(ask(served.port(), get("/props")));
    EXPECT_EQ(props["total_slots"], 16);
    EXPECT_EQ(props["n_ctx"], 4096);
    EXPECT_EQ(props["default_generation_settings"]["params"]["temperature"], 0.0);
    EXPECT_EQ(json_of(ask(served.port(), post_json("/tokenize", R"({"content":"ab","add_special":true})")))["tokens"], Json({1, 97, 98}));
    EXPECT_EQ(json_of(ask(served.port(), post_json("/tokenize", R"({"content":"b","with_pieces":true})")))["tokens"], Json::parse(R"([{"id":98,"piece":"b"}])"));
    EXPECT_EQ(json_of(ask(served.port(), post_json("/tokenize", R"({"content":"é","with_pieces":true})")))["tokens"][0]["id"], 0xffffffc3u); // of the stand-in
    EXPECT_EQ(json_of(ask(served.port(), post_json("/detokenize", R"({"tokens":[97,98]})")))["content"], "ab");
    EXPECT_EQ(json_of(ask(served.port(), post_json("/apply-template", kChat)))["prompt"], "kkkkk");
    for (const auto& [path, body, refusal] : std::vector<std::array<const char*, 3>>{
             {"/tokenize", "{}", "400 content -"},
             {"/tokenize", R"({"content":5})", "400 content -"},
             {"/tokenize", R"({"content":"a","add_special":1})", "400 add_special -"},
             {"/tokenize", "[]", "400 - -"},
             {"/detokenize", "{}", "400 tokens -"},
             {"/detokenize", R"({"tokens":[32000]})", "400 tokens -"},
             {"/detokenize", R"({"tokens":[-1]})", "400 tokens -"},
             {"/detokenize", R"({"tokens":["a"]})", "400 tokens -"},
             {"/apply-template", "{}", "400 messages -"},
             {"/apply-template", "5", "400 - -"}})
        EXPECT_EQ(refusal_of(ask(served.port(), post_json(path, body))), refusal) << path << body;
    served.backend.event_us = 2000000;
    StreamClient running(served.port(), post_json("/v1/completions", completion(R"("stream":true,"n":2)")));
    ASSERT_TRUE(running.wait_for("w0"));
    EXPECT_TRUE(wait_until([&] { return json_of(ask(served.port(), get("/slots")))[0].value("state", "") == "running"; }));
    const Json slots = json_of(ask(served.port(), get("/slots")));
    EXPECT_EQ(slots.size(), 16u);
    EXPECT_EQ(slots[0]["n_prompt_tokens"], 3);
    EXPECT_EQ(slots[0]["n_choices"], 2);
    EXPECT_EQ(slots[1]["is_processing"], false);
}

TEST(ServerPaths, ThePageStaysWithItself) {
    ServedStandIn served;
    const Reply page = ask(served.port(), get("/"));
    const std::string etag = header_of(page, "ETag");
    const Reply known = ask(served.port(), get("/", "If-None-Match: " + etag + "\r\n"), false);
    EXPECT_EQ(known.status, 304);
    for (const Reply& reply : {page, known, ask(served.port(), get("/page.js")), ask(served.port(), get("/page.css"))}) {
        EXPECT_EQ(header_of(reply, "Content-Security-Policy"),
                  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
                  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'");
        EXPECT_EQ(header_of(reply, "X-Content-Type-Options"), "nosniff");
        EXPECT_EQ(header_of(reply, "Referrer-Policy"), "no-referrer");
        EXPECT_EQ(header_of(reply, "Cache-Control"), "no-cache");
        EXPECT_GT(header_of(reply, "ETag").size(), 2u);
    }
    EXPECT_EQ(ask(served.port(), get("/", "If-None-Match: \"other\"\r\n")).status, 200);
    Settings settings = quick_settings();
    settings.has_page = false;
    ServedStandIn without(settings);
    EXPECT_EQ(refusal_of(ask(without.port(), get("/"))), "404 - not_found");
    EXPECT_EQ(refusal_of(ask(without.port(), get("/page.js"))), "404 - not_found");
}

// ---- who may ask
// --------------------------------------------------------------------------------------------------------

TEST(ServerGuard, KeysComeBeforeEverything) {
    Settings settings = quick_settings();
    settings.keys = {"first", "second"};
    ServedStandIn served(settings);
    for (const Path& path : kPaths) {
        for (const char* none : {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer first2\r\n", "Authorization: Bearer firs\r\n",
                                 "Authorization: Bearer \r\n", "Authorization: Bearer\r\n", "Authorization: first\r\n", "Authorization: Basic first\r\n",
                                 "x-api-key: \r\n", "x-api-key: FIRST\r\n", "Authorization: Bearer first second\r\n"}) {
            const Reply reply = ask(served.port(), request_to(path, none));
            EXPECT_EQ(reply.status, path.is_open ? 200 : 401) << path.path << none;
            if (path.is_open) continue;
            EXPECT_EQ(refusal_of(reply), "401 - invalid_api_key");
            EXPECT_EQ(type_of(reply), "authentication_error");
            EXPECT_EQ(header_of(reply, "WWW-Authenticate"), "Bearer");
            expect_id(reply, path.path);
        }
        for (const char* good : {"Authorization: Bearer first\r\n", "authorization: bearer   second\r\n", "X-Api-Key: second\r\n", "Authorization: Basic abc\r\nx-api-key: first\r\n"})
            EXPECT_EQ(ask(served.port(), request_to(path, good)).status, 200) << path.path << good;
    }
    // Before routing: nobody without a key learns what there is.
    EXPECT_EQ(ask(served.port(), get("/nothing")).status, 401);
    EXPECT_EQ(ask(served.port(), "DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 401);
    EXPECT_EQ(ask(served.port(), "OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 401);
    // Before the body: it never comes.
    EXPECT_EQ(ask(served.port(), "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n").status, 401);
    EXPECT_EQ(served.backend.n_begun, 3 * 4u); // kPaths' three, with each good key
}

// Each key has beginnings of its own, and within them each salt.
TEST(ServerGuard, KeysPartWhatIsCached) {
    for (const bool is_salted : {false, true}) {
        Settings settings = quick_settings();
        settings.keys = {"first", "second"};
        settings.is_salted_by_key = is_salted;
        ServedStandIn served(settings);
        std::set<std::string> salts;
        for (const char* key : {"first", "second"})
            for (const char* fields : {R"("n":1)", R"("cache_salt":"")", R"("cache_salt":"mine")", R"("cache_salt":"0\nmine")"})
                EXPECT_EQ(ask(served.port(), post_json("/v1/completions", completion(fields), std::string("x-api-key: ") + key + "\r\n")).status, 200);
        for (const std::string& salt : served.backend.salts())
            salts.insert(salt);
        EXPECT_EQ(served.backend.salts().size(), 8u);
        EXPECT_EQ(salts.size(), is_salted ? 6u : 3u);
        EXPECT_EQ(salts.contains(""), !is_salted);
    }
}

TEST(ServerGuard, HostsAndOrigins) {
    Settings settings = quick_settings();
    settings.allowed_hosts = {"models.example.org"};
    settings.cors_origins = {"https://app.example.org"};
    ServedStandIn served(settings);
    const auto status = [&](const std::string& path, const std::string& headers) {
        return ask(served.port(), "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n").status;
    };
    for (const char* path : {"/health", "/v1/models", "/"}) {
        for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:80", "Models.Example.org:80", "10.0.0.7"})
            EXPECT_EQ(status(path, "Host: " + std::string(host) + "\r\n"), 200) << path << host;
        for (const char* host : {"evil.example.org", "localhost.evil.org", "models.example.org.evil.org", "127.0.0.1.evil.org", "[::1", "localhost@evil.org", "xmodels.example.org"})
            EXPECT_NE(status(path, "Host: " + std::string(host) + "\r\n"), 200) << path << host;
        const std::string here = "Host: localhost:8080\r\nOrigin: ";
        for (const char* origin : {"http://localhost:8080", "https://localhost:8080", "https://app.example.org"})
            EXPECT_EQ(status(path, here + origin + "\r\n"), 200) << path << origin;
        for (const char* origin : {"http://localhost", "null", "http://evil.example.org", "https://app.example.org.evil.org", "http://app.example.org", "https://APP.example.org"})
            EXPECT_EQ(status(path, here + origin + "\r\n"), 403) << path << origin;
    }
    // What pages of others are told.
    Reply reply = ask(served.port(), get("/v1/models", "Origin: https://app.example.org\r\n"));
    EXPECT_EQ(header_of(reply, "Access-Control-Allow-Origin"), "https://app.example.org");
    EXPECT_EQ(header_of(reply, "Vary"), "Origin");
    EXPECT_EQ(header_of(reply, "Access-Control-Allow-Credentials"), "");
    EXPECT_EQ(header_of(ask(served.port(), get("/v1/models")), "Access-Control-Allow-Origin"), "");
    const std::string preflight = "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: POST\r\nOrigin: ";
    reply = ask(served.port(), preflight + "https://app.example.org\r\n\r\n", false);
    EXPECT_EQ(reply.status, 204);
    EXPECT_EQ(header_of(reply, "Access-Control-Allow-Methods"), "GET, POST");
    EXPECT_EQ(header_of(reply, "Access-Control-Allow-Headers"), "Authorization, *");
    reply = ask(served.port(), preflight + "https://evil.example.org\r\n\r\n");
    EXPECT_EQ(reply.status, 403);
    EXPECT_EQ(type_of(reply), "permission_error");
    EXPECT_EQ(header_of(reply, "Access-Control-Allow-Origin"), "");
    // Errors and streams have it, too.
    reply = ask(served.port(), post_json("/v1/completions", "{}", "Origin: https://app.example.org\r\n"));
    EXPECT_EQ(refusal_of(reply), "400 prompt -");
    EXPECT_EQ(header_of(reply, "Access-Control-Allow-Origin"), "https://app.example.org");
    for (const char* members : {R"("stream":true)", R"("n":1)"}) {
        reply = ask(served.port(), post_json("/v1/completions", completion(members), "Origin: https://app.example.org\r\n"));
        EXPECT_EQ(reply.status, 200);
        EXPECT_EQ(header_of(reply, "Access-Control-Allow-Origin"), "https://app.example.org") << members;
    }
}

TEST(ServerGuard, ForeignPagesCannotPostOtherTypes) {
    ServedStandIn served;
    for (const Path& path : kPaths) {
        if (std::string_view(path.method) != "POST") continue;
        for (const char* type : {"", "Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n", "Content-Type: multipart/form-data\r\n", "Content-Type: text/plain; application/json\r\n"}) {
            const Reply reply = ask(served.port(), post(path.path, path.body, type));
            EXPECT_EQ(refusal_of(reply), "415 - unsupported_media_type") << path.path << type;
            EXPECT_EQ(type_of(reply), "invalid_request_error");
            expect_id(reply, path.path);
        }
        for (const char* type : {"application/json", "Application/JSON; charset=utf-8", "application/json ;charset=utf-8"})
            EXPECT_EQ(ask(served.port(), post(path.path, path.body, "Content-Type: " + std::string(type) + "\r\n")).status, 200) << type;
    }
}

TEST(ServerGuard, WhatNeverBecameARequest) {
    ServedStandIn served;
    const auto expect_refused = [&](const std::string& request, int status) {
        const Reply reply = ask(served.port(), request);
        EXPECT_EQ(reply.status, status) << request.substr(0, 100);
        EXPECT_TRUE(json_of(reply).contains("error")) << reply.body;
        expect_id(reply, request.substr(0, 100));
    };
    expect_refused("nonsense\r\n\r\n", 400);
    expect_refused("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4194305\r\n\r\n", 413);
    expect_refused("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: gzip\r\n\r\n", 501);
    expect_refused("GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20000, 'x') + "\r\n\r\n", 431);
}

// ---- JSON
// ----------------------------------------------------------------------------------------------------------------

TEST(ServerJson, DamagedAndHostileTexts) {
    ServedStandIn served;
    const auto refusal = [&](const std::string& body) { return refusal_of(ask(served.port(), post_json("/v1/completions", body))); };
    for (const std::string& body : std::vector<std::string>{
             "", "{", "nul", R"({"prompt":"a",})", R"({"prompt":"a"} x)", R"({"prompt":"a","temperature":NaN})", R"({"prompt":"a","temperature":1e999})",
             R"({"prompt":"a","temperature":-1e999})", R"({"prompt":"a","temperature":Infinity})", "{\"prompt\":\"\xff\"}", "{\"prompt\":\"\xc0\xaf\"}", "{\"prompt\":\"\xed\xa0\x80\"}",
             R"({"prompt":"\ud800"})", R"({"prompt":"\ud800a"})", "{\"prompt\":\"a\x01\"}", "\xef\xbb\xbf{", R"({"prompt":"a","seed":01})", R"({'prompt':'a'})",
             std::string(65, '[') + std::string(65, ']'), R"({"prompt":"a","x":)" + std::string(64, '[') + std::string(64, ']') + "}"})
        EXPECT_EQ(refusal(body), "400 - invalid_json") << body.substr(0, 60);
    EXPECT_EQ(refusal(R"({"prompt":"a","x":)" + std::string(63, '[') + std::string(63, ']') + "}").substr(0, 3), "200");
    for (const char* body : {"[]", "5", "null", "\"a\"", "true"})
        EXPECT_EQ(refusal(body), "400 - -") << body;
    // Of a key that comes twice the last counts.
    EXPECT_EQ(json_of(ask(served.port(), post_json("/v1/completions", R"({"prompt":"a","max_tokens":"x","max_tokens":2})")))["usage"]["completion_tokens"], 2);
    EXPECT_EQ(refusal(R"({"prompt":"a","max_tokens":2,"max_tokens":"x"})"), "400 max_tokens -");
}

TEST(ServerJson, ManyNamesTakeNoTime) {
    ServedStandIn served;
    std::string body = R"({"prompt":"a")";
    for (int i = 0; body.size() < (size_t{4} << 20) - 32; ++i)
        body += ",\"" + std::to_string(i) + "\":0";
    Client client(served.port());
    const auto begin = Clock::now();
    const Reply reply = client.ask(post_json("/v1/completions", body + "}"));
    EXPECT_LT(Clock::now() - begin, 3s);
    EXPECT_EQ(refusal_of(reply), "400 - invalid_json");
    std::string biases; // as many as there may be
    for (int i = 0; i < 1024; ++i)
        biases += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    EXPECT_EQ(ask(served.port(), post_json("/v1/completions", completion("\"logit_bias\":{" + biases + "}"))).status, 200);
}

TEST(ServerJson, StrictModels) {
    Settings settings = quick_settings();
    ServedStandIn lax(settings);
    settings.is_model_strict = true;
    ServedStandIn strict(settings);
    for (const char* path : {"/v1/chat/completions", "/v1/completions", "/completion"}) {
        const auto body = [&](const std::string& model) {
            return model + R"("prompt":"a","messages":[{"role":"user","content":"a"}]})";
        };
        const Reply any = ask(lax.port(), post_json(path, body(R"({"model":"gpt-4",)")));
        EXPECT_EQ(json_of(any)["model"], "stand-in");
        EXPECT_EQ(refusal_of(ask(strict.port(), post_json(path, body(R"({"model":"gpt-4",)")))), "404 model model_not_found");
        EXPECT_EQ(ask(strict.port(), post_json(path, body(R"({"model":"stand-in",)"))).status, 200);
        EXPECT_EQ(ask(strict.port(), post_json(path, body("{"))).status, 200);
    }
}

TEST(ServerUnix, ASocketAsksForNoHost) {
    Settings settings = quick_settings();
    settings.http.unix_path = testing::TempDir() + "auspex_" + std::to_string(::getpid()) + ".sock";
    ServedStandIn served(settings);
    const Reply reply = Client(settings.http.unix_path).ask("GET /v1/models HTTP/1.1\r\nHost: anything.example\r\n\r\n");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(served.server.url(), "unix:" + settings.http.unix_path);
}

TEST(ServerProps, TellWhatHoldsWhereARequestSaysNothing) {
    for (const Usual& of : usuals()) {
        ServedStandIn served(quick_settings(), about_of(of));
        const Json props = json_of(ask(served.port(), get("/props")));
        const Json& params = props["default_generation_settings"]["params"];
        EXPECT_EQ(params["draft_len"], of.usual.draft_len ? Json(*of.usual.draft_len) : Json("auto")) << of.name;
        EXPECT_EQ(params["drafter"], of.usual.drafter) << of.name;
        EXPECT_EQ(params["acceptance"], of.usual.acceptance) << of.name;
        EXPECT_EQ(params["temperature"], of.temperature) << of.name;
        EXPECT_EQ(props["has_draft"], of.has_model || of.has_self) << of.name;
        // Those that it names are those that it takes.
        size_t n_taken = 0;
        for (const char* drafter : {"auto", "none", "model", "self", "ngram", "lookup", "hybrid", "host"}) {
            const Reply reply = ask(served.port(), post_json("/v1/completions", completion(R"("max_tokens":1,"drafter":")" + std::string(drafter) + "\"")));
            const bool is_named = std::find(props["drafters"].begin(), props["drafters"].end(), drafter) != props["drafters"].end();
            EXPECT_EQ(reply.status, is_named ? 200 : 400) << of.name << " " << drafter;
            n_taken += is_named ? 1 : 0;
        }
        EXPECT_EQ(n_taken, props["drafters"].size()) << of.name;
    }
}

} // namespace
} // namespace auspex::test::endpoints_test
