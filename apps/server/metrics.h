// What is counted, in Prometheus' text format (version 0.0.4). Belongs to the I/O thread.
#pragma once

#include "server/engine/engine_thread.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace auspex::server {

// Cumulative, with bounds of its own.
class Histogram {
  public:
    explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
    void add(double value);
    void write(std::string& text, const std::string& name, const std::string& help) const;

  private:
    std::vector<double> bounds_;
    std::vector<uint64_t> counts_; // the last: above all bounds
    double sum_ = 0;
};

class Metrics {
  public:
    enum class Result { stop, length, cancelled, error, rejected };

    void add(const StepNews& step);
    void add_request(const std::string& endpoint, Result result, double seconds);
    void add_prompt(uint64_t n_tokens, uint64_t n_cached);

    // All of it, ready to be sent.
    std::string text(const Snapshot& now, const http::Counts& connections, const About& about, bool is_up,
                     double heartbeat_age_s) const;

  private:
    std::map<std::pair<std::string, std::string>, uint64_t> requests_; // by endpoint and result
    uint64_t prompt_n_ = 0, cached_n_ = 0;
    Said said_{};
    std::map<std::string, uint64_t> rounds_; // by drafter
    uint64_t drafts_ = 0, tested_n_ = 0;
    double overlap_ = 0, predicted_speedup_ = -1, round_rows_ = -1;
    Histogram first_token_{{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160}};
    Histogram gap_{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 10, 30}};
    Histogram queue_{{0.001, 0.01, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 60, 120}};
    Histogram request_{{0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 60, 120, 600}};
};

} // namespace auspex::server
