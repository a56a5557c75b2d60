// The user's own files on the user's own device: greedy and coupled texts with drafts are those of the target alone, of ids that
// the draft lacks, too.
#include "cli/selftest/checks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

namespace auspex::cli {

namespace {

constexpr uint32_t kContext = 256;
constexpr uint32_t kMostTokens = 64, kMostTokensSmall = 16, kFewestTokens = 4, kProbeTokens = 4;
constexpr double kSecondsToSpend = 25.0, kSecondsToSpendSmall = 10.0; // then fewer tokens have to do
constexpr float kTemperature = 0.8f;
constexpr size_t kRaised = 16; // ids that the draft lacks, in one text

// A question and its text without drafts, by the target alone: no engine that has the draft can have changed it.
struct Asked {
    Question question;
    std::vector<uint32_t> plain;
};

class PairChecks {
  public:
    PairChecks(const ModelOptions& models, Run& run)
        : models_(models), run_(run),
          draft_lens_(run.effort.is_small() ? std::vector<uint32_t>{1, 4} : std::vector<uint32_t>{1, 4, kMaxDraftLen}),
          n_texts_(run.effort.choose(10.0, 7.0)) {}

    void run() {
        {
            ModelOptions target = models_;
            target.draft.clear();
            Client alone({target, nullptr, 1, kMaxDraftLen});
            ask_without_drafts(alone);
        } // its memory is the pair's
        Client pair({models_, nullptr, 1, kMaxDraftLen});
        const std::string draft_lens = run_.effort.is_small() ? "K 1, 4" : format("K 1, 4, %u", kMaxDraftLen);
        run_.tell(compare(pair, "pair-greedy", {&greedy_, 1}, draft_lens_, draft_lens));
        run_.tell(compare(pair, "pair-coupled", coupled_, {&draft_lens_[1], 1}, run_.effort.is_small() ? "1 seed, K 4" : "2 seeds, K 4"));
        if (lacking_) run_.tell(compare_lacking(pair));
    }

  private:
    Answer ask(Client& client, const Question& question) {
        Answer found = answer(client, {question}, 1)[0];
        run_.progress(++n_told_ / n_texts_);
        return found;
    }

    Question question() const { return {.prompt = prompt_, .n_tokens = n_tokens_}; }

    // A text of fewer tokens where tokens take long: as many as fit the time, by what the first few took.
    void choose_length(Client& client) {
        const double n_texts = n_texts_ - 2.0; // after these; with drafts none takes longer than about one without
        const uint32_t most = run_.effort.choose(kMostTokens, kMostTokensSmall);
        n_tokens_ = kProbeTokens;
        ask(client, question()); // reads the prompt and builds what is built at first use
        const auto start = std::chrono::steady_clock::now();
        ask(client, question());
        const double seconds_per_token = seconds_since(start) / kProbeTokens;
        const double affordable = run_.effort.choose(kSecondsToSpend, kSecondsToSpendSmall) / n_texts / std::max(seconds_per_token, 1e-6);
        n_tokens_ = static_cast<uint32_t>(std::clamp(affordable, double{kFewestTokens}, static_cast<double>(most)));
    }

    void ask_without_drafts(Client& alone) {
        prompt_ = alone.tokenize(kBuiltInPrompt);
        vocab_size_ = alone.info().vocab_size;
        choose_length(alone);
        greedy_ = {question(), ask(alone, question()).tokens};
        for (uint64_t seed = 1; seed <= run_.effort.choose(2u, 1u); ++seed) {
            Question sampled = question();
            sampled.temperature = kTemperature;
            sampled.seed = seed;
            sampled.acceptance = AUSPEX_ACCEPT_COUPLED;
            coupled_.push_back({sampled, ask(alone, sampled).tokens});
        }
        if (models_.draft.empty()) return;
        n_shared_ = Tokenizer(models_.draft).vocab_size();
        if (n_shared_ >= vocab_size_) return;
        n_texts_ += 1.0 + static_cast<double>(draft_lens_.size());
        Question raised = question();
        raised.biases = raise_lacking(alone);
        lacking_ = {raised, ask(alone, raised).tokens};
    }

    // Ids that only the target has, made its likeliest words after the prompt.
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
    Answer ask_with_drafts(Client& client, Question question, const std::vector<uint32_t>& plain) {
        const HostDrafter two_of_three = [&](const std::vector<uint32_t>& tokens, uint32_t max_drafts) {
            std::vector<uint32_t> drafts;
            for (size_t i = tokens.size() - prompt_.size(); drafts.size() < max_drafts && i < plain.size(); ++i)
                drafts.push_back(i % 3 == 2 ? (plain[i] + 1) % vocab_size_ : plain[i]);
            return drafts;
        };
        if (client.info().is_self_draft != 0) question.drafter = AUSPEX_DRAFTER_SELF;
        if (client.info().has_draft == 0) {
            question.drafter = AUSPEX_DRAFTER_HOST;
            question.host_drafter = &two_of_three;
        }
        return ask(client, question);
    }

    CheckResult compare(Client& client, const std::string& name, std::span<const Asked> asked, std::span<const uint32_t> draft_lens,
                        const std::string& settings) {
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

    CheckResult compare_lacking(Client& client) {
        const auto n_said = std::count_if(lacking_->plain.begin(), lacking_->plain.end(), [&](uint32_t id) { return id >= n_shared_; });
        CheckResult result = compare(client, "pair-vocabulary", {&*lacking_, 1}, draft_lens_,
                                     format("%zu of them ids that the draft lacks", static_cast<size_t>(n_said)));
        result.passed = result.passed && n_said > 0;
        result.measured.emplace_back("lacking_n", static_cast<double>(n_said));
        return result;
    }

    const ModelOptions& models_;
    Run& run_;
    std::vector<uint32_t> draft_lens_;
    double n_told_ = 0.0, n_texts_; // 2 to choose the length, 3 without drafts and 5 with them; a slow device: 2 and 3
    std::vector<uint32_t> prompt_;
    uint32_t n_tokens_ = kMostTokens, vocab_size_ = 0, n_shared_ = 0; // n_shared_: ids that the draft knows
    Asked greedy_;
    std::vector<Asked> coupled_;
    std::optional<Asked> lacking_; // none: the draft knows every id
};

} // namespace

void check_pair(const ModelOptions& models, Run& run) {
    ModelOptions options = models;
    options.context = std::min(kContext, describe_model(options.target, options.cache_type).max_position);
    PairChecks(options, run).run();
}

} // namespace auspex::cli
