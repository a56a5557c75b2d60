// Answers as JSON.
#include "openai/answer.h"

#include <algorithm>
#include <random>

namespace auspex::openai {

namespace {

Json or_null(bool is_known, double value) {
    return is_known ? Json(value) : Json();
}

Json choice_json(const Answer& answer, size_t index) {
    const Choice& choice = answer.choices[index];
    Json json = {{"index", index}};
    if (answer.endpoint == Endpoint::chat)
        json["message"] = {{"role", "assistant"}, {"content", choice.text}};
    else
        json["text"] = choice.before + choice.text;
    if (answer.has_tokens) json["token_ids"] = choice.tokens;
    if (answer.pieces)
        json["logprobs"] =
            logprobs_json(answer.endpoint, {choice.text, choice.stop_reason, choice.logprobs}, answer.pieces);
    else
        json["logprobs"] = nullptr;
    json["finish_reason"] = finish_reason(choice.stop_reason);
    return json;
}

Json completion_json(const Answer& answer) {
    const Choice& choice = answer.choices.front();
    const Totals& totals = answer.totals;
    return {{"index", 0},
            {"content", choice.text},
            {"tokens", choice.tokens},
            {"id", answer.id},
            {"stop", true},
            {"model", answer.model},
            {"tokens_predicted", totals.predicted_n},
            {"tokens_evaluated", totals.prompt_n},
            {"tokens_cached", totals.cached_n},
            {"truncated", false},
            {"stop_type", stop_type(choice.stop_reason)},
            {"timings", timings_json(totals)},
            {"auspex", speculation_json(answer)}};
}

} // namespace

// llama.cpp's names.
Json timings_json(const Totals& totals) {
    const uint64_t read_n = totals.prompt_n - totals.cached_n;
    Json timings = {{"cache_n", totals.cached_n}, {"prompt_n", read_n}};
    const auto add = [&](const std::string& what, uint64_t n, bool has_ms, double ms) {
        timings[what + "_ms"] = or_null(has_ms, ms);
        timings[what + "_per_token_ms"] = or_null(has_ms && n > 0, ms / static_cast<double>(n));
        timings[what + "_per_second"] = or_null(has_ms && ms > 0, 1e3 * static_cast<double>(n) / ms);
    };
    add("prompt", read_n, totals.has_prompt_ms, totals.prompt_ms);
    timings["predicted_n"] = totals.predicted_n;
    add("predicted", totals.predicted_n, totals.has_predicted_ms, totals.predicted_ms);
    if (totals.draft_n > 0) {
        timings["draft_n"] = totals.draft_n;
        timings["draft_n_accepted"] = totals.draft_n_accepted;
        timings["draft_rounds"] = totals.draft_rounds;
    }
    return timings;
}

Json speculation_json(const Answer& answer) {
    const Totals& totals = answer.totals;
    const auto& histogram = totals.accepted_histogram;
    const auto last = std::find_if(histogram.rbegin(), histogram.rend(), [](uint64_t n) { return n > 0; });
    return {{"seed", static_cast<int64_t>(answer.seed)}, // as requests have it
            {"alpha", or_null(totals.tested_n > 0, totals.overlap / static_cast<double>(totals.tested_n))},
            {"c", or_null(totals.c >= 0, totals.c)},
            {"v", or_null(totals.v >= 0, totals.v)},
            {"predicted_speedup", or_null(totals.predicted_speedup >= 0, totals.predicted_speedup)},
            {"choice", totals.choice.empty() ? Json() : Json(totals.choice)},
            {"accepted_histogram", std::vector<uint64_t>(histogram.begin(), last.base())}};
}

void Totals::add_prompt(const auspex_sequence_stats& stats, double waited_ms) {
    prompt_n += stats.prompt_n;
    cached_n += std::min(stats.cached_n, stats.prompt_n); // one that had to begin anew counts what it finds again
    if (stats.prompt_ms < 0) return;
    prompt_ms += std::max(stats.prompt_ms - waited_ms, 0.0);
    has_prompt_ms = true;
}

void Totals::add_choice(const auspex_sequence_stats& stats) {
    predicted_n += stats.predicted_n;
    if (stats.predicted_ms >= 0) {
        predicted_ms += stats.predicted_ms;
        has_predicted_ms = true;
    }
    draft_n += stats.draft_n;
    draft_n_accepted += stats.draft_n_accepted;
    draft_rounds += stats.rounds;
    tested_n += stats.tested_n;
    overlap += stats.overlap;
    for (size_t i = 0; i < accepted_histogram.size(); ++i)
        accepted_histogram[i] += stats.accepted_histogram[i];
    c = stats.c;
    v = stats.v;
    predicted_speedup = stats.predicted_speedup;
    choice = stats.choice;
}

Json usage_json(const Totals& totals) {
    return {{"prompt_tokens", totals.prompt_n},
            {"completion_tokens", totals.predicted_n},
            {"total_tokens", totals.prompt_n + totals.predicted_n},
            {"prompt_tokens_details", {{"cached_tokens", totals.cached_n}}}};
}

Json to_json(const Answer& answer) {
    if (answer.endpoint == Endpoint::completion) return completion_json(answer);
    const Totals& totals = answer.totals;
    Json choices = Json::array();
    for (size_t i = 0; i < answer.choices.size(); ++i)
        choices.push_back(choice_json(answer, i));
    return {{"id", answer.id},
            {"object", answer.endpoint == Endpoint::chat ? "chat.completion" : "text_completion"},
            {"created", answer.created},
            {"model", answer.model},
            {"choices", choices},
            {"usage", usage_json(totals)},
            {"system_fingerprint", answer.fingerprint},
            {"timings", timings_json(totals)},
            {"auspex", speculation_json(answer)}};
}

Json finish_reason(auspex_stop_reason reason) {
    switch (reason) {
    case AUSPEX_STOP_EOS:
    case AUSPEX_STOP_TEXT:
        return "stop";
    case AUSPEX_STOP_LENGTH:
    case AUSPEX_STOP_CONTEXT:
        return "length";
    default:
        return nullptr;
    }
}

const char* stop_type(auspex_stop_reason reason) {
    switch (reason) {
    case AUSPEX_STOP_EOS:
        return "eos";
    case AUSPEX_STOP_TEXT:
        return "word";
    case AUSPEX_STOP_LENGTH:
    case AUSPEX_STOP_CONTEXT:
        return "limit";
    default:
        return "none";
    }
}

const char* id_prefix(Endpoint endpoint) {
    return endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-";
}

std::string random_id(const std::string& prefix) {
    constexpr std::string_view letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    constexpr int n_letters = 24;
    std::random_device random;
    std::uniform_int_distribution<size_t> letter(0, letters.size() - 1);
    std::string id = prefix;
    for (int i = 0; i < n_letters; ++i)
        id += letters[letter(random)];
    return id;
}

} // namespace auspex::openai
