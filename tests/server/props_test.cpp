// What a server tells of its settings, and what the page makes of it.
#include "server_peers.h"

#include <fstream>
#include <sstream>

namespace auspex::test::props_test {
namespace {

struct Case {
    const char* name;
    server::Speculation usual;
    bool has_model, has_self;
    double temperature;
};
const std::vector<Case> kCases = {
    {"as it comes", {}, true, false, 0},
    {"flags", {.draft_len = 3, .drafter = "ngram", .acceptance = "coupled"}, true, false, 0.8},
    {"plain", {.draft_len = 0}, false, false, 1},
    {"its own weights", {.drafter = "self"}, false, true, 0.8},
};

server::About about_of(const Case& of) {
    server::About about = stand_in_about();
    about.speculation = of.usual;
    about.limits.has_draft_model = of.has_model;
    about.limits.has_self_draft = of.has_self;
    about.limits.temperature = of.temperature;
    return about;
}

TEST(ServerProps, TellWhatHoldsWhereARequestSaysNothing) {
    for (const Case& of : kCases) {
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

std::string output_of(const std::string& command) {
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    for (int c; pipe && (c = std::fgetc(pipe)) != EOF;)
        text += static_cast<char>(c);
    if (pipe) ::pclose(pipe);
    return text;
}

// The page's own code, with what a server has told it.
TEST(ServerProps, ThePageGoesByThem) {
    if (output_of("node --version 2>/dev/null").empty()) GTEST_SKIP() << "node is not installed";
    const std::string folder = testing::TempDir() + "auspex_props_" + std::to_string(::getpid());
    for (const Case& of : kCases) {
        ServedStandIn served(quick_settings(), about_of(of));
        std::ofstream(folder + ".json") << ask(served.port(), get("/props")).body;
        std::ofstream(folder + ".mjs") << R"(
import { readFileSync } from "node:fs";
const page = await import("data:text/javascript," + encodeURIComponent(readFileSync("apps/server/page/settings.js", "utf8")));
const props = JSON.parse(readFileSync(process.argv[2], "utf8"));
const usual = page.usualFields(props);
console.log(JSON.stringify({
    usual: [usual.temperature, usual.draft_len, usual.drafter, usual.acceptance],
    equal: [{}, { temperature: 0 }, { temperature: 1 }, { acceptance: "coupled" }, { temperature: 1, acceptance: "rejection" }].map((request) => page.mustBeEqual(request, props)),
    unknown: [page.mustBeEqual({}, null), page.mustBeEqual({ temperature: 1 }, null), page.canDraft("self", null)],
    can: ["", "model", "self", "ngram"].map((drafter) => page.canDraft(drafter, props)),
}));)";
        const std::string told = output_of("node " + folder + ".mjs " + folder + ".json");
        const Json page = Json::parse(told, nullptr, false);
        ASSERT_TRUE(page.is_object()) << told;
        const bool is_coupled = of.usual.acceptance == "coupled", is_greedy = of.temperature == 0;
        const Json draft_len = of.usual.draft_len ? Json(*of.usual.draft_len) : Json("auto");
        EXPECT_EQ(page["usual"], (Json{of.temperature, draft_len, of.usual.drafter, of.usual.acceptance})) << of.name;
        EXPECT_EQ(page["equal"], (Json{is_coupled || is_greedy, true, is_coupled, true, false})) << of.name;
        EXPECT_EQ(page["unknown"], (Json{true, false, true})) << of.name;
        EXPECT_EQ(page["can"], (Json{true, of.has_model, of.has_self, true})) << of.name;
    }
    ::unlink((folder + ".json").c_str());
    ::unlink((folder + ".mjs").c_str());
}

} // namespace
} // namespace auspex::test::props_test
