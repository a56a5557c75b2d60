// The user's own files on the user's own device: greedy and coupled texts with drafts are those of the target alone, of ids that
// the draft lacks, too.
#include "cli/selftest/selftest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

namespace auspex::cli {

namespace {

constexpr uint32_t kContext = 256, kMaxDraftLen = 8;
constexpr uint32_t kMostTokens = 64, kFewestTokens = 4, kProbeTokens = 4;
constexpr double kSecondsToSpend = 25.0; // then fewer tokens have to do
constexpr float kTemperature = 0.8f;
constexpr size_t kRaised = 16; // ids that the draft lacks, in one text

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A question and its text without drafts, by the target alone: no engine that has the draft can have changed it.
struct Asked {
    Question question;
    std::vector<uint32_t> plain;
};

class PairChecks {
  public:
    PairChecks(const ModelOptions& models, const Tell& tell) : models_(models), tell_(tell) {}

    void run() {
        {
            ModelOptions target = models_;
            target.draft.clear();
            Client alone({target, nullptr, 1, kMaxDraftLen});
            ask_without_drafts(alone);
        } // its memory is the pair's
        Client pair({models_, nullptr, 1, kMaxDraftLen});
        tell_(compare(pair, "pair-greedy", {&greedy_, 1}, {1, 4, kMaxDraftLen}, format("K 1, 4, %u", kMaxDraftLen)));
        tell_(compare(pair, "pair-coupled", coupled_, {4}, "2 seeds, K 4"));
        if (lacking_) tell_(compare_lacking(pair));
    }

  private:
    static Answer ask(Client& client, const Question& question) { return answer(client, {question}, 1)[0]; }

    Question question() const { return {.prompt = prompt_, .n_tokens = n_tokens_}; }

    // A text of fewer tokens where tokens take long: as many as fit the time, by what the first few took.
    void choose_length(Client& client) {
        constexpr double kTexts = 8.0; // that will be asked for; with drafts none takes longer than about one without
        n_tokens_ = kProbeTokens;
        ask(client, question()); // reads the prompt and builds what is built at first use
        const auto start = std::chrono::steady_clock::now();
        ask(client, question());
        const double seconds_per_token = seconds_since(start) / kProbeTokens;
        const double affordable = kSecondsToSpend / kTexts / std::max(seconds_per_token, 1e-6);
        n_tokens_ = static_cast<uint32_t>(std::clamp(affordable, double{kFewestTokens}, double{kMostTokens}));
    }

    void ask_without_drafts(Client& alone) {
        prompt_ = alone.tokenize(kBuiltInPrompt);
        vocab_size_ = alone.info().vocab_size;
        choose_length(alone);
        greedy_ = {question(), ask(alone, question()).tokens};
        for (const uint64_t seed : {1u, 2u}) {
            Question sampled = question();
            sampled.temperature = kTemperature;
            sampled.seed = seed;
            sampled.acceptance = AUSPEX_ACCEPT_COUPLED;
            coupled_.push_back({sampled, ask(alone, sampled).tokens});
        }
        if (models_.draft.empty()) return;
        n_shared_ = Tokenizer(models_.draft).vocab_size();
        if (n_shared_ >= vocab_size_) return;
        Question raised = question();
        raised.biases = raise_lacking(alone);
        lacking_ = {raised, ask(alone, raised).tokens};
    }

    // Ids that only the target has, made its likeliest words behind the prompt.
    std::vector<auspex_token_bias> raise_lacking(Client& alone) const {
        std::vector<float> logits;
        const size_t last = prompt_.size() - 1;
        auspex_score_options options;
        auspex_score_options_init(&options, sizeof options);
        options.logit_positions = &last;
        options.logit_position_count = 1;
        options.logits = [](void* to, size_t, const float* row, size_t n) { static_cast<std::vector<float>*>(to)->assign(row, row + n); };
        options.user_data = &logits;
        alone.score(prompt_, nullptr, options);
        const float largest = *std::max_element(logits.begin(), logits.end());
        std::vector<auspex_token_bias> biases;
        if (!std::isfinite(largest)) return biases;
        for (uint32_t id = n_shared_; id < vocab_size_ && biases.size() < kRaised; ++id)
            if (std::isfinite(logits[id])) biases.push_back({id, largest - logits[id] + 0.5f});
        return biases;
    }

    // By the draft model; where there is none, what the plain text shows to come, every third token wrong.
    Answer ask_with_drafts(Client& client, Question question, const std::vector<uint32_t>& plain) const {
        const HostDrafter two_of_three = [&](const std::vector<uint32_t>& tokens, uint32_t max_drafts) {
            std::vector<uint32_t> drafts;
            for (size_t i = tokens.size() - prompt_.size(); drafts.size() < max_drafts && i < plain.size(); ++i)
                drafts.push_back(i % 3 == 2 ? (plain[i] + 1) % vocab_size_ : plain[i]);
            return drafts;
        };
        if (client.info().has_draft == 0) {
            question.drafter = AUSPEX_DRAFTER_HOST;
            question.host_drafter = &two_of_three;
        }
        return ask(client, question);
    }

    CheckResult compare(Client& client, const std::string& name, std::span<const Asked> asked, std::initializer_list<uint32_t> draft_lens,
                        const std::string& settings) const {
        Comparison comparison;
        for (const Asked& one : asked)
            for (const uint32_t draft_len : draft_lens) {
                Question question = one.question;
                question.draft_len = draft_len;
                comparison.add(ask_with_drafts(client, question, one.plain), one.plain,
                               format("draft_len %u, seed %llu", draft_len, static_cast<unsigned long long>(question.seed)));
            }
        return {name, comparison.n_different == 0 && comparison.draft_n > 0,
                comparison.figure(format("%u tokens as without drafts, %s", n_tokens_, settings.c_str())) +
                    (n_tokens_ < kMostTokens
                         ? format(" (%u tokens instead of %u: this model takes its time here)", n_tokens_, kMostTokens)
                         : ""),
                comparison.measured()};
    }

    CheckResult compare_lacking(Client& client) const {
        const auto n_said = std::count_if(lacking_->plain.begin(), lacking_->plain.end(), [&](uint32_t id) { return id >= n_shared_; });
        CheckResult result = compare(client, "pair-vocabulary", {&*lacking_, 1}, {1, 4, kMaxDraftLen},
                                     format("%zu of them ids that the draft lacks", static_cast<size_t>(n_said)));
        result.passed = result.passed && n_said > 0;
        result.measured.emplace_back("lacking_n", static_cast<double>(n_said));
        return result;
    }

    const ModelOptions& models_;
    const Tell& tell_;
    std::vector<uint32_t> prompt_;
    uint32_t n_tokens_ = kMostTokens, vocab_size_ = 0, n_shared_ = 0; // n_shared_: ids that the draft knows
    Asked greedy_;
    std::vector<Asked> coupled_;
    std::optional<Asked> lacking_; // none: the draft knows every id
};

} // namespace

void check_pair(const ModelOptions& models, const Tell& tell) {
    ModelOptions options = models;
    options.context = std::min(kContext, describe_model(options.target, options.cache_type).max_position);
    PairChecks(options, tell).run();
}

} // namespace auspex::cli
