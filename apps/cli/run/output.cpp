// A run as JSON, and the summary that people see.
#include "cli/common/output/figures.h"
#include "cli/common/output/json.h"
#include "cli/run/report.h"

#include <algorithm>
#include <cstdio>

namespace auspex::cli {

namespace {

const char* stop_reason_name(auspex_stop_reason reason) {
    switch (reason) {
    case AUSPEX_STOP_EOS:
        return "eos";
    case AUSPEX_STOP_LENGTH:
        return "length";
    case AUSPEX_STOP_CONTEXT:
        return "context";
    case AUSPEX_STOP_TEXT:
        return "stop_text";
    default:
        return "interrupted";
    }
}

std::string counted(uint64_t count, const char* noun) {
    return format("%llu %s%s", static_cast<unsigned long long>(count), noun, count == 1 ? "" : "s");
}

std::string stop_reasons(const RunReport& report) {
    std::string text;
    for (const auto reason :
         {AUSPEX_STOP_EOS, AUSPEX_STOP_TEXT, AUSPEX_STOP_LENGTH, AUSPEX_STOP_CONTEXT, AUSPEX_STOP_CANCELLED}) {
        const auto n = std::count_if(report.completions.begin(), report.completions.end(),
                                     [&](const Completion& completion) { return completion.stop_reason == reason; });
        if (n == 0) continue;
        text += (text.empty() ? "" : ", ") + std::string(stop_reason_name(reason));
        if (report.completions.size() > 1) text += format(" (%lld)", static_cast<long long>(n));
    }
    return text.empty() ? "interrupted" : text;
}

// Whether drafts paid, and that they changed nothing.
std::string verdict(const RunReport& report, const Demonstration& demonstration) {
    constexpr double as_fast = 0.995; // 1.00 where it is printed
    const std::optional<double>& speedup = demonstration.speedup;
    std::string text = report.speculation.draft_n == 0 ? "Nothing was drafted, so nothing came faster"
                       : !speedup                      ? "Nobody knows how fast the stories came"
                       : *speedup < as_fast            ? format("Drafts made the story slower, %.2f times", *speedup)
                                                       : format("Drafts made the story %.2f times as fast", *speedup);
    if (demonstration.first_difference)
        text += format("; the texts DIFFER from token %zu on.", *demonstration.first_difference + 1);
    else
        text += "; both texts are equal bit for bit.";
    return text;
}

Json completion_json(const Completion& completion) {
    Json ids = Json::array();
    for (const auspex_token& token : completion.tokens)
        ids.push_back(token.id);
    return {{"tokens", ids}, {"text", completion.text}, {"stop_reason", stop_reason_name(completion.stop_reason)}};
}

Json speculation_json(const RunReport& report) {
    const SpeculationReport& speculation = report.speculation;
    const SamplingOptions& sampling = report.options.sampling;
    const bool chooses_len = !sampling.is_plain() && sampling.draft_len == AUSPEX_DRAFT_LEN_AUTO;
    Json json = {{"draft_len", chooses_len ? Json() : Json(sampling.is_plain() ? 0 : sampling.draft_len)}, // null: auto
                 {"rounds", speculation.rounds},
                 {"acceptance_rate", or_null(speculation.acceptance_rate())},
                 {"tokens_per_round", or_null(speculation.tokens_per_round())},
                 {"accepted_histogram", speculation.accepted_histogram},
                 {"draft_ms", or_null(report.draft_ms)},
                 {"verify_ms", or_null(report.verify_ms)},
                 {"accept_ms", or_null(report.accept_ms)},
                 {"drafter", sampling.is_plain() ? "none" : drafter_name(sampling.drafter)},
                 {"acceptance", acceptance_name(sampling.acceptance)},
                 {"lenience", sampling.lenience},
                 {"lossless", sampling.is_lossless()},
                 {"tested_n", speculation.tested_n},
                 {"alpha", or_null(speculation.alpha())},
                 {"accepted_at_least", speculation.accepted_at_least()},
                 {"c", or_null(speculation.c)},
                 {"v", or_null(speculation.v)},
                 {"predicted_speedup", or_null(speculation.predicted_speedup)},
                 {"speedup", nullptr}}; // a run decodes nothing plainly to compare with; bench does
    json["drafter_rounds"] = drafter_rounds_json(speculation.drafter_rounds);
    json["choice"] = or_null(speculation.choice);
    return json;
}

Json demonstration_json(const Demonstration& demonstration) {
    return {{"plain_per_second", or_null(demonstration.plain_per_second)},
            {"speedup", or_null(demonstration.speedup)},
            {"equal", !demonstration.first_difference},
            {"drafted_per_second", or_null(demonstration.drafted_per_second)},
            {"tellings", demonstration.tellings}};
}

} // namespace

void print_json(const RunReport& report) {
    Json completions = Json::array();
    for (const Completion& completion : report.completions)
        completions.push_back(completion_json(completion));

    Json json;
    json["schema"] = kSchema;
    json["device"] = device_json(report.engine);
    json["model"] = models_json(report.options.models);
    json["seed"] = report.seed;
    json["prompt_tokens"] = report.prompt_tokens;
    json["completions"] = completions;
    json["timings"] = {
        {"prompt_n", report.prompt_tokens.size()},
        {"prompt_ms", or_null(report.prompt_ms)},
        {"predicted_n", report.speculation.predicted_n},
        {"predicted_ms", or_null(report.predicted_ms)},
        {"predicted_per_second", or_null(per_second(report.speculation.predicted_n, report.predicted_ms))},
        {"draft_n", report.speculation.draft_n},
        {"draft_n_accepted", report.speculation.draft_n_accepted},
        {"first_token_ms", or_null(report.first_token_ms)}};
    json["speculation"] = speculation_json(report);
    json["demonstration"] = report.demonstration ? demonstration_json(*report.demonstration) : Json();
    print(json);
}

void print_summary(const RunReport& report) {
    const auspex_engine_info& engine = report.engine;
    print_line("device", engine.device_name);
    print_line("driver", std::string(engine.driver) + ", Vulkan " + format_api_version(engine.api_version));
    print_line("prompt", counted(report.prompt_tokens.size(), "token") + ", " + number(report.prompt_ms) + " ms, " +
                             number(per_second(report.prompt_tokens.size(), report.prompt_ms)) + " tok/s");
    print_line("generation", counted(report.speculation.predicted_n, "token") + ", " + number(report.predicted_ms) +
                                 " ms, " + number(per_second(report.speculation.predicted_n, report.predicted_ms)) +
                                 " tok/s; first token after " + number(report.first_token_ms) + " ms");
    print_speculation(report.speculation, report.options.sampling);
    print_line("GPU time", "draft " + number(report.draft_ms) + " ms, verify " + number(report.verify_ms) +
                               " ms, accept " + number(report.accept_ms) + " ms");
    print_line("stop", stop_reasons(report) + format("; seed %llu", static_cast<unsigned long long>(report.seed)));
    const SamplingOptions& sampling = report.options.sampling;
    if (sampling.temperature > 0.0 && sampling.draft_len == AUSPEX_DRAFT_LEN_AUTO && sampling.drafter != AUSPEX_DRAFTER_NONE &&
        sampling.acceptance == AUSPEX_ACCEPT_REJECTION)
        print_line("", "to repeat a seed's text: --acceptance coupled, or a fixed --draft-len");
    if (!report.demonstration) return;
    const Demonstration& demonstration = *report.demonstration;
    std::string plain = "the same story without drafts: " + number(demonstration.plain_per_second) + " tok/s";
    if (demonstration.tellings > 1) plain += "; with drafts " + number(demonstration.drafted_per_second);
    print_line("plain", plain);
    if (demonstration.tellings > 1) print_line("", format("(medians of %u tellings each, in turn)", demonstration.tellings));
    std::fprintf(stderr, "%s\n", verdict(report, demonstration).c_str());
}

} // namespace auspex::cli
