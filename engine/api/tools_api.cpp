// The unstable C interface for our own apps: describing devices and models, tokenizers, scores, conversion, stage times.
#include "api/engine_handle.h"
#include "session/models/quantize_model.h"
#include "tokens/text_stream.h"

#include <auspex/auspex_tools.h>

using namespace auspex;

struct auspex_tokenizer {
    std::unique_ptr<Tokenizer> tokenizer;
    std::string path;
};

extern "C" {

auspex_status auspex_device_info_init(auspex_device_info* info, size_t size) {
    return init_struct(info, size, AUSPEX_TYPE_DEVICE_INFO);
}
auspex_status auspex_model_info_init(auspex_model_info* info, size_t size) {
    return init_struct(info, size, AUSPEX_TYPE_MODEL_INFO);
}
auspex_status auspex_score_options_init(auspex_score_options* options, size_t size) {
    return init_struct(options, size, AUSPEX_TYPE_SCORE_OPTIONS);
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

auspex_status auspex_memory_plan_init(auspex_memory_plan* plan, size_t size) {
    return init_struct(plan, size, AUSPEX_TYPE_MEMORY_PLAN);
}

auspex_status auspex_plan_memory(const auspex_engine_desc* desc, auspex_memory_plan* plan) {
    return guard([&] {
        auspex_engine_desc d;
        auspex_engine_desc_init(&d, sizeof d);
        if (!read_struct(desc, AUSPEX_TYPE_ENGINE_DESC, d)) return AUSPEX_ERROR_INVALID_ARGUMENT;
        Logger log = make_logger(d.log, d.log_user_data);
        EngineDesc inner;
        if (auto status = read_engine_desc(d, log, inner); status != AUSPEX_OK) return status;
        auto made = Engine::plan(inner, log);
        if (!made.ok()) return to_public(made.status(), log);
        const MemoryPlan& p = made.value();
        auspex_memory_plan value = {};
        value.target_weights = p.target_weights;
        value.draft_weights = p.draft_weights;
        value.target_cache = p.target_cache;
        value.draft_cache = p.draft_cache;
        value.activations = p.activations;
        value.total = p.total;
        value.device_bytes = p.device_bytes;
        value.device_free_bytes = p.device_free_bytes;
        value.max_context = p.max_context;
        value.fits = p.total <= p.device_free_bytes ? 1 : 0;
        value.device_is_cpu = p.is_cpu ? 1 : 0;
        value.target_pass_bytes = p.target_pass;
        value.draft_pass_bytes = p.draft_pass;
        return write_struct(plan, AUSPEX_TYPE_MEMORY_PLAN, value) ? AUSPEX_OK : AUSPEX_ERROR_INVALID_ARGUMENT;
    });
}

auspex_status auspex_model_describe(const char* path, auspex_cache_type cache_type, auspex_model_info* info,
                                    auspex_log_callback log_callback, void* log_user_data) {
    return guard([&] {
        const std::optional<DType> cache_dtype = cache_dtype_of(cache_type);
        if (!path || !cache_dtype) return AUSPEX_ERROR_INVALID_ARGUMENT;
        Logger log = make_logger(log_callback, log_user_data);
        auto opened = open_checkpoint(path);
        if (!opened.ok()) return to_public(opened.status(), log);
        const LlamaConfig& c = opened.value()->config();
        const WeightSummary weights = summarize_weights(*opened.value());
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
        copy_text(value.dtype, std::string(dtype_name(weights.matrix_type)));
        value.n_parameters = c.n_parameters();
        value.weights_bytes = weights.device_bytes;
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

auspex_status auspex_quantize_model(const char* path, const char* gguf_path, auspex_weight_type type, auspex_progress_callback progress,
                                    void* progress_user_data, auspex_log_callback log_callback, void* log_user_data) {
    return guard([&] {
        if (!path || !gguf_path) return AUSPEX_ERROR_INVALID_ARGUMENT;
        Logger log = make_logger(log_callback, log_user_data);
        std::optional<DType> wanted;
        if (!to_dtype(type, wanted)) return to_public({Code::unsupported, kNoWeightType}, log);
        std::function<void(float)> report;
        if (progress) report = [&](float fraction) { progress(progress_user_data, fraction); };
        return to_public(quantize_model(path, gguf_path, wanted, report, log), log);
    });
}

auspex_status auspex_tokenizer_open(const char* path, auspex_tokenizer** tokenizer, auspex_log_callback log_callback, void* log_user_data) {
    return guard([&] {
        if (!tokenizer) return AUSPEX_ERROR_INVALID_ARGUMENT;
        *tokenizer = nullptr;
        if (!path) return AUSPEX_ERROR_INVALID_ARGUMENT;
        auto opened = open_tokenizer(path);
        if (!opened.ok()) return to_public(opened.status(), make_logger(log_callback, log_user_data));
        *tokenizer = new auspex_tokenizer{std::move(opened).value(), path};
        return AUSPEX_OK;
    });
}

void auspex_tokenizer_destroy(auspex_tokenizer* tokenizer) {
    guard([&] {
        delete tokenizer;
        return AUSPEX_OK;
    });
}

auspex_status auspex_tokenizer_encode(const auspex_tokenizer* tokenizer, const char* text, size_t text_bytes, int add_bos, int parse_control,
                                      uint32_t* tokens, size_t capacity, size_t* count) {
    return guard([&] {
        if (!tokenizer || (!text && text_bytes > 0) || !count || (!tokens && capacity > 0)) return AUSPEX_ERROR_INVALID_ARGUMENT;
        const Tokenizer& t = *tokenizer->tokenizer;
        const std::string_view whole(text ? text : "", text_bytes);
        auto ids = parse_control ? t.encode_with_controls(whole) : t.encode(whole);
        if (!ids.ok()) return to_public(ids.status(), {});
        if (add_bos && t.add_bos()) ids.value().insert(ids.value().begin(), t.bos_id());
        return give(ids.value(), tokens, capacity, count);
    });
}

auspex_status auspex_tokenizer_encode_chat(const auspex_tokenizer* tokenizer, const auspex_chat_turn* turn, uint32_t* tokens, size_t capacity,
                                           size_t* count, auspex_log_callback log_callback, void* log_user_data) {
    return guard([&] {
        const Logger log = make_logger(log_callback, log_user_data);
        if (!tokenizer || !count || (!tokens && capacity > 0)) return to_public({Code::invalid_argument, kNoPointer}, log);
        ChatRequest request;
        if (const char* why = read_chat_turn(turn, request)) return to_public({Code::invalid_argument, why}, log);
        auto ids = encode_chat(*tokenizer->tokenizer, tokenizer->path, std::move(request));
        if (!ids.ok()) return to_public(ids.status(), log);
        return give(ids.value(), tokens, capacity, count);
    });
}

auspex_status auspex_tokenizer_encode_messages(const auspex_tokenizer* tokenizer, const auspex_chat_message* messages, size_t message_count,
                                               const auspex_chat_options* options, uint32_t* tokens, size_t capacity, size_t* count,
                                               auspex_log_callback log_callback, void* log_user_data) {
    return guard([&] {
        const Logger log = make_logger(log_callback, log_user_data);
        if (!tokenizer || !count || (!tokens && capacity > 0)) return to_public({Code::invalid_argument, kNoPointer}, log);
        MessagesRequest request;
        if (const char* why = read_messages(messages, message_count, options, request)) return to_public({Code::invalid_argument, why}, log);
        auto ids = encode_messages(*tokenizer->tokenizer, tokenizer->path, std::move(request));
        if (!ids.ok()) return to_public(ids.status(), log);
        return give(ids.value(), tokens, capacity, count);
    });
}

auspex_status auspex_tokenizer_decode(const auspex_tokenizer* tokenizer, const uint32_t* tokens, size_t count, char* text, size_t capacity, size_t* bytes) {
    return guard([&] {
        if (!tokenizer || (!tokens && count > 0) || !bytes || (!text && capacity > 0)) return AUSPEX_ERROR_INVALID_ARGUMENT;
        TextStream stream(*tokenizer->tokenizer, true);
        std::string whole;
        for (size_t i = 0; i < count; ++i) whole += stream.push(tokens[i]);
        whole += stream.finish();
        return give(whole, text, capacity, bytes);
    });
}

auspex_status auspex_tokenizer_piece(const auspex_tokenizer* tokenizer, uint32_t id, char* text, size_t capacity, size_t* bytes, int* is_control) {
    return guard([&] {
        if (!tokenizer || !bytes || (!text && capacity > 0) || id >= tokenizer->tokenizer->vocab_size()) return AUSPEX_ERROR_INVALID_ARGUMENT;
        const std::string piece = tokenizer->tokenizer->piece(id);
        if (is_control) *is_control = piece.empty() ? 1 : 0;
        return give(piece.empty() ? tokenizer->tokenizer->spelling(id) : piece, text, capacity, bytes);
    });
}

uint32_t auspex_tokenizer_vocab_size(const auspex_tokenizer* tokenizer) {
    return tokenizer ? tokenizer->tokenizer->vocab_size() : 0;
}

int auspex_tokenizer_adds_bos(const auspex_tokenizer* tokenizer, uint32_t* id) {
    if (id) *id = tokenizer ? tokenizer->tokenizer->bos_id() : 0;
    return tokenizer && tokenizer->tokenizer->add_bos() ? 1 : 0;
}

auspex_status auspex_engine_score(auspex_engine* engine, const uint32_t* tokens, size_t n, double* log_probs, const auspex_score_options* options) {
    return guard([&] {
        if (!engine || (!tokens && n > 0)) return refuse(engine, kNoPointer);
        auspex_score_options o;
        auspex_score_options_init(&o, sizeof o);
        if (options && !read_struct(options, AUSPEX_TYPE_SCORE_OPTIONS, o)) return refuse(engine, kNoStruct);
        const size_t* wanted = o.logit_positions;
        const size_t n_wanted = o.logits ? o.logit_position_count : 0;
        if (!wanted && n_wanted > 0) return refuse(engine, kNoPointer);
        for (size_t i = 0; i < n_wanted; ++i)
            if (wanted[i] >= n || (i > 0 && wanted[i] <= wanted[i - 1])) return refuse(engine, "logit_positions do not ascend, or are not below the number of tokens");
        size_t next = 0;
        auto each_row = [&](uint32_t row, std::span<const float> logits) {
            if (log_probs && row + 1 < n) log_probs[row] = log_probability(logits, tokens[row + 1]);
            if (next < n_wanted && wanted[next] == row) o.logits(o.user_data, wanted[next++], logits.data(), logits.size());
            if (o.progress) o.progress(o.user_data, static_cast<float>(row + 1) / static_cast<float>(n));
        };
        return to_public(engine->engine->score({tokens, n}, each_row), engine->engine->log());
    });
}

auspex_status auspex_engine_set_trace(auspex_engine* engine, auspex_trace_callback callback, void* user_data) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        TraceSink sink;
        if (callback)
            sink = [callback, user_data](const TraceEvent& e) {
                const auspex_trace_event event = {e.name, e.is_stage ? 1u : 0u, e.turn, e.begin_ns, e.duration_ns, e.draft_len, e.batch, e.n_accepted, e.n_tokens, e.drafter};
                callback(user_data, &event);
            };
        engine->engine->scheduler().set_trace(std::move(sink));
        return AUSPEX_OK;
    });
}

uint32_t auspex_list_drafters(auspex_drafter_info* drafters, uint32_t capacity) {
    const Drafters& table = Drafters::built_in();
    for (size_t i = 0; drafters && i < std::min<size_t>(capacity, table.choices.size()); ++i) {
        const DrafterChoiceRow& row = table.choices[i];
        const bool is_one = row.by_pass == Drafter::none || row.proposer == Drafter::none;
        const uint32_t place = std::max(static_cast<uint32_t>(row.by_pass), static_cast<uint32_t>(row.proposer));
        const bool needs_model = row.without_pass != row.choice && row.by_pass == Drafter::model;
        const bool needs_self = row.by_pass == Drafter::self || (needs_model && row.any_pass);
        drafters[i] = {static_cast<auspex_drafter>(row.choice), row.name, row.summary, table.passes(row) ? 1u : 0u, needs_model ? 1u : 0u,
                       table.searches(row) ? 1u : 0u, table.asks(row) ? 1u : 0u, is_one ? place : ~0u, needs_self ? 1u : 0u};
    }
    return static_cast<uint32_t>(table.choices.size());
}

auspex_status auspex_engine_take_round_times(auspex_engine* engine, uint32_t draft_len, auspex_round_times* times) {
    return guard([&] {
        if (!engine || !times) return AUSPEX_ERROR_INVALID_ARGUMENT;
        RoundTimes taken = engine->engine->outcomes().take_round_times(draft_len);
        *times = {taken.rounds, taken.draft_ms, taken.verify_ms, taken.accept_ms, taken.wall_ms};
        return AUSPEX_OK;
    });
}

} // extern "C"
