// auspex score: how probable a text is for the target, token by token, and its logits where they are asked for.
#include "cli/common/input/prompt.h"
#include "cli/common/output/print_report.h"
#include "cli/common/output/progress_bar.h"
#include "cli/score/report.h"

#include <algorithm>
#include <cmath>

namespace auspex::cli {

namespace {

// Ascending, each once.
std::vector<size_t> resolve_positions(const std::vector<int64_t>& positions, size_t n_tokens) {
    std::vector<size_t> resolved;
    for (const int64_t position : positions) {
        const auto n = static_cast<int64_t>(n_tokens);
        const int64_t from_start = position < 0 ? n + position : position;
        if (from_start < 0 || from_start >= n)
            throw Failure(kExitUsage, format("--logits %lld: expected -%zu to %zu, for %zu token%s",
                                             static_cast<long long>(position), n_tokens, n_tokens - 1, n_tokens,
                                             n_tokens == 1 ? "" : "s"));
        resolved.push_back(static_cast<size_t>(from_start));
    }
    std::sort(resolved.begin(), resolved.end());
    resolved.erase(std::unique(resolved.begin(), resolved.end()), resolved.end());
    return resolved;
}

struct Receiver {
    ScoreReport& report;
    ProgressBar progress{"scoring"};

    static void take_logits(void* user_data, size_t position, const float* logits, size_t n_logits) {
        static_cast<Receiver*>(user_data)->report.logits[position].assign(logits, logits + n_logits);
    }
    static void take_progress(void* user_data, float fraction) {
        ProgressBar::callback(&static_cast<Receiver*>(user_data)->progress, fraction);
    }
};

void measure(Client& client, const std::vector<size_t>& positions, ScoreReport& report) {
    Receiver receiver{report};
    auspex_score_options options;
    auspex_score_options_init(&options, sizeof options);
    options.logit_positions = positions.data();
    options.logit_position_count = positions.size();
    options.logits = positions.empty() ? nullptr : Receiver::take_logits;
    options.progress = Receiver::take_progress;
    options.user_data = &receiver;
    report.log_probs.resize(report.tokens.size() - 1);
    client.score(report.tokens, report.log_probs.data(), options);
}

} // namespace

int score(const ScoreOptions& options) {
    PromptText prompt{"", "--tokens"};
    if (options.prompt.tokens.empty()) {
        prompt = read_prompt(options.prompt);
        check_text(prompt);
    }
    Client client({.models = options.models});
    ScoreReport report;
    report.tokens = options.prompt.tokens.empty() ? client.tokenize(prompt.text) : options.prompt.tokens;
    check_ids(report.tokens, prompt.source, client.info().vocab_size);
    if (report.tokens.size() > client.info().max_context)
        throw Failure(kExitCapacity, prompt.source + format(": the text has %zu tokens, expected at most the context's "
                                                            "%u; shorten it or raise -c",
                                                            report.tokens.size(), client.info().max_context));
    const std::vector<size_t> positions = resolve_positions(options.logits_at, report.tokens.size());
    report.has_logits = !positions.empty();
    measure(client, positions, report);
    print_report(report, options.json);
    return kExitOk;
}

} // namespace auspex::cli
