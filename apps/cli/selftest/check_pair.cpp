// The user's own files on the user's own device: greedy and coupled texts with drafts are the texts without.
#include "cli/selftest/selftest.h"

#include <algorithm>
#include <chrono>

namespace auspex::cli {

namespace {

constexpr uint32_t kContext = 256, kMaxDraftLen = 8;
constexpr uint32_t kMostTokens = 64, kFewestTokens = 4, kProbeTokens = 4;
constexpr double kSecondsToSpend = 25.0; // then fewer tokens have to do
constexpr float kTemperature = 0.8f;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class PairChecks {
  public:
    PairChecks(Client& client, const Tell& tell)
        : client_(client), tell_(tell), prompt_(client.tokenize(kBuiltInPrompt)) {}

    void run() {
        const Answer plain = choose_length_and_answer();
        tell_(greedy(plain.tokens));
        tell_(coupled());
    }

  private:
    Answer ask(const Question& question) { return answer(client_, {question}, 1)[0]; }

    Question question(uint32_t draft_len) const {
        return {.prompt = prompt_, .n_tokens = n_tokens_, .draft_len = draft_len};
    }

    // A text of fewer tokens where tokens take long: as many as fit the time, by what the first few took.
    Answer choose_length_and_answer() {
        constexpr double kTexts = 8.0; // that will be asked for; with drafts none takes longer than about one without
        n_tokens_ = kProbeTokens;
        ask(question(0)); // reads the prompt and builds what is built at first use
        const auto start = std::chrono::steady_clock::now();
        ask(question(0));
        const double seconds_per_token = seconds_since(start) / kProbeTokens;
        const double affordable = kSecondsToSpend / kTexts / std::max(seconds_per_token, 1e-6);
        n_tokens_ = static_cast<uint32_t>(std::clamp(affordable, double{kFewestTokens}, double{kMostTokens}));
        return ask(question(0));
    }

    // By the draft model; where there is none, what the plain text shows to come, every third token wrong.
    Answer ask_with_drafts(Question question, const std::vector<uint32_t>& plain) {
        const HostDrafter two_of_three = [&](const std::vector<uint32_t>& tokens, uint32_t max_drafts) {
            std::vector<uint32_t> drafts;
            for (size_t i = tokens.size() - prompt_.size(); drafts.size() < max_drafts && i < plain.size(); ++i)
                drafts.push_back(i % 3 == 2 ? (plain[i] + 1) % client_.info().vocab_size : plain[i]);
            return drafts;
        };
        if (client_.info().has_draft == 0) {
            question.drafter = AUSPEX_DRAFTER_HOST;
            question.host_drafter = &two_of_three;
        }
        return ask(question);
    }

    CheckResult greedy(const std::vector<uint32_t>& plain) {
        Comparison comparison;
        for (const uint32_t draft_len : {1u, 4u, kMaxDraftLen})
            comparison.add(ask_with_drafts(question(draft_len), plain), plain, format("draft_len %u", draft_len));
        return told("pair-greedy", comparison, format("K 1, 4, %u", kMaxDraftLen));
    }

    CheckResult coupled() {
        Comparison comparison;
        for (const uint64_t seed : {1u, 2u}) {
            Question with = question(4);
            with.temperature = kTemperature;
            with.seed = seed;
            with.acceptance = AUSPEX_ACCEPT_COUPLED;
            Question without = with;
            without.draft_len = 0;
            const std::vector<uint32_t> plain = ask(without).tokens;
            comparison.add(ask_with_drafts(with, plain), plain,
                           format("seed %llu", static_cast<unsigned long long>(seed)));
        }
        return told("pair-coupled", comparison, "2 seeds, K 4");
    }

    CheckResult told(const std::string& name, const Comparison& comparison, const std::string& settings) const {
        return {name, comparison.n_different == 0 && comparison.draft_n > 0,
                comparison.figure(format("%u tokens as without drafts, %s", n_tokens_, settings.c_str())) +
                    (n_tokens_ < kMostTokens
                         ? format(" (%u tokens instead of %u: this model takes its time here)", n_tokens_, kMostTokens)
                         : ""),
                comparison.measured()};
    }

    Client& client_;
    const Tell& tell_;
    std::vector<uint32_t> prompt_;
    uint32_t n_tokens_ = kMostTokens;
};

} // namespace

void check_pair(const ModelOptions& models, const Tell& tell) {
    ModelOptions options = models;
    options.context = std::min(kContext, describe_model(options.target, options.cache_type).max_position);
    if (!options.draft.empty())
        options.context = std::min(options.context, describe_model(options.draft, options.cache_type).max_position);
    Client client({options, nullptr, 1, kMaxDraftLen});
    PairChecks(client, tell).run();
}

} // namespace auspex::cli
