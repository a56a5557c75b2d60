// The stable C interface: argument checks and translation, no logic.
#include "api/engine_handle.h"
#include "api/guard.h"

#include <auspex/auspex_tools.h>
#include <auspex/auspex_vulkan.h>

#include <algorithm>
#include <cstring>

using namespace auspex;

namespace {

const auspex_header* find_extension(const auspex_header& header, auspex_struct_type type) {
    for (auto* at = static_cast<const auspex_header*>(header.next); at; at = static_cast<const auspex_header*>(at->next))
        if (at->type == type) return at;
    return nullptr;
}

bool has_name(const char* const* names, uint32_t n, const char* name) {
    return std::any_of(names, names + n, [&](const char* other) { return std::strcmp(other, name) == 0; });
}

BorrowedDevice borrow(const auspex_vulkan_device& host) {
    BorrowedDevice device;
    device.get_instance_proc_addr = host.get_instance_proc_addr;
    device.instance = host.instance;
    device.physical_device = host.physical_device;
    device.device = host.device;
    device.queue = host.queue;
    device.queue_family = host.queue_family;
    device.api_version = host.api_version;
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
        }
        bool available = host.api_version >= VK_API_VERSION_1_3 ||
                         has_name(host.enabled_extensions, host.enabled_extension_count, "VK_EXT_subgroup_size_control");
        if (size_control && full && available) device.subgroup_size_control = true;
    }
    if (host.enabled_features) device.shader_int64 = host.enabled_features->features.shaderInt64 == VK_TRUE;
    if (host.lock_queue) device.lock_queue = [lock = host.lock_queue, data = host.user_data] { lock(data); };
    if (host.unlock_queue) device.unlock_queue = [unlock = host.unlock_queue, data = host.user_data] { unlock(data); };
    return device;
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
    model.dtype = shape.dtype == 0 ? DType::f32 : shape.dtype == 1 ? DType::f16 : DType::bf16;
    model.seed = shape.seed;
    model.scale = shape.scale;
    return model;
}

// For what is wrong before the engine is asked.
auspex_status refuse(const auspex_engine* engine, const char* why) {
    return engine ? to_public({Code::invalid_argument, why}, engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT;
}
const char* const kNoSequence = "the sequence does not exist, or a pointer that must be set is NULL";
const char* const kNoStruct = "a struct is NULL or was not initialised by its auspex_..._init";

auspex_status make_request(const Engine& engine, const auspex_sequence_desc* desc, bool fork, SequenceRequest& request) {
    auspex_sequence_desc d;
    auspex_sequence_desc_init(&d, sizeof d);
    if (!read_struct(desc, AUSPEX_TYPE_SEQUENCE_DESC, d)) return to_public({Code::invalid_argument, kNoStruct}, engine.log());
    request.max_tokens = d.max_tokens;
    request.sampling = {d.temperature, d.seed};
    request.draft_len = d.draft_len;
    request.ignore_eos = d.ignore_eos != 0;
    if (fork && (d.prompt_tokens || d.prompt_text_bytes > 0))
        return to_public({Code::invalid_argument, "a fork takes its source's tokens; its own prompt must be empty"}, engine.log());
    if (d.prompt_tokens) {
        request.prompt.assign(d.prompt_tokens, d.prompt_tokens + d.prompt_token_count);
    } else if (d.prompt_text) {
        if (d.prompt_text_bytes == 0) return to_public({Code::invalid_argument, "the prompt is empty, expected some text"}, engine.log());
        auto tokens = engine.tokenize({d.prompt_text, d.prompt_text_bytes}, true);
        if (!tokens.ok()) return to_public(tokens.status(), engine.log());
        request.prompt = std::move(tokens).value();
    }
    return AUSPEX_OK;
}

LiveSequence* find(auspex_engine* engine, auspex_sequence sequence) {
    return engine ? engine->engine->scheduler().find(sequence.id) : nullptr;
}

// Copies up to capacity ids; capacity when they did not fit.
auspex_status give_tokens(const std::vector<uint32_t>& from, uint32_t* tokens, size_t capacity, size_t* count) {
    *count = from.size();
    std::copy_n(from.begin(), std::min(capacity, from.size()), tokens);
    return tokens && capacity < from.size() ? AUSPEX_ERROR_CAPACITY : AUSPEX_OK;
}

double ms_between(uint64_t from, uint64_t to) {
    return from == 0 || to == 0 ? -1 : static_cast<double>(to - from) * 1e-6;
}

} // namespace

