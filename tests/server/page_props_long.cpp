// What the page makes of what a server tells of its settings: its own code, run by node.
#include "server_peers.h"

#include <fstream>
#include <sstream>

namespace auspex::test::page_props_long {
namespace {

std::string output_of(const std::string& command) {
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    for (int c; pipe && (c = std::fgetc(pipe)) != EOF;)
        text += static_cast<char>(c);
    if (pipe) ::pclose(pipe);
    return text;
}

// The page's own code, with what a server has told it.
TEST(ServerPage, GoesByWhatTheServerTells) {
    ASSERT_FALSE(output_of("node --version 2>/dev/null").empty()) << "node is not installed: apt-get install nodejs (cmake/packages-long.txt)";
    const std::string folder = testing::TempDir() + "auspex_props_" + std::to_string(::getpid());
    for (const Usual& of : usuals()) {
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
} // namespace auspex::test::page_props_long
