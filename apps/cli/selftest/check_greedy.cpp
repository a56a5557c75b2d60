// Greedy text with drafts is the text without: among exact ties, when every draft is right, and when every draft is
// wrong.
#include "cli/selftest/checks.h"

#include <algorithm>

namespace auspex::cli {

namespace {

constexpr double kTiesEnd = 0.4, kAcceptEnd = 0.5; // of the time that all three take

// Models whose vocabulary repeats: at every position several ids have the same logit, in one lane, in others and in
// other chunks of the vocabulary. The lowest id must win.
CheckResult check_ties(const ModelOptions& models, Run& run) {
    constexpr uint32_t kVocab = 4103, kDistinct = 1994;
    const uint32_t n_tokens = run.effort.choose(48u, 10u), n_prompts = run.effort.choose(2u, 1u);
    SyntheticPair pair{tiny_shape(kVocab, 2, 1), tiny_shape(kVocab, 2, 1), 8, kMaxDraftLen, 128};
    pair.draft.scale *= 0.97f; // much the same mind
    pair.target.distinct_tokens = pair.draft.distinct_tokens = kDistinct;
    SyntheticClient client(models, pair);
    Comparison comparison;
    uint64_t n_not_lowest = 0;
    for (uint32_t i = 0; i < n_prompts; ++i) {
        std::vector<Question> questions(1 + kMaxDraftLen);
        for (uint32_t draft_len = 0; draft_len <= kMaxDraftLen; ++draft_len)
            questions[draft_len] = {
                .prompt = random_prompt(3 + 9 * i, kVocab, i + 1), .n_tokens = n_tokens, .draft_len = draft_len};
        const std::vector<Answer> answers = answer(*client, questions, pair.n_slots);
        for (uint32_t draft_len = 0; draft_len <= kMaxDraftLen; ++draft_len) {
            if (draft_len > 0)
                comparison.add(answers[draft_len], answers[0].tokens,
                               format("draft_len %u, prompt %u", draft_len, i + 1));
            for (const uint32_t token : answers[draft_len].tokens)
                n_not_lowest += token >= kDistinct ? 1 : 0;
        }
        run.progress(kTiesEnd * (i + 1) / n_prompts);
    }
    CheckResult result{
        "ties", comparison.n_different == 0 && n_not_lowest == 0 && comparison.draft_n > 0, {}, comparison.measured()};
    result.figure =
        comparison.figure(format("%u texts as without drafts, K 1 to %u", comparison.n_texts, kMaxDraftLen));
    result.figure += n_not_lowest == 0 ? "; the lowest of tied ids always"
                                       : format("; not the lowest of tied ids %llu times",
                                                static_cast<unsigned long long>(n_not_lowest));
    result.measured.emplace_back("not_lowest", static_cast<double>(n_not_lowest));
    return result;
}

// The draft is the target: it knows every token.
CheckResult check_full_accept(const ModelOptions& models, Run& run) {
    constexpr uint32_t kVocab = 1003;
    const uint32_t n_tokens = run.effort.choose(240u, 27u);
    SyntheticPair pair{tiny_shape(kVocab, 2, 5), tiny_shape(kVocab, 2, 5), 6, kMaxDraftLen, 300};
    SyntheticClient client(models, pair);
    const std::vector<uint32_t> prompt = random_prompt(21, kVocab, 3);
    std::vector<Question> questions;
    for (const float temperature : {0.0f, 1.0f})
        for (const uint32_t draft_len : {1u, 4u, kMaxDraftLen})
            questions.push_back(
                {.prompt = prompt, .n_tokens = n_tokens, .draft_len = draft_len, .temperature = temperature});
    uint64_t draft_n = 0, n_accepted = 0;
    for (const Answer& found : answer(*client, questions, pair.n_slots)) {
        draft_n += found.stats.draft_n;
        n_accepted += found.stats.draft_n_accepted;
    }
    CheckResult result{"full-accept", draft_n > 0 && n_accepted == draft_n, {}};
    result.figure = format("draft = target, greedy and temperature 1: %llu of %llu drafts accepted",
                           static_cast<unsigned long long>(n_accepted), static_cast<unsigned long long>(draft_n));
    result.measured = {{"draft_n", static_cast<double>(draft_n)},
                       {"draft_n_accepted", static_cast<double>(n_accepted)}};
    run.progress(kAcceptEnd);
    return result;
}

// Every draft is one that the plain text shows to be wrong.
CheckResult check_full_reject(const ModelOptions& models, Run& run) {
    constexpr uint32_t kVocab = 1003;
    SyntheticPair pair{tiny_shape(kVocab, 2, 5), {}, 1, kMaxDraftLen, 128};
    SyntheticClient client(models, pair);
    Question question{.prompt = random_prompt(21, kVocab, 3), .n_tokens = run.effort.choose(100u, 12u)};
    const std::vector<uint32_t> plain = answer(*client, {question}, 1)[0].tokens;

    const HostDrafter wrong = [&](const std::vector<uint32_t>& tokens, uint32_t max_drafts) {
        std::vector<uint32_t> drafts;
        for (size_t i = tokens.size() - question.prompt.size(); drafts.size() < max_drafts && i < plain.size(); ++i)
            drafts.push_back((plain[i] + 1 + static_cast<uint32_t>(i) % (kVocab - 1)) % kVocab);
        return drafts;
    };
    question.drafter = AUSPEX_DRAFTER_HOST;
    question.host_drafter = &wrong;
    Comparison comparison;
    for (question.draft_len = 1; question.draft_len <= kMaxDraftLen; ++question.draft_len) {
        comparison.add(answer(*client, {question}, 1)[0], plain, format("draft_len %u", question.draft_len));
        run.progress(kAcceptEnd + (1.0 - kAcceptEnd) * question.draft_len / kMaxDraftLen);
    }
    const bool passed = comparison.n_different == 0 && comparison.draft_n_accepted == 0 && comparison.draft_n > 0;
    return {"full-reject", passed,
            comparison.figure(format("wrong drafts only, K 1 to %u: the text as without drafts", kMaxDraftLen)),
            comparison.measured()};
}

} // namespace

void check_greedy(const ModelOptions& models, Run& run) {
    run.tell(check_ties(models, run));
    run.tell(check_full_accept(models, run));
    run.tell(check_full_reject(models, run));
}

} // namespace auspex::cli
