// /metrics as a program reads it: the format, and what its figures have to do with each other.
#include "server_peers.h"

#include <map>
#include <set>

namespace auspex::test::metrics_test {
namespace {

struct Sample {
    std::string name;
    std::map<std::string, std::string> labels;
    double value = 0;
};

// Prometheus' text format, with all that may be wrong about it.
struct Exposition {
    std::map<std::string, std::string> types, helps;
    std::vector<Sample> samples;

    explicit Exposition(const std::string& text) {
        EXPECT_TRUE(text.ends_with("\n"));
        std::string family;
        std::set<std::string> seen;
        size_t at = 0;
        while (at < text.size()) {
            const size_t end = text.find('\n', at);
            const std::string line = text.substr(at, end - at);
            at = end + 1;
            if (line.starts_with("# HELP ")) {
                family = line.substr(7, line.find(' ', 7) - 7);
                EXPECT_TRUE(helps.emplace(family, line).second) << "twice: " << line;
                EXPECT_GT(line.size(), 7 + family.size() + 5) << line;
            } else if (line.starts_with("# TYPE ")) {
                EXPECT_EQ(line.substr(7, line.find(' ', 7) - 7), family) << line;
                types[family] = line.substr(line.rfind(' ') + 1);
                EXPECT_TRUE((std::set<std::string>{"counter", "gauge", "histogram"}.contains(types[family]))) << line;
            } else {
                samples.push_back(parse(line));
                const std::string& name = samples.back().name;
                const bool is_of_family = name == family || (types[family] == "histogram" && (name == family + "_bucket" || name == family + "_sum" || name == family + "_count"));
                EXPECT_TRUE(is_of_family) << line << " under " << family;
                EXPECT_EQ(types[family] == "counter", name.ends_with("_total")) << line;
                EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << "twice: " << line;
            }
        }
        check_histograms();
    }

    static Sample parse(const std::string& line) {
        Sample sample;
        size_t at = line.find_first_of("{ ");
        sample.name = line.substr(0, at);
        EXPECT_TRUE(std::all_of(sample.name.begin(), sample.name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; })) << line;
        if (at != std::string::npos && line[at] == '{') {
            ++at;
            while (at < line.size() && line[at] != '}') {
                const size_t equals = line.find("=\"", at);
                if (equals == std::string::npos) break;
                std::string& value = sample.labels[line.substr(at, equals - at)];
                for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
                    if (line[at] != '\\') {
                        value += line[at];
                        continue;
                    }
                    ++at;
                    EXPECT_TRUE(line[at] == 'n' || line[at] == '\\' || line[at] == '"') << line;
                    value += line[at] == 'n' ? '\n' : line[at];
                }
                if (++at < line.size() && line[at] == ',') ++at;
            }
            EXPECT_EQ(line.substr(at, 2), "} ") << line;
            ++at;
        }
        size_t n = 0;
        const std::string value = line.substr(at + 1);
        sample.value = std::stod(value, &n);
        EXPECT_EQ(n, value.size()) << line;
        return sample;
    }

    void check_histograms() {
        for (const auto& [name, type] : types) {
            if (type != "histogram") continue;
            double last = -1, bound = -1;
            for (const Sample& sample : samples) {
                if (sample.name != name + "_bucket") continue;
                const double le = sample.labels.at("le") == "+Inf" ? INFINITY : std::stod(sample.labels.at("le"));
                EXPECT_GT(le, bound) << name;
                EXPECT_GE(sample.value, last) << name << " is not cumulative";
                bound = le;
                last = sample.value;
            }
            EXPECT_EQ(bound, INFINITY) << name;
            EXPECT_EQ(last, of(name + "_count")) << name;
            EXPECT_GE(of(name + "_sum"), 0) << name;
        }
    }
    double of(const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
        double sum = 0;
        bool is_there = false;
        for (const Sample& sample : samples) {
            if (sample.name != name) continue;
            if (!std::all_of(labels.begin(), labels.end(), [&](const auto& label) { return sample.labels.contains(label.first) && sample.labels.at(label.first) == label.second; })) continue;
            is_there = true;
            sum += sample.value;
        }
        EXPECT_TRUE(is_there) << name;
        return sum;
    }
};