extern "C" {

const char* auspex_status_text(auspex_status status) {
    switch (status) {
    case AUSPEX_OK: return "ok";
    case AUSPEX_PENDING: return "work is under way";
    case AUSPEX_FINISHED: return "nothing left to do";
    case AUSPEX_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case AUSPEX_ERROR_NOT_FOUND: return "a named file or folder does not exist";
    case AUSPEX_ERROR_BAD_FILE: return "a file does not hold what it should";
    case AUSPEX_ERROR_UNSUPPORTED: return "not supported by this build or device";
    case AUSPEX_ERROR_OUT_OF_HOST_MEMORY: return "out of host memory";
    case AUSPEX_ERROR_OUT_OF_DEVICE_MEMORY: return "out of device memory";
    case AUSPEX_ERROR_DEVICE_LOST: return "the Vulkan device was lost";
    case AUSPEX_ERROR_CAPACITY: return "no free slot or page, or the prompt does not fit the context";
    case AUSPEX_ERROR_MISMATCH: return "target and draft do not fit together";
    case AUSPEX_ERROR_IO: return "input or output failed";
    case AUSPEX_ERROR_NO_DEVICE: return "no usable Vulkan device";
    case AUSPEX_ERROR_INTERNAL: return "internal error";
    default: return "unknown status";
    }
}

uint32_t auspex_version(void) {
    return AUSPEX_VERSION_MAJOR << 22 | AUSPEX_VERSION_MINOR << 12 | AUSPEX_VERSION_PATCH;
}

auspex_status auspex_engine_desc_init(auspex_engine_desc* desc, size_t size) {
    return init_struct(desc, size, AUSPEX_TYPE_ENGINE_DESC, [](auspex_engine_desc& value) {
        value.max_sequences = 1;
        value.max_draft_len = 8;
    });
}
auspex_status auspex_engine_info_init(auspex_engine_info* info, size_t size) {
    return init_struct(info, size, AUSPEX_TYPE_ENGINE_INFO);
}
auspex_status auspex_step_result_init(auspex_step_result* result, size_t size) {
    return init_struct(result, size, AUSPEX_TYPE_STEP_RESULT);
}
auspex_status auspex_sequence_desc_init(auspex_sequence_desc* desc, size_t size) {
    return init_struct(desc, size, AUSPEX_TYPE_SEQUENCE_DESC, [](auspex_sequence_desc& value) {
        value.draft_len = 4;
    });
}
auspex_status auspex_sequence_stats_init(auspex_sequence_stats* stats, size_t size) {
    return init_struct(stats, size, AUSPEX_TYPE_SEQUENCE_STATS);
}
auspex_status auspex_vulkan_device_init(auspex_vulkan_device* device, size_t size) {
    return init_struct(device, size, AUSPEX_TYPE_VULKAN_DEVICE, [](auspex_vulkan_device& value) {
        value.api_version = VK_API_VERSION_1_1;
    });
}

auspex_status auspex_engine_create(const auspex_engine_desc* desc, auspex_engine** engine) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        *engine = nullptr;
        auspex_engine_desc d;
        auspex_engine_desc_init(&d, sizeof d);
        if (!read_struct(desc, AUSPEX_TYPE_ENGINE_DESC, d)) return AUSPEX_ERROR_INVALID_ARGUMENT;
        Logger log = make_logger(d.log, d.log_user_data);
        EngineDesc inner;
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
        if (d.cache_folder) inner.cache_folder = d.cache_folder;
        if (d.progress) inner.progress = [&d](float fraction) { d.progress(d.progress_user_data, fraction); };
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
        auto made = Engine::create(inner, log);
        if (!made.ok()) return to_public(made.status(), log);
        *engine = new auspex_engine{std::move(made).value()};
        return AUSPEX_OK;
    });
}

void auspex_engine_destroy(auspex_engine* engine) {
    guard([&] {
        delete engine;
        return AUSPEX_OK;
    });
}

