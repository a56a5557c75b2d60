// Coupled acceptance gives, token for token, the text of plain sampling with the same seed, whoever drafts.
#include "cli/selftest/checks.h"

namespace auspex::cli {

void check_coupled(const ModelOptions& models, Run& run) {
    constexpr uint32_t kVocab = 211, kMaxCoupled = 4; // K is 1 to this
    const uint32_t n_tokens = run.effort.choose(48u, 12u), n_seeds = run.effort.choose(4u, 1u);
    const SyntheticPair pair{tiny_shape(kVocab, 2, 9), tiny_shape(kVocab, 1, 9), 2 * kMaxCoupled + 1, kMaxCoupled,
                             96};
    SyntheticClient client(models, pair);
    Comparison comparison;
    uint64_t n_by_model = 0, n_by_ngrams = 0;
    for (uint64_t seed = 1; seed <= n_seeds; ++seed) {
        // The prompt repeats itself, so that n-grams have something to find.
        std::vector<uint32_t> prompt = random_prompt(8, kVocab, seed);
        prompt.insert(prompt.end(), prompt.begin(), prompt.end());
        Question plain{.prompt = prompt,
                       .n_tokens = n_tokens,
                       .temperature = 0.7f,
                       .seed = seed,
                       .acceptance = AUSPEX_ACCEPT_COUPLED};
        std::vector<Question> questions = {plain};
        std::vector<std::string> settings = {""};
        for (const auspex_drafter drafter : {AUSPEX_DRAFTER_MODEL, AUSPEX_DRAFTER_NGRAM}) {
            for (uint32_t draft_len = 1; draft_len <= kMaxCoupled; ++draft_len) {
                Question question = plain;
                question.drafter = drafter;
                question.draft_len = draft_len;
                questions.push_back(question);
                settings.push_back(format("%s, draft_len %u, seed %llu",
                                          drafter == AUSPEX_DRAFTER_MODEL ? "model drafts" : "n-gram drafts", draft_len,
                                          static_cast<unsigned long long>(seed)));
            }
        }
        const std::vector<Answer> answers = answer(*client, questions, pair.n_slots);
        for (size_t i = 1; i < answers.size(); ++i) {
            comparison.add(answers[i], answers[0].tokens, settings[i]);
            (questions[i].drafter == AUSPEX_DRAFTER_MODEL ? n_by_model : n_by_ngrams) += answers[i].stats.draft_n;
        }
        run.progress(static_cast<double>(seed) / n_seeds);
    }
    CheckResult result{"coupled", comparison.n_different == 0 && n_by_model > 0, {}, comparison.measured()};
    result.figure = comparison.figure(format("%u texts as without drafts, model and n-gram, K 1 to %u, %u seed%s",
                                             comparison.n_texts, kMaxCoupled, n_seeds, n_seeds == 1 ? "" : "s"));
    result.measured.emplace_back("model_draft_n", static_cast<double>(n_by_model));
    result.measured.emplace_back("ngram_draft_n", static_cast<double>(n_by_ngrams));
    run.tell(result);
}

} // namespace auspex::cli
