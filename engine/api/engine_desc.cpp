// The public description of an engine as the engine takes it.
#include "api/engine_handle.h"

#include <auspex/auspex_tools.h>
#include <auspex/auspex_vulkan.h>

#include "device/vk_cooperative_matrix.h"

#include <algorithm>
#include <cstring>

using namespace auspex;

namespace {

bool has_name(const char* const* names, uint32_t n, const char* name) {
    return std::any_of(names, names + n, [&](const char* other) { return std::strcmp(other, name) == 0; });
}

// Once the first is enabled, coherent buffers ask for the second.
template <typename Features> bool has_memory_model(const Features& features) { return features.vulkanMemoryModel && features.vulkanMemoryModelDeviceScope; }

BorrowedDevice borrow(const auspex_vulkan_device& host) {
    BorrowedDevice device;
    device.get_instance_proc_addr = host.get_instance_proc_addr;
    device.instance = host.instance;
    device.physical_device = host.physical_device;
    device.device = host.device;
    device.queue = host.queue;
    device.queue_family = host.queue_family;
    device.api_version = host.api_version;
    bool matrix = false, memory_model = false, half = false, dots = false;
    for (auto* at = host.enabled_features ? static_cast<const VkBaseInStructure*>(host.enabled_features->pNext) : nullptr; at; at = at->pNext) {
        VkBool32 size_control = VK_FALSE, full = VK_FALSE;
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES) {
            auto* features = reinterpret_cast<const VkPhysicalDeviceSubgroupSizeControlFeatures*>(at);
            size_control = features->subgroupSizeControl;
            full = features->computeFullSubgroups;
        } else if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES) {
            auto* features = reinterpret_cast<const VkPhysicalDeviceVulkan13Features*>(at);
            size_control = features->subgroupSizeControl;
            full = features->computeFullSubgroups;
            dots = features->shaderIntegerDotProduct;
        }
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES)
            dots = reinterpret_cast<const VkPhysicalDeviceShaderIntegerDotProductFeatures*>(at)->shaderIntegerDotProduct;
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR)
            matrix = reinterpret_cast<const VkPhysicalDeviceCooperativeMatrixFeaturesKHR*>(at)->cooperativeMatrix;
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES)
            memory_model = has_memory_model(*reinterpret_cast<const VkPhysicalDeviceVulkanMemoryModelFeatures*>(at));
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES)
            half = reinterpret_cast<const VkPhysicalDeviceShaderFloat16Int8Features*>(at)->shaderFloat16;
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
            auto* features = reinterpret_cast<const VkPhysicalDeviceVulkan12Features*>(at);
            memory_model = has_memory_model(*features);
            half = features->shaderFloat16;
        }
        bool available = host.api_version >= VK_API_VERSION_1_3 ||
                         has_name(host.enabled_extensions, host.enabled_extension_count, "VK_EXT_subgroup_size_control");
        if (full && available) device.full_subgroups = true;
        if (size_control && device.full_subgroups) device.subgroup_size_control = true;
    }
    if (host.enabled_features) device.shader_int64 = host.enabled_features->features.shaderInt64 == VK_TRUE;
    device.integer_dots = dots && (host.api_version >= VK_API_VERSION_1_3 ||
                                   has_name(host.enabled_extensions, host.enabled_extension_count, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME));
    device.cooperative_matrix = matrix && memory_model && half && host.api_version >= VK_API_VERSION_1_2 &&
                                has_name(host.enabled_extensions, host.enabled_extension_count, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    if (host.lock_queue) device.lock_queue = [lock = host.lock_queue, data = host.user_data] { lock(data); };
    if (host.unlock_queue) device.unlock_queue = [unlock = host.unlock_queue, data = host.user_data] { unlock(data); };
    return device;
}

// As auspex_synthetic_dtype numbers them; u32, which no weights have, for any other.
DType synthetic_dtype(uint32_t dtype) {
    constexpr DType types[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                               DType::q5_1, DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k};
    static_assert(std::size(types) == AUSPEX_SYNTHETIC_Q6_K + 1);
    return dtype < std::size(types) ? types[dtype] : DType::u32;
}

std::optional<SyntheticModel> synthetic(const auspex_synthetic_shape& shape) {
    if (shape.hidden_size == 0) return std::nullopt;
    SyntheticModel model;
    model.config.hidden_size = shape.hidden_size;
    model.config.n_layers = shape.n_layers;
    model.config.n_heads = shape.n_heads;
    model.config.n_kv_heads = shape.n_kv_heads;
    model.config.head_dim = shape.head_dim;
    model.config.ffn_size = shape.ffn_size;
    model.config.vocab_size = shape.vocab_size;
    model.config.max_position = shape.max_position;
    model.config.tied_embedding = shape.tied_embedding != 0;
    model.dtype = synthetic_dtype(shape.dtype);
    model.on_device = shape.generate_on_device != 0;
    model.seed = shape.seed;
    model.scale = shape.scale;
    model.distinct_tokens = shape.distinct_tokens;
    return model;
}

} // namespace

