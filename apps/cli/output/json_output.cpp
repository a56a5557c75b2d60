// Reports as JSON. Absent values are null, keys keep the order they are written in.
#include "cli/output/json.h"
#include "cli/output/report.h"
#include "cli/standard_output.h"

#include <cmath>
#include <cstdio>

namespace auspex::cli {

Json or_null(std::optional<double> value) {
    return value ? Json(*value) : Json();
}

Json or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

void print(const Json& json) {
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    print_text(text + "\n");
}

Json device_json(const auspex_engine_info& engine) {
    return {{"name", engine.device_name},
            {"driver", engine.driver},
            {"api_version", format_api_version(engine.api_version)},
            {"memory_bytes", engine.device_memory_bytes}}; // reserved by this process
}

namespace {

// A float's own digits, not those of the nearest double.
Json from_float(float value) {
    return std::stod(shortest(value));
}

Json completion_json(const Completion& completion) {
    Json ids = Json::array();
    for (const auspex_token& token : completion.tokens)
        ids.push_back(token.id);
    return {{"tokens", ids}, {"text", completion.text}, {"stop_reason", stop_reason_name(completion.stop_reason)}};
}

Json shape_json(const auspex_model_info& model) {
    return {{"hidden_size", model.hidden_size}, {"n_layers", model.n_layers},        {"n_heads", model.n_heads},
            {"n_kv_heads", model.n_kv_heads},   {"head_dim", model.head_dim},        {"ffn_size", model.ffn_size},
            {"vocab_size", model.vocab_size},   {"max_position", model.max_position}};
}

Json drafter_rounds_json(const std::array<uint64_t, kRoundDrafters>& rounds) {
    Json json = Json::object();
    for (size_t i = 0; i < rounds.size(); ++i)
        json[round_drafter(i)] = rounds[i];
    return json;
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
            {"equal", !demonstration.first_difference}};
}

} // namespace

void print_json(const RunReport& report) {
    Json completions = Json::array();
    for (const Completion& completion : report.completions)
        completions.push_back(completion_json(completion));

    Json json;
    json["schema"] = kSchema;
    json["device"] = device_json(report.engine);
    json["model"] = {{"target", or_null(report.options.models.target)},
                     {"draft", or_null(report.options.models.draft)}};
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

void print_json(const BenchReport& report) {
    Json results = Json::array();
    for (const BenchResult& result : report.results) {
        const bool chooses_len = result.way.draft_len == AUSPEX_DRAFT_LEN_AUTO;
        results.push_back({{"test", result.way.is_plain() ? "plain" : "spec"},
                           {"draft_len", chooses_len ? Json() : Json(result.way.draft_len)},
                           {"tokens_per_second", result.tokens_per_second},
                           {"stddev", result.stddev},
                           {"samples", result.samples},
                           {"acceptance_rate", or_null(result.acceptance_rate)},
                           {"tokens_per_round", result.tokens_per_round},
                           {"c", or_null(result.c)},
                           {"v", or_null(result.v)},
                           {"speedup", or_null(result.speedup)},
                           {"predicted_speedup", or_null(result.predicted_speedup)},
                           {"alpha", or_null(result.alpha)},
                           {"theorem_speedup", or_null(result.theorem_speedup)},
                           {"draft_ms", or_null(result.draft_ms)},
                           {"verify_ms", or_null(result.verify_ms)},
                           {"accept_ms", or_null(result.accept_ms)},
                           {"round_ms", or_null(result.round_ms)},
                           {"weights_gb_per_second", or_null(result.weights_gb_per_second)},
                           {"drafter", drafter_name(result.way.drafter)},
                           {"overlap", or_null(result.overlap)},
                           {"drafter_rounds", drafter_rounds_json(result.drafter_rounds)},
                           {"choice", or_null(result.choice)},
                           {"cpu_us_per_round", or_null(result.cpu_us_per_round)},
                           {"first_token_ms", or_null(result.first_token_ms)},
                           {"round_over_passes_gpu", or_null(result.round_over_passes_gpu)},
                           {"round_over_passes_wall", or_null(result.round_over_passes_wall)}});
    }
    Json json;
    json["schema"] = kSchema;
    json["device"] = device_json(report.engine);
    json["results"] = results;
    json["model"] = {{"target", or_null(report.options.models.target)},
                     {"draft", or_null(report.options.models.draft)}};
    json["prompt_n"] = report.prompt_n;
    json["predicted_n"] = report.options.n_predict;
    json["temperature"] = report.options.sampling.temperature;
    json["seed"] = report.options.seed;
    json["acceptance"] = acceptance_name(report.options.sampling.acceptance);
    json["lenience"] = report.options.sampling.lenience;
    json["lossless"] = report.options.sampling.is_lossless() && !report.options.simulated_alpha;
    json["simulated_alpha"] = or_null(report.options.simulated_alpha); // not null: the texts mean nothing
    add_json(report.speed, json);
    print(json);
}

void print_json(const InfoReport& report) {
    Json devices = Json::array();
    for (const auspex_device_info& device : report.devices) {
        devices.push_back({{"index", devices.size()},
                           {"name", device.name},
                           {"driver", device.driver},
                           {"api_version", format_api_version(device.api_version)},
                           {"kind", device.kind},
                           {"usable", device.usable != 0},
                           {"unusable_because", or_null(device.unusable_because)},
                           {"subgroup_size", device.subgroup_size},
                           {"subgroup_size_min", device.subgroup_size_min},
                           {"subgroup_size_max", device.subgroup_size_max},
                           {"max_storage_buffer_range", device.max_storage_buffer_range},
                           {"max_allocation_bytes", device.max_allocation_bytes},
                           {"device_local_bytes", device.device_local_bytes},
                           {"max_shared_memory_bytes", device.max_shared_memory_bytes},
                           {"max_workgroup_invocations", device.max_workgroup_invocations},
                           {"timestamp_period_ns", from_float(device.timestamp_period_ns)},
                           {"features", device.features},
                           {"numerics_id", device.numerics_id}});
    }
    Json models = Json::array();
    for (const auto& [path, model] : report.models) {
        models.push_back({{"path", path},
                          {"shape", shape_json(model)},
                          {"tied_embedding", model.tied_embedding != 0},
                          {"rope_theta", from_float(model.rope_theta)},
                          {"rms_eps", from_float(model.rms_eps)},
                          {"dtype", model.dtype},
                          {"n_parameters", model.n_parameters},
                          {"weights_bytes", model.weights_bytes},
                          {"cache_bytes_per_token", model.cache_bytes_per_token}});
    }
    Json memory = nullptr;
    if (report.plan)
        memory = {{"context", report.plan->max_context},
                  {"target_weights", report.plan->target_weights},
                  {"draft_weights", report.plan->draft_weights},
                  {"target_cache", report.plan->target_cache},
                  {"draft_cache", report.plan->draft_cache},
                  {"activations", report.plan->activations},
                  {"total", report.plan->total},
                  {"device_bytes", report.plan->device_bytes},
                  {"device_free_bytes", report.plan->device_free_bytes},
                  {"fits", report.plan->fits != 0}};
    print({{"schema", kSchema},
           {"devices", devices},
           {"models", models},
           {"memory", memory},
           {"tuning", report.tuning ? tuning_json(*report.tuning) : Json()}});
}

void print_json(const TokenizeReport& report) {
    Json pieces = Json::array();
    for (const std::string& piece : report.pieces)
        pieces.push_back(with_visible_bytes(piece));
    print({{"ids", report.ids}, {"pieces", pieces}});
}

void print_text_json(const std::string& text) {
    print({{"text", text}});
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