auspex_status auspex_engine_get_info(const auspex_engine* engine, auspex_engine_info* info) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        const Engine& e = *engine->engine;
        auspex_engine_info value = {};
        copy_text(value.device_name, e.device().caps.name);
        copy_text(value.driver, e.device().caps.driver);
        value.api_version = e.device().caps.api_version;
        value.vocab_size = e.target().config().vocab_size;
        value.max_context = e.max_context();
        value.max_draft_len = e.max_draft_len();
        value.max_sequences = e.max_sequences();
        value.has_draft = e.draft() ? 1 : 0;
        value.device_memory_bytes = e.reserved_bytes();
        value.target_weights_bytes = e.target().weights().bytes_per_pass();
        value.draft_weights_bytes = e.draft() ? e.draft()->weights().bytes_per_pass() : 0;
        copy_text(value.numerics_id, e.tuning().numerics_id());
        return write_struct(info, AUSPEX_TYPE_ENGINE_INFO, value) ? AUSPEX_OK : refuse(engine, kNoStruct);
    });
}

auspex_status auspex_engine_step(auspex_engine* engine, uint32_t gpu_budget_us, auspex_step_result* result) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        if (result && !write_struct(result, AUSPEX_TYPE_STEP_RESULT, {})) return refuse(engine, kNoStruct); // before anything is done
        auto stepped = engine->engine->scheduler().step(gpu_budget_us == 0 ? -1.0 : gpu_budget_us * 1e-3);
        if (!stepped.ok()) return to_public(stepped.status(), engine->engine->log());
        const Scheduler::StepResult& r = stepped.value();
        auspex_step_result value = {};
        value.n_active = r.n_active;
        value.n_rounds_read = r.n_rounds_read;
        value.submitted_gpu_ms = r.submitted_ms;
        if (result) write_struct(result, AUSPEX_TYPE_STEP_RESULT, value);
        return r.pending ? AUSPEX_PENDING : AUSPEX_FINISHED;
    });
}

auspex_status auspex_engine_wait(auspex_engine* engine, uint32_t timeout_ms) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        auto done = engine->engine->turns().wait(timeout_ms * 1'000'000ull);
        if (!done.ok()) return to_public(done.status(), engine->engine->log());
        return done.value() ? AUSPEX_OK : AUSPEX_PENDING;
    });
}

auspex_status auspex_engine_tokenize(auspex_engine* engine, const char* text, size_t text_bytes, int add_bos, uint32_t* tokens,
                                     size_t capacity, size_t* count) {
    return guard([&] {
        if (!engine || (!text && text_bytes > 0) || !count || (!tokens && capacity > 0)) return refuse(engine, "a pointer that must be set is NULL");
        auto ids = engine->engine->tokenize({text ? text : "", text_bytes}, add_bos != 0);
        if (!ids.ok()) return to_public(ids.status(), engine->engine->log());
        return give_tokens(ids.value(), tokens, capacity, count);
    });
}

auspex_status auspex_sequence_create(auspex_engine* engine, const auspex_sequence_desc* desc, auspex_sequence* sequence) {
    return guard([&] {
        if (!engine || !sequence) return refuse(engine, "the pointer to the new sequence is NULL");
        SequenceRequest request;
        auspex_status status = make_request(*engine->engine, desc, false, request);
        if (status != AUSPEX_OK) return status;
        auto id = engine->engine->create_sequence(std::move(request));
        if (!id.ok()) return to_public(id.status(), engine->engine->log());
        sequence->id = id.value();
        return AUSPEX_OK;
    });
}

auspex_status auspex_sequence_fork(auspex_engine* engine, auspex_sequence source, const auspex_sequence_desc* desc, auspex_sequence* sequence) {
    return guard([&] {
        if (!engine || !sequence) return refuse(engine, "the pointer to the new sequence is NULL");
        SequenceRequest request;
        auspex_status status = make_request(*engine->engine, desc, true, request);
        if (status != AUSPEX_OK) return status;
        auto id = engine->engine->fork_sequence(source.id, std::move(request));
        if (!id.ok()) return to_public(id.status(), engine->engine->log());
        sequence->id = id.value();
        return AUSPEX_OK;
    });
}