namespace auspex {

auspex_status read_engine_desc(const auspex_engine_desc& d, const Logger& log, EngineDesc& inner) {
    if (d.target_path) inner.target_path = d.target_path;
    if (d.draft_path) inner.draft_path = d.draft_path;
    if (d.device) inner.device.device = d.device;
    inner.max_sequences = d.max_sequences;
    inner.max_context = d.max_context;
    inner.max_draft_len = d.max_draft_len;
    const std::optional<DType> cache_dtype = cache_dtype_of(d.cache_type);
    if (!cache_dtype)
        return to_public({Code::invalid_argument, "cache_type is " + std::to_string(static_cast<uint32_t>(d.cache_type)) +
                                                      ", expected AUSPEX_CACHE_F16, AUSPEX_CACHE_F32 or AUSPEX_CACHE_Q8_0"}, log);
    inner.cache_dtype = *cache_dtype;
    if (!to_dtype(d.target_weights, inner.target_type) || !to_dtype(d.draft_weights, inner.draft_type))
        return to_public({Code::invalid_argument, kNoWeightType}, log);
    if (static_cast<uint32_t>(d.self_draft_weights) > AUSPEX_SELF_DRAFT_Q8_0)
        return to_public({Code::invalid_argument, "self_draft_weights is " + std::to_string(static_cast<uint32_t>(d.self_draft_weights)) +
                                                      ", expected one of auspex_self_draft"}, log);
    static_assert(AUSPEX_SELF_DRAFT_AS_IS == static_cast<int>(SelfDraft::as_is) && AUSPEX_SELF_DRAFT_Q4_0 == static_cast<int>(SelfDraft::q4_0) &&
                  AUSPEX_SELF_DRAFT_Q4_K == static_cast<int>(SelfDraft::q4_k) && AUSPEX_SELF_DRAFT_Q8_0 == static_cast<int>(SelfDraft::q8_0));
    inner.self_draft = static_cast<SelfDraft>(d.self_draft_weights);
    if (d.tuning != AUSPEX_TUNING_AUTO && d.tuning != AUSPEX_TUNING_OFF)
        return to_public({Code::invalid_argument, "tuning is " + std::to_string(static_cast<uint32_t>(d.tuning)) +
                                                      ", expected AUSPEX_TUNING_AUTO or AUSPEX_TUNING_OFF"}, log);
    inner.tuning = d.tuning == AUSPEX_TUNING_OFF ? TuningMode::off : TuningMode::automatic;
    if (d.cache_folder) inner.cache_folder = d.cache_folder;
    if (d.compile_threads == 0 || d.compile_threads > 256)
        return to_public({Code::invalid_argument, "compile_threads is " + std::to_string(d.compile_threads) + ", expected 1 to 256"}, log);
    inner.compile_threads = d.compile_threads;
    if (d.background_threads > 16)
        return to_public({Code::invalid_argument, "background_threads is " + std::to_string(d.background_threads) + ", expected 0 to 16"}, log);
    inner.background_threads = d.background_threads;
    inner.prefix_cache = d.prefix_cache != 0;
    inner.max_waiting = d.max_waiting;
    inner.max_gap_ms = d.max_gap_ms;
    inner.cache_tokens = d.cache_tokens;
    inner.max_submission_ms = d.max_submission_ms == 0 ? kNoBudget : d.max_submission_ms;
    if (d.progress) inner.progress = [d](float fraction) { d.progress(d.progress_user_data, fraction); };
    if (auto* host = find_extension(d.header, AUSPEX_TYPE_VULKAN_DEVICE)) {
        auspex_vulkan_device device;
        auspex_vulkan_device_init(&device, sizeof device);
        if (!read_struct(reinterpret_cast<const auspex_vulkan_device*>(host), AUSPEX_TYPE_VULKAN_DEVICE, device)) return to_public({Code::invalid_argument, kNoStruct}, log);
        inner.borrowed = borrow(device);
    }
    if (auto* models = find_extension(d.header, AUSPEX_TYPE_SYNTHETIC_MODELS)) {
        auspex_synthetic_models shapes;
        auspex_synthetic_models_init(&shapes, sizeof shapes);
        if (!read_struct(reinterpret_cast<const auspex_synthetic_models*>(models), AUSPEX_TYPE_SYNTHETIC_MODELS, shapes)) return to_public({Code::invalid_argument, kNoStruct}, log);
        inner.target_synthetic = synthetic(shapes.target);
        inner.draft_synthetic = synthetic(shapes.draft);
    }
    return AUSPEX_OK;
}

} // namespace auspex
