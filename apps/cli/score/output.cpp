// A score as three lines and as JSON.
#include "cli/common/output/json.h"
#include "cli/score/report.h"

#include <cmath>
#include <cstdio>

namespace auspex::cli {

namespace {

// Mean of -log_probs, per token; absent for a single token.
std::optional<double> mean_nll(const std::vector<double>& log_probs) {
    if (log_probs.empty()) return std::nullopt;
    double sum = 0.0;
    for (const double log_prob : log_probs)
        sum -= log_prob;
    return sum / static_cast<double>(log_probs.size());
}

} // namespace

void print_listing(const ScoreReport& report) {
    const std::optional<double> nll = mean_nll(report.log_probs);
    std::printf("nll         %s\n", nll ? format("%.6f", *nll).c_str() : "n/a");
    std::printf("perplexity  %s\n", nll ? format("%.6f", std::exp(*nll)).c_str() : "n/a");
    std::printf("tokens      %zu\n", report.tokens.size());
}

void print_json(const ScoreReport& report) {
    Json log_probs = Json::array({nullptr}); // nothing precedes the first token
    for (const double log_prob : report.log_probs)
        log_probs.push_back(log_prob);
    const std::optional<double> nll = mean_nll(report.log_probs);
    Json json;
    json["tokens"] = report.tokens;
    json["logprobs"] = log_probs;
    json["nll"] = or_null(nll);
    json["perplexity"] = nll ? Json(std::exp(*nll)) : Json();
    if (report.has_logits) {
        Json& logits = json["logits"] = Json::object();
        for (const auto& [position, values] : report.logits) {
            Json& row = logits[std::to_string(position)] = Json::array();
            for (const float value : values)
                row.push_back(from_float(value));
        }
    }
    print(json);
}

} // namespace auspex::cli
