// Devices and models as a listing and as JSON.
#include "cli/common/output/json.h"
#include "cli/common/output/tuning.h"
#include "cli/info/report.h"

#include <cstdio>

namespace auspex::cli {

namespace {

void print_field(const char* label, const std::string& text) {
    std::printf("  %-18s %s\n", label, text.c_str());
}

void print_device(size_t index, const auspex_device_info& device) {
    std::printf("device %zu: %s\n", index, device.name);
    if (device.usable == 0) print_field("not usable", device.unusable_because);
    print_field("kind", device.kind);
    print_field("driver", device.driver);
    print_field("Vulkan", format_api_version(device.api_version));
    print_field("subgroup size", device.subgroup_size_min == device.subgroup_size_max
                                     ? format("%u", device.subgroup_size)
                                     : format("%u (%u to %u)", device.subgroup_size, device.subgroup_size_min,
                                              device.subgroup_size_max));
    print_field("workgroup", format("%u invocations, %s shared", device.max_workgroup_invocations,
                                    format_bytes(device.max_shared_memory_bytes).c_str()));
    print_field("device memory", format_bytes(device.device_local_bytes));
    print_field("one allocation", "at most " + format_bytes(device.max_allocation_bytes));
    print_field("one binding", "at most " + format_bytes(device.max_storage_buffer_range));
    print_field("timestamps", device.timestamp_period_ns > 0.0f
                                  ? format("every %g ns", static_cast<double>(device.timestamp_period_ns))
                                  : "none");
    print_field("features", device.features[0] != '\0' ? device.features : "none of the optional ones");
    print_field("numerics id", device.numerics_id);
}

void print_model(const std::string& path, const auspex_model_info& model) {
    std::printf("model: %s\n", path.c_str());
    print_field("hidden size", format("%u", model.hidden_size));
    print_field("layers", format("%u", model.n_layers));
    print_field("heads", format("%u of %u, %u for K and V", model.n_heads, model.head_dim, model.n_kv_heads));
    print_field("feed-forward", format("%u", model.ffn_size));
    print_field("vocabulary",
                format("%u, embedding %s", model.vocab_size, model.tied_embedding != 0 ? "tied" : "untied"));
    print_field("positions", format("%u, rope theta %g", model.max_position, static_cast<double>(model.rope_theta)));
    print_field("parameters", format("%.2f M, %s", static_cast<double>(model.n_parameters) * 1e-6, model.dtype));
    print_field("weights", format_bytes(model.weights_bytes));
    print_field("cache per token", format_bytes(model.cache_bytes_per_token));
}

void print_plan(const auspex_memory_plan& plan) {
    std::printf("memory of one sequence, context %u\n", plan.max_context);
    const auto both = [](uint64_t target, uint64_t draft) {
        return draft == 0 ? format_bytes(target) : format_bytes(target) + " target, " + format_bytes(draft) + " draft";
    };
    print_field("weights", both(plan.target_weights, plan.draft_weights));
    print_field("caches", both(plan.target_cache, plan.draft_cache));
    print_field("activations", format_bytes(plan.activations));
    print_field("total", format_bytes(plan.total) + (plan.fits != 0 ? ", fits" : ", does not fit"));
    print_field("device", format_bytes(plan.device_free_bytes) + " free of " + format_bytes(plan.device_bytes));
}

void print_self_draft(const SelfDraftVerdict& verdict) {
    const std::string size = verdict.plan.draft_weights > 0 ? ", " + format_bytes(verdict.plan.draft_weights) + " more" : "";
    print_field("self-draft", "q4_0" + size + (verdict.is_taken() ? ": taken unless asked otherwise" : ": not taken unless asked for, " + verdict.refusal));
}

Json shape_json(const auspex_model_info& model) {
    return {{"hidden_size", model.hidden_size}, {"n_layers", model.n_layers},        {"n_heads", model.n_heads},
            {"n_kv_heads", model.n_kv_heads},   {"head_dim", model.head_dim},        {"ffn_size", model.ffn_size},
            {"vocab_size", model.vocab_size},   {"max_position", model.max_position}};
}

} // namespace

void print_listing(const InfoReport& report) {
    for (size_t index = 0; index < report.devices.size(); ++index)
        print_device(index, report.devices[index]);
    if (report.devices.empty()) std::printf("no Vulkan device\n");
    for (const auto& [path, model] : report.models)
        print_model(path, model);
    if (report.plan) print_plan(*report.plan);
    if (report.self_draft) print_self_draft(*report.self_draft);
    if (report.tuning) print_tuning(*report.tuning);
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
    if (report.self_draft)
        memory["self_draft"] = {{"type", "q4_0"},
                                {"bytes", report.self_draft->plan.draft_weights},
                                {"taken", report.self_draft->is_taken()},
                                {"because", or_null(report.self_draft->refusal)}};
    print({{"schema", kSchema},
           {"devices", devices},
           {"models", models},
           {"memory", memory},
           {"tuning", report.tuning ? tuning_json(*report.tuning) : Json()}});
}

} // namespace auspex::cli
