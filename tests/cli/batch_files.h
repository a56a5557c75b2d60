// Files of auspex batch: requests that go in, results that come out.
#pragma once

#include "cli/cli_process.h"
#include "model/file_fixtures.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace auspex::test {

inline constexpr int kAgain = 75;

inline std::string request(const std::string& custom_id, const Json& body, const char* url = "/v1/completions") {
    return Json{{"custom_id", custom_id}, {"method", "POST"}, {"url", url}, {"body", body}}.dump() + "\n";
}
inline std::string chat_request(const std::string& custom_id, const Json& body) {
    return request(custom_id, body, "/v1/chat/completions");
}

inline std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<Json> lines_of(const std::string& path) {
    std::vector<Json> lines;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(Json::parse(line, nullptr, false));
        EXPECT_FALSE(lines.back().is_discarded()) << line;
    }
    return lines;
}

// By custom_id, each of them once.
inline std::map<std::string, Json> results_of(const std::string& path) {
    std::map<std::string, Json> results;
    for (const Json& line : lines_of(path)) {
        EXPECT_TRUE(line["error"].is_null());
        EXPECT_TRUE(results.emplace(line["custom_id"].get<std::string>(), line["response"]).second)
            << line["custom_id"] << " came twice";
    }
    return results;
}

// What a request says, without what differs between two runs of it.
inline std::map<std::string, Json> texts_of(const std::string& path) {
    std::map<std::string, Json> texts;
    for (const auto& [id, response] : results_of(path)) {
        EXPECT_EQ(response["status_code"], 200) << id << " " << response;
        texts[id] = response["body"]["choices"];
    }
    return texts;
}

struct Files {
    TempFolder folder;
    std::string in = folder.file("in.jsonl"), out = folder.file("out.jsonl");

    explicit Files(const std::string& input) { folder.write("in.jsonl", input); }
    std::vector<std::string> arguments(std::vector<std::string> more = {}) const {
        std::vector<std::string> all = {"batch", "-i", in, "-o", out, "-c", "512"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    CliResult run(const std::vector<std::string>& more = {}, int exit_code = 0) const {
        const CliResult result = run_cli(arguments(more));
        EXPECT_EQ(result.exit_code, exit_code) << result.err;
        EXPECT_EQ(result.out, "");
        return result;
    }
};

} // namespace auspex::test
