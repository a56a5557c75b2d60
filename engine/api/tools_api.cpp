// The unstable C interface for our own apps: describing devices and models, stage times.
#include "api/engine_handle.h"
#include "api/guard.h"

#include <auspex/auspex_tools.h>

using namespace auspex;

extern "C" {

auspex_status auspex_device_info_init(auspex_device_info* info, size_t size) {
    return init_struct(info, size, AUSPEX_TYPE_DEVICE_INFO);
}
auspex_status auspex_model_info_init(auspex_model_info* info, size_t size) {
    return init_struct(info, size, AUSPEX_TYPE_MODEL_INFO);
}
auspex_status auspex_synthetic_models_init(auspex_synthetic_models* models, size_t size) {
    return init_struct(models, size, AUSPEX_TYPE_SYNTHETIC_MODELS);
}

auspex_status auspex_device_describe(uint32_t index, auspex_device_info* info, auspex_log_callback log_callback, void* log_user_data) {
    return guard([&] {
        Logger log = make_logger(log_callback, log_user_data);
        auto listed = Device::list(log);
        if (!listed.ok()) return to_public(listed.status(), log);
        if (index >= listed.value().size()) return AUSPEX_ERROR_NOT_FOUND;
        const auto& [caps, unusable_because] = listed.value()[index];
        auspex_device_info value = {};
        copy_text(value.name, caps.name);
        copy_text(value.driver, caps.driver);
        copy_text(value.kind, caps.type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? "discrete"
                              : caps.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? "integrated"
                              : caps.type == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU    ? "virtual"
                              : caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU            ? "cpu"
                                                                                    : "other");
        value.api_version = caps.api_version;
        value.usable = unusable_because.empty() ? 1 : 0;
        copy_text(value.unusable_because, unusable_because);
        value.subgroup_size = caps.subgroup_size;
        value.subgroup_size_min = caps.subgroup_size_min;
        value.subgroup_size_max = caps.subgroup_size_max;
        value.max_storage_buffer_range = caps.max_storage_buffer_range;
        value.max_allocation_bytes = caps.max_allocation_bytes;
        value.device_local_bytes = caps.device_local_bytes;
        value.max_shared_memory_bytes = caps.max_shared_memory_bytes;
        value.max_workgroup_invocations = caps.max_workgroup_invocations;
        value.timestamp_period_ns = caps.timestamp_period_ns;
        std::string features;
        for (const std::string& feature : caps.features) features += (features.empty() ? "" : " ") + feature;
        copy_text(value.features, features);
        copy_text(value.numerics_id, choose_tuning(caps).numerics_id());
        return write_struct(info, AUSPEX_TYPE_DEVICE_INFO, value) ? AUSPEX_OK : AUSPEX_ERROR_INVALID_ARGUMENT;
    });
}

auspex_status auspex_model_describe(const char* path, auspex_cache_type cache_type, auspex_model_info* info,
                                    auspex_log_callback log_callback, void* log_user_data) {
    return guard([&] {
        const std::optional<DType> cache_dtype = cache_dtype_of(cache_type);
        if (!path || !cache_dtype) return AUSPEX_ERROR_INVALID_ARGUMENT;
        Logger log = make_logger(log_callback, log_user_data);
        auto opened = open_huggingface_checkpoint(path);
        if (!opened.ok()) return to_public(opened.status(), log);
        const LlamaConfig& c = opened.value()->config();
        const TensorInfo* matrix = opened.value()->find("model.embed_tokens.weight");
        auspex_model_info value = {};
        value.hidden_size = c.hidden_size;
        value.n_layers = c.n_layers;
        value.n_heads = c.n_heads;
        value.n_kv_heads = c.n_kv_heads;
        value.head_dim = c.head_dim;
        value.ffn_size = c.ffn_size;
        value.vocab_size = c.vocab_size;
        value.max_position = c.max_position;
        value.tied_embedding = c.tied_embedding ? 1 : 0;
        value.rope_theta = c.rope_theta;
        value.rms_eps = c.rms_eps;
        if (matrix) copy_text(value.dtype, std::string(dtype_name(matrix->dtype)));
        value.n_parameters = c.n_parameters();
        value.weights_bytes = c.n_parameters() * (matrix ? dtype_bytes(matrix->dtype) : 2);
        CacheShape shape = {.n_layers = c.n_layers,
                            .n_heads = c.n_heads,
                            .n_kv_heads = c.n_kv_heads,
                            .head_dim = c.head_dim,
                            .dtype = *cache_dtype,
                            .n_slots = 1,
                            .max_rows = 1,
                            .page_size = 1,
                            .n_pages = 1};
        value.cache_bytes_per_token = KvCache::bytes_per_token(shape);
        return write_struct(info, AUSPEX_TYPE_MODEL_INFO, value) ? AUSPEX_OK : AUSPEX_ERROR_INVALID_ARGUMENT;
    });
}

auspex_status auspex_engine_take_round_times(auspex_engine* engine, uint32_t draft_len, auspex_round_times* times) {
    return guard([&] {
        if (!engine || !times) return AUSPEX_ERROR_INVALID_ARGUMENT;
        RoundTimes taken = engine->engine->scheduler().take_round_times(draft_len);
        *times = {taken.rounds, taken.draft_ms, taken.verify_ms, taken.accept_ms, taken.wall_ms};
        return AUSPEX_OK;
    });
}

} // extern "C"
