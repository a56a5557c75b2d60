// Waiting, prompts and rounds on a simulated device: times are numbers, and nothing of Vulkan is there.
#include "session/admission/load.h"
#include "session/admission/waiting_room.h"
#include "session/turns/turn_forms.h"
#include "session/turns/turn_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace auspex::turn_order_test {
namespace {

struct Request {
    uint64_t id;
    int32_t priority;
    double came_ms;
    uint32_t prompt, answer; // tokens
    uint32_t n_read = 0, n_said = 0;
    std::vector<double> said_ms = {}; // when
    double let_in_ms = -1;
    bool is_read() const { return n_read == prompt; }
    bool is_over() const { return n_said == answer; }
};

// A device that reads prompts at `row_ms` a token and takes `round_ms` for a round, whoever takes part; two turns are not in flight.
struct Device {
    double row_ms = 0.5, round_ms = 10, max_gap_ms = 50;
    uint32_t n_slots = 4, max_rows = 512;

    double now_ms = 0, longest_chunk_ms = 0;
    TurnOrder order;
    WaitingRoom waiting;
    std::map<uint64_t, Request> requests;

    static uint64_t ns(double ms) { return static_cast<uint64_t>(ms * 1e6); }
    void let_in() {
        auto n_in = static_cast<uint32_t>(std::count_if(requests.begin(), requests.end(), [](const auto& r) { return r.second.let_in_ms >= 0 && !r.second.is_over(); }));
        while (n_in < n_slots && waiting.size() > 0) {
            Request& first = requests.at(waiting.order().begin()->second);
            waiting.leave(first.id, first.priority, ns(first.came_ms));
            first.let_in_ms = now_ms;
            ++n_in;
        }
    }
    // As Scheduler::start_next and replay_rows do it.
    bool turn() {
        let_in();
        std::vector<Request*> prompts, texts;
        for (auto& [id, request] : requests) {
            if (request.let_in_ms < 0 || request.is_over()) continue;
            (request.is_read() ? texts : prompts).push_back(&request);
        }
        if (!texts.empty() && (order.round_is_due() || prompts.empty())) {
            now_ms += round_ms;
            for (Request* text : texts) {
                text->n_said += 1;
                text->said_ms.push_back(now_ms);
            }
            order.round_began();
            return true;
        }
        if (prompts.empty()) return false;
        std::stable_sort(prompts.begin(), prompts.end(), [](const Request* a, const Request* b) { return a->came_ms < b->came_ms; });
        order.arrange(prompts, [](const Request* request) { return request->id; });
        const auto ms_of = [&](uint32_t rows) { return rows * row_ms; };
        uint32_t left = texts.empty() ? max_rows : rows_within(max_gap_ms - round_ms, max_rows, ms_of, shorter_bucket);
        uint32_t rows = 0;
        order.chunk_began(prompts.front()->id);
        for (Request* prompt : prompts) {
            const uint32_t n = std::min(left, prompt->prompt - prompt->n_read);
            prompt->n_read += n;
            left -= n;
            rows += n;
        }
        now_ms += rows * row_ms;
        if (!texts.empty()) longest_chunk_ms = std::max(longest_chunk_ms, rows * row_ms);
        return true;
    }
    void come(Request request) {
        waiting.enter(request.id, request.priority, ns(request.came_ms));
        requests.emplace(request.id, std::move(request));
    }
};

double p99(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[(values.size() - 1) * 99 / 100];
}
std::vector<double> gaps(const Request& request) {
    std::vector<double> gaps;
    for (size_t i = 1; i < request.said_ms.size(); ++i) gaps.push_back(request.said_ms[i] - request.said_ms[i - 1]);
    return gaps;
}

TEST(TurnOrder, a_stream_goes_on_while_twenty_prompts_are_read) {
    Device device;
    device.n_slots = 21;
    device.come({0, 0, 0, 8, 600});
    while (device.requests.at(0).n_said < 10) ASSERT_TRUE(device.turn());
    for (uint64_t i = 1; i <= 20; ++i) device.come({i, 0, device.now_ms, 400, 1});
    while (device.turn()) {}
    EXPECT_TRUE(device.requests.at(0).is_over());
    const std::vector<double> of_stream = gaps(device.requests.at(0));
    EXPECT_LE(p99(of_stream), device.max_gap_ms + device.round_ms);
    EXPECT_GT(*std::max_element(of_stream.begin(), of_stream.end()), device.round_ms) << "no prompt was read meanwhile";
    EXPECT_GT(device.longest_chunk_ms, 0.4 * (device.max_gap_ms - device.round_ms)) << "chunks are shorter than they may be";
}

TEST(TurnOrder, whole_chunks_where_nobody_waits) {
    Device device;
    device.come({1, 0, 0, 512, 1});
    ASSERT_TRUE(device.turn());
    EXPECT_TRUE(device.requests.at(1).is_read());
}

TEST(TurnOrder, a_short_prompt_is_not_behind_a_long_one) {
    Device device;
    device.come({0, 0, 0, 8, 100000});
    ASSERT_TRUE(device.turn());
    device.come({1, 0, 1, 30000, 1});
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(device.turn());
    device.come({2, 0, device.now_ms, 20, 1});
    const double came_ms = device.now_ms;
    while (!device.requests.at(2).is_over()) ASSERT_TRUE(device.turn());
    EXPECT_LT(device.now_ms - came_ms, 5 * (device.max_gap_ms + device.round_ms));
    EXPECT_FALSE(device.requests.at(1).is_read());
}

// More comes than the device can do: what came first ends first, the more urgent wait less, and nobody waits for ever.
TEST(TurnOrder, overload_starves_nobody) {
    Device device;
    std::mt19937 random(3);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    uint64_t id = 1;
    for (double at = 0; at < 60'000; at += 100 + below(100)) {
        const int32_t priority = id % 10 == 0 ? -2 : id % 10 == 5 ? 2 : 0;
        while (device.now_ms < at && device.turn()) {}
        device.now_ms = std::max(device.now_ms, at);
        device.come({id, priority, at, 50 + below(400), 20 + below(40)});
        ++id;
    }
    while (device.turn()) {}
    std::map<int32_t, std::vector<double>> waits;
    for (const auto& [number, request] : device.requests) {
        ASSERT_TRUE(request.is_over());
        waits[request.priority].push_back(request.let_in_ms - request.came_ms);
    }
    const auto mean = [](const std::vector<double>& of) {
        double sum = 0;
        for (double one : of) sum += one;
        return sum / static_cast<double>(of.size());
    };
    EXPECT_GT(mean(waits[0]), 10'000) << "it was no overload";
    EXPECT_LT(mean(waits[-2]) + 10'000, mean(waits[0]));
    EXPECT_LT(mean(waits[0]), mean(waits[2]));
    // Whoever is overtaken came no more than 10 s for each priority earlier.
    for (const auto& [number, first] : device.requests)
        for (const auto& [other, second] : device.requests)
            if (first.came_ms + 10'000 * first.priority < second.came_ms + 10'000 * second.priority && first.came_ms < second.let_in_ms) {
                EXPECT_LE(first.let_in_ms, second.let_in_ms) << number << " and " << other;
            }
}

TEST(PredictedWait, is_the_time_until_enough_others_have_ended) {
    EXPECT_EQ(predicted_wait_ms(1000, 3, 4), 0);
    EXPECT_EQ(predicted_wait_ms(1000, 4, 4), 250);
    EXPECT_EQ(predicted_wait_ms(1000, 10, 4), 700);
}

} // namespace
} // namespace auspex::turn_order_test