auspex_status auspex_sequence_destroy(auspex_engine* engine, auspex_sequence sequence) {
    return guard([&] { return engine ? to_public(engine->engine->scheduler().destroy(sequence.id), engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT; });
}

auspex_status auspex_sequence_cancel(auspex_engine* engine, auspex_sequence sequence) {
    return guard([&] { return engine ? to_public(engine->engine->scheduler().cancel(sequence.id), engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT; });
}

auspex_status auspex_sequence_set_draft_len(auspex_engine* engine, auspex_sequence sequence, uint32_t draft_len) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        if (engine->engine->draft() && draft_len > engine->engine->max_draft_len())
            return to_public({Code::invalid_argument, "draft_len is " + std::to_string(draft_len) + ", expected at most max_draft_len " +
                                                          std::to_string(engine->engine->max_draft_len())}, engine->engine->log());
        return to_public(engine->engine->scheduler().set_draft_len(sequence.id, draft_len), engine->engine->log());
    });
}

auspex_status auspex_sequence_read_tokens(auspex_engine* engine, auspex_sequence sequence, auspex_token* tokens, size_t capacity, size_t* count) {
    return guard([&] {
        LiveSequence* live = find(engine, sequence);
        if (!live || !count || (!tokens && capacity > 0)) return refuse(engine, kNoSequence);
        *count = std::min(capacity, live->output.size());
        for (size_t i = 0; i < *count; ++i) {
            const OutputToken& token = live->output[i];
            tokens[i] = {token.id, static_cast<auspex_token_origin>(token.origin), token.text_bytes};
        }
        live->output.erase(live->output.begin(), live->output.begin() + static_cast<std::ptrdiff_t>(*count));
        return AUSPEX_OK;
    });
}

auspex_status auspex_sequence_read_text(auspex_engine* engine, auspex_sequence sequence, char* text, size_t capacity, size_t* bytes) {
    return guard([&] {
        LiveSequence* live = find(engine, sequence);
        if (!live || !bytes || (!text && capacity > 0)) return refuse(engine, kNoSequence);
        size_t n = std::min(capacity, live->text.size());
        while (n < live->text.size() && n > 0 && (live->text[n] & 0xC0) == 0x80) --n; // whole characters only
        std::copy_n(live->text.data(), n, text);
        live->text.erase(0, n);
        *bytes = n;
        return AUSPEX_OK;
    });
}

auspex_status auspex_sequence_get_prompt(auspex_engine* engine, auspex_sequence sequence, uint32_t* tokens, size_t capacity, size_t* count) {
    return guard([&] {
        LiveSequence* live = find(engine, sequence);
        if (!live || !count || (!tokens && capacity > 0)) return refuse(engine, kNoSequence);
        return give_tokens({live->tokens.begin(), live->tokens.begin() + live->prompt_n}, tokens, capacity, count);
    });
}

auspex_status auspex_sequence_get_stats(const auspex_engine* engine, auspex_sequence sequence, auspex_sequence_stats* stats) {
    return guard([&] {
        const LiveSequence* live = find(const_cast<auspex_engine*>(engine), sequence);
        if (!live) return refuse(engine, kNoSequence);
        auspex_sequence_stats value = {};
        value.stop_reason = static_cast<auspex_stop_reason>(live->stop);
        value.prompt_n = live->prompt_n;
        value.predicted_n = live->n_generated();
        value.prompt_ms = ms_between(live->created_ns, live->first_round_ns);
        value.first_token_ms = ms_between(live->created_ns, live->first_token_ns);
        value.predicted_ms = ms_between(live->first_round_ns, live->last_token_ns);
        value.rounds = live->stats.rounds;
        value.draft_n = live->stats.draft_n;
        value.draft_n_accepted = live->stats.draft_n_accepted;
        value.draft_ms = live->stats.draft_ms;
        value.verify_ms = live->stats.verify_ms;
        value.accept_ms = live->stats.accept_ms;
        std::copy(live->stats.accepted_histogram.begin(), live->stats.accepted_histogram.end(), value.accepted_histogram);
        return write_struct(stats, AUSPEX_TYPE_SEQUENCE_STATS, value) ? AUSPEX_OK : refuse(engine, kNoStruct);
    });
}

} // extern "C"