Exposition metrics_of(ServedStandIn& served) {
    const Reply reply = ask(served.port(), get("/metrics"));
    EXPECT_EQ(header_of(reply, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    return Exposition(reply.body);
}

TEST(ServerMetrics, AServerThatHasDoneNothing) {
    ServedStandIn served;
    ASSERT_TRUE(wait_until([&] { return served.server.engine().snapshot()->load.target_pages > 0; }));
    const Exposition metrics = metrics_of(served);
    EXPECT_EQ(metrics.of("auspex_up"), 1);
    for (const char* name : {"auspex_requests_running", "auspex_requests_waiting", "auspex_generated_tokens_total", "auspex_first_token_seconds_count", "auspex_accepted_tokens_per_position_total"})
        EXPECT_EQ(metrics.of(name), 0) << name;
    EXPECT_EQ(metrics.of("auspex_build_info", {{"device", "a \"device\"\\with\nmarks"}, {"model", "stand-in"}, {"version", "1.2.3"}}), 1);
    for (const auto& [state, n] : std::map<std::string, int>{{"live", 0}, {"tree", 30}, {"free", 70}})
        EXPECT_EQ(metrics.of("auspex_cache_pages", {{"pool", "target"}, {"state", state}}), n) << state;
}

TEST(ServerMetrics, FiguresAgreeWithEachOther) {
    ServedStandIn served;
    served.backend.slots = 2;
    served.backend.tokens_per_event = 4;
    double n_predicted = 0, n_prompt = 0, n_cached = 0, n_accepted = 0, n_drafted = 0;
    const auto count = [&](const Json& last) {
        n_predicted += last["timings"]["predicted_n"].get<double>();
        n_prompt += last["timings"]["prompt_n"].get<double>() + last["timings"]["cache_n"].get<double>();
        n_cached += last["timings"]["cache_n"].get<double>();
        n_accepted += last["timings"].value("draft_n_accepted", 0.0);
        n_drafted += last["timings"].value("draft_n", 0.0);
    };
    for (int i = 0; i < 6; ++i) {
        const std::string members = "\"max_tokens\":" + std::to_string(i) + ",\"n\":" + std::to_string(1 + i % 3);
        count(json_of(ask(served.port(), post_json("/v1/completions", completion(members)))));
        count(Events(ask(served.port(), post_json("/v1/chat/completions", chat(R"("stream":true,)" + members))).body).data.back());
        count(json_of(ask(served.port(), post_json("/completion", completion("\"n_predict\":" + std::to_string(i))))));
    }
    ask(served.port(), post_json("/v1/completions", "{}")); // rejected
    ASSERT_TRUE(wait_until([&] { return served.is_idle(); }));
    Exposition metrics = metrics_of(served);
    EXPECT_EQ(metrics.of("auspex_generated_tokens_total"), n_predicted);
    EXPECT_EQ(metrics.of("auspex_generated_tokens_total"), static_cast<double>(served.backend.n_predicted));
    EXPECT_EQ(metrics.of("auspex_prompt_tokens_total"), n_prompt);
    EXPECT_EQ(metrics.of("auspex_prompt_tokens_cached_total"), n_cached);
    EXPECT_EQ(metrics.of("auspex_accepted_tokens_total"), n_accepted);
    EXPECT_EQ(metrics.of("auspex_draft_tokens_total"), n_drafted);
    EXPECT_GT(n_accepted, 0);
    EXPECT_EQ(metrics.of("auspex_accepted_tokens_per_position_total"), n_accepted);
    EXPECT_LE(n_accepted, n_drafted);
    EXPECT_EQ(metrics.of("auspex_own_tokens_total"), n_predicted - n_accepted);
    EXPECT_GT(metrics.of("auspex_round_rows"), 1);
    EXPECT_LE(metrics.of("auspex_accepted_tokens_per_position_total", {{"position", "1"}}), metrics.of("auspex_accepted_tokens_per_position_total", {{"position", "0"}}));
    EXPECT_EQ(metrics.of("auspex_requests_total", {{"result", "length"}}), 18);
    EXPECT_EQ(metrics.of("auspex_requests_total", {{"result", "rejected"}}), 1);
    EXPECT_EQ(metrics.of("auspex_request_seconds_count"), 18);
    EXPECT_EQ(metrics.of("auspex_queue_seconds_count"), 18);
    EXPECT_EQ(metrics.of("auspex_first_token_seconds_count"), 15); // three asked for none
    EXPECT_EQ(metrics.of("auspex_requests_running"), 0);
    EXPECT_EQ(metrics.of("auspex_requests_waiting"), 0);
}

TEST(ServerMetrics, WhatWasCutCountsToo) {
    ServedStandIn served;
    served.backend.event_us = 2000;
    {
        StreamClient left(served.port(), post_json("/v1/completions", completion(R"("stream":true,"max_tokens":4000)")));
        ASSERT_TRUE(left.wait_for("w5 "));
        const Exposition metrics = metrics_of(served);
        EXPECT_EQ(metrics.of("auspex_connections", {{"state", "streaming"}}), 1);
        EXPECT_EQ(metrics.of("auspex_first_token_seconds_count"), 1);
        EXPECT_GE(metrics.of("auspex_token_gap_seconds_count"), 4);
        served.backend.tokens_per_event = 3; // two of them accepted drafts
        ASSERT_TRUE(left.wait_for("w20 "));
        const Exposition later = metrics_of(served);
        EXPECT_GT(later.of("auspex_accepted_tokens_total"), 4) << "it runs";
        EXPECT_EQ(later.of("auspex_generated_tokens_total"), later.of("auspex_accepted_tokens_total") + later.of("auspex_own_tokens_total"));
        EXPECT_EQ(later.of("auspex_accepted_tokens_per_position_total"), later.of("auspex_accepted_tokens_total"));
        EXPECT_LE(later.of("auspex_accepted_tokens_total"), later.of("auspex_draft_tokens_total"));
    }
    ASSERT_TRUE(wait_until([&] { return served.is_idle(); }));
    std::this_thread::sleep_for(50ms);
    const Exposition metrics = metrics_of(served);
    EXPECT_EQ(metrics.of("auspex_generated_tokens_total"), static_cast<double>(served.backend.n_predicted));
    EXPECT_EQ(metrics.of("auspex_generated_tokens_total"), metrics.of("auspex_accepted_tokens_total") + metrics.of("auspex_own_tokens_total"));
    EXPECT_EQ(metrics.of("auspex_accepted_tokens_per_position_total"), metrics.of("auspex_accepted_tokens_total"));
    EXPECT_EQ(metrics.of("auspex_draft_tokens_total"), metrics.of("auspex_accepted_tokens_total") + 1) << "one that was rejected, as its end tells";
    EXPECT_EQ(metrics.of("auspex_requests_total", {{"result", "cancelled"}, {"endpoint", "/v1/completions"}}), 1);
    EXPECT_EQ(metrics.of("auspex_requests_running"), 0);
}

// What an end counts, less what was told before: no figure goes down, and positions remain as many as accepted drafts.
TEST(ServerMetrics, OfAnEndTheRestCounts) {
    auspex_sequence_stats stats = stand_in_stats(5, 9, 4, 5);
    stats.draft_n = 7;
    const server::Said told = {.n = 5, .accepted = 3, .drafted = 3, .accepted_at = {2, 1}};
    server::Said all;
    all.add(stats); // rounds of 3 and 2
    EXPECT_EQ(all.accepted_at[0] + all.accepted_at[1] + all.accepted_at[2], 5u);
    EXPECT_EQ(all.accepted_at[2], 1u);
    const server::Said rest = all.minus(told);
    EXPECT_EQ(rest.n, 4u);
    EXPECT_EQ(rest.accepted, 2u);
    EXPECT_EQ(rest.own(), 2u);
    EXPECT_EQ(rest.drafted, 4u);
    EXPECT_EQ(rest.accepted_at[0] + rest.accepted_at[1] + rest.accepted_at[2], 2u);
    const server::Said other = all.minus({.n = 20, .accepted = 5, .drafted = 9, .accepted_at = {0, 4, 1}});
    EXPECT_EQ(other.n + other.drafted + other.accepted_at[0], 0u);
}

TEST(ServerMetrics, WhoLostHisSlotIsParked) {
    ServedStandIn served;
    served.backend.slots = 1;
    served.backend.says_nothing = true;
    StreamClient first(served.port(), post_json("/v1/completions", completion(R"("max_tokens":1)"))), second(served.port(), post_json("/v1/completions", completion(R"("max_tokens":1)")));
    ASSERT_TRUE(wait_until([&] { return metrics_of(served).of("auspex_requests_waiting") == 1; }));
    EXPECT_EQ(metrics_of(served).of("auspex_requests_parked"), 0) << "it has not been in yet";
    served.backend.has_parked = true;
    EXPECT_TRUE(wait_until([&] { return metrics_of(served).of("auspex_requests_parked") == 1; }));
    served.backend.says_nothing = false;
    EXPECT_TRUE(wait_until([&] { return metrics_of(served).of("auspex_requests_parked") == 0; }));
}

// A sequence that waited and was done with its first round still has waited.
TEST(ServerMetrics, EveryRequestHasWaited) {
    ServedStandIn served;
    served.backend.slots = 1;
    served.backend.says_nothing = true;
    std::vector<Client> clients;
    for (int i = 0; i < 10; ++i) {
        clients.emplace_back(served.port());
        clients.back().send(post_json("/v1/completions", completion(R"("max_tokens":1)")));
    }
    ASSERT_TRUE(wait_until([&] { return served.backend.n_alive_now == 10; }));
    std::this_thread::sleep_for(20ms);
    served.backend.says_nothing = false;
    for (Client& client : clients)
        EXPECT_EQ(client.read_reply().status, 200);
    const Exposition metrics = metrics_of(served);
    EXPECT_EQ(metrics.of("auspex_queue_seconds_count"), 10);
    EXPECT_GE(metrics.of("auspex_queue_seconds_sum"), 9 * 0.02);
}

} // namespace
} // namespace auspex::test::metrics_test
