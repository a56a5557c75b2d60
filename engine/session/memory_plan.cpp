// Whether an engine fits its device, and what would: by building it without its memory.
#include "session/engine.h"

namespace auspex {

namespace {

constexpr uint32_t kContextStep = 256; // tokens; what is suggested is a multiple

std::string mebibytes(uint64_t bytes) {
    return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB";
}

} // namespace

Result<MemoryPlan> Engine::plan(const EngineDesc& desc, const Logger& log) {
    OpenedModels models;
    AUSPEX_TRY_ASSIGN(engine, open(desc, models, log));
    return engine->build(desc, models, true);
}

Status Engine::check_fits(const EngineDesc& desc, const OpenedModels& models) {
    auto plan = build(desc, models, true);
    take_down();
    if (!plan.ok()) return plan.status();
    const MemoryPlan& p = plan.value();
    if (p.total <= p.device_free_bytes) return ok_status();
    return {Code::out_of_device_memory,
            target_name_ + ": a context of " + std::to_string(p.max_context) + " tokens needs " + mebibytes(p.total) + " (weights " +
                mebibytes(p.target_weights + p.draft_weights) + ", caches " + mebibytes(p.target_cache + p.draft_cache) +
                ", the rest " + mebibytes(p.activations) + "), but the device has " + mebibytes(p.device_free_bytes) + " free of " +
                mebibytes(p.device_bytes) + "; " + what_fits(desc, models, p)};
}

// The largest context with these weights, or else the widest weights with this context.
std::string Engine::what_fits(const EngineDesc& desc, const OpenedModels& models, const MemoryPlan& plan) {
    auto fits = [&](const EngineDesc& tried, const OpenedModels& with) {
        auto answer = build(tried, with, true);
        take_down();
        return answer.ok() && answer.value().total <= plan.device_free_bytes;
    };
    EngineDesc tried = desc;
    uint32_t low = 0, high = ceil_div(plan.max_context, kContextStep); // in steps: low fits or is 0, high does not fit
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        tried.max_context = middle * kContextStep;
        (fits(tried, models) ? low : high) = middle;
    }
    std::string text;
    if (low > 0) text = "a context of " + std::to_string(low * kContextStep) + " tokens would fit";
    for (DType type : {DType::q8_0, DType::q6_k, DType::q4_k}) {
        tried = desc;
        tried.target_type = type;
        if (models.draft && desc.self_draft == SelfDraft::none && desc.draft_type != DType::q4_k) tried.draft_type = type;
        auto narrower = open_models({tried.target_path, tried.target_synthetic, tried.target_type}, {tried.draft_path, tried.draft_synthetic, tried.draft_type}, tried.self_draft);
        if (!narrower.ok() || !fits(tried, narrower.value())) continue;
        return text + (text.empty() ? "" : ", or this one with ") + "weights as " + std::string(dtype_name(type)) + (text.empty() ? " would fit" : "");
    }
    return text.empty() ? "nothing that this build can do makes it fit; take a smaller model" : text;
}

} // namespace auspex
