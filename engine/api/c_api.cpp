// The stable C interface: argument checks and translation, no logic.
#include "api/engine_handle.h"
#include "api/guard.h"

#include <auspex/auspex_tools.h>
#include <auspex/auspex_vulkan.h>

#include <algorithm>

using namespace auspex;

namespace {

static_assert(AUSPEX_MAX_LOGPROBS == kMostLogprobs);
static_assert(AUSPEX_DRAFTER_AUTO == static_cast<int>(DrafterChoice::automatic) && AUSPEX_DRAFTER_HOST == static_cast<int>(DrafterChoice::host) &&
              AUSPEX_DRAFTER_SELF == static_cast<int>(DrafterChoice::self));

const char* const kNoSequence = "the sequence does not exist, or a pointer that must be set is NULL";

enum class RequestKind { create, fork, append };

auspex_status make_request(const Engine& engine, const auspex_sequence_desc* desc, RequestKind kind, SequenceRequest& request) {
    auspex_sequence_desc d;
    auspex_sequence_desc_init(&d, sizeof d);
    if (!read_struct(desc, AUSPEX_TYPE_SEQUENCE_DESC, d)) return to_public({Code::invalid_argument, kNoStruct}, engine.log());
    request.max_tokens = d.max_tokens;
    const auto drafter = static_cast<DrafterChoice>(d.drafter);
    if (!Drafters::built_in().find(drafter)) return to_public({Code::invalid_argument, "drafter is not one of auspex_drafter"}, engine.log());
    if (d.acceptance != AUSPEX_ACCEPT_REJECTION && d.acceptance != AUSPEX_ACCEPT_COUPLED)
        return to_public({Code::invalid_argument, "acceptance is not one of auspex_acceptance"}, engine.log());
    if ((d.bias_count > 0 && !d.biases) || (d.stop_text_count > 0 && !d.stop_texts) || d.bias_count > AUSPEX_MAX_BIASES)
        return to_public({Code::invalid_argument, "biases or stop_texts are NULL or too many"}, engine.log());
    request.drafter = drafter;
    request.draft_len = d.draft_len;
    request.ngram_max = d.ngram_max;
    request.ignore_eos = d.ignore_eos != 0;
    request.priority = d.priority;
    request.with_logprobs = d.with_logprobs;
    request.n_logprobs = d.n_logprobs;
    if (d.cache_salt) request.cache_salt = d.cache_salt;
    request.sampling = {.temperature = d.temperature,
                        .seed = d.seed,
                        .repeat_penalty = d.repeat_penalty,
                        .presence_penalty = d.presence_penalty,
                        .frequency_penalty = d.frequency_penalty,
                        .top_k = d.top_k,
                        .top_p = d.top_p,
                        .min_p = d.min_p,
                        .acceptance = d.acceptance == AUSPEX_ACCEPT_COUPLED ? AcceptanceRule::coupled : AcceptanceRule::rejection,
                        .lenience = d.lenience};
    if (auto* extension = find_extension(d.header, AUSPEX_TYPE_SIMULATED_ACCEPTANCE)) {
        auspex_simulated_acceptance simulated;
        auspex_simulated_acceptance_init(&simulated, sizeof simulated);
        if (!read_struct(reinterpret_cast<const auspex_simulated_acceptance*>(extension), AUSPEX_TYPE_SIMULATED_ACCEPTANCE, simulated))
            return to_public({Code::invalid_argument, kNoStruct}, engine.log());
        if (d.acceptance != AUSPEX_ACCEPT_REJECTION)
            return to_public({Code::invalid_argument, "a simulated acceptance takes the place of AUSPEX_ACCEPT_REJECTION, expected no other"}, engine.log());
        request.sampling.acceptance = AcceptanceRule::simulated;
        request.sampling.simulated_alpha = simulated.alpha;
    }
    for (size_t i = 0; i < d.bias_count; ++i) request.sampling.biases.push_back({d.biases[i].token, d.biases[i].bias});
    for (size_t i = 0; i < d.stop_text_count; ++i) {
        if (!d.stop_texts[i]) return to_public({Code::invalid_argument, "a stop text is NULL"}, engine.log());
        request.stop_texts.emplace_back(d.stop_texts[i]);
    }
    if (d.host_drafter)
        request.host_drafter = [draft = d.host_drafter, data = d.host_drafter_user_data](std::span<const uint32_t> tokens, uint32_t max_drafts) {
            std::vector<uint32_t> drafts(max_drafts);
            drafts.resize(std::min(draft(data, tokens.data(), tokens.size(), max_drafts, drafts.data()), max_drafts));
            return drafts;
        };
    if (kind == RequestKind::fork && (d.prompt_tokens || d.prompt_text_bytes > 0))
        return to_public({Code::invalid_argument, "a fork takes its source's tokens; its own prompt must be empty"}, engine.log());
    if (d.prompt_tokens) {
        request.prompt.assign(d.prompt_tokens, d.prompt_tokens + d.prompt_token_count);
    } else if (d.prompt_text) {
        const bool create = kind == RequestKind::create;
        if (create && d.prompt_text_bytes == 0) return to_public({Code::invalid_argument, "the prompt is empty, expected some text"}, engine.log());
        if (d.prompt_text_bytes == 0) return AUSPEX_OK;
        auto tokens = engine.tokenize({d.prompt_text, d.prompt_text_bytes}, create);
        if (!tokens.ok()) return to_public(tokens.status(), engine.log());
        request.prompt = std::move(tokens).value();
    }
    return AUSPEX_OK;
}

LiveSequence* find(auspex_engine* engine, auspex_sequence sequence) {
    return engine ? engine->engine->admission().find(sequence.id) : nullptr;
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
        value.compile_threads = 1;
        value.max_submission_ms = 100;
        value.max_gap_ms = 50;
        value.prefix_cache = 1;
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
        value.draft_len = AUSPEX_DRAFT_LEN_AUTO;
        value.lenience = 1;
        value.ngram_max = 4;
        value.repeat_penalty = 1;
        value.top_p = 1;
    });
}
auspex_status auspex_chat_turn_init(auspex_chat_turn* turn, size_t size) {
    return init_struct(turn, size, AUSPEX_TYPE_CHAT_TURN, [](auspex_chat_turn& value) {
        value.first = 1;
    });
}
auspex_status auspex_chat_options_init(auspex_chat_options* options, size_t size) {
    return init_struct(options, size, AUSPEX_TYPE_CHAT_OPTIONS);
}
auspex_status auspex_sequence_stats_init(auspex_sequence_stats* stats, size_t size) {
    return init_struct(stats, size, AUSPEX_TYPE_SEQUENCE_STATS);
}
auspex_status auspex_sequence_state_init(auspex_sequence_state* state, size_t size) {
    return init_struct(state, size, AUSPEX_TYPE_SEQUENCE_STATE);
}
auspex_status auspex_engine_load_init(auspex_engine_load* load, size_t size) {
    return init_struct(load, size, AUSPEX_TYPE_ENGINE_LOAD);
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
        if (auto status = read_engine_desc(d, log, inner); status != AUSPEX_OK) return status;
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
        value.is_self_draft = e.draft() && e.draft()->is_copy() ? 1 : 0;
        value.device_memory_bytes = e.reserved_bytes();
        value.target_weights_bytes = e.target().weights().bytes_per_pass();
        value.draft_weights_bytes = e.draft() ? e.draft()->weights().bytes_per_pass() : 0;
        copy_text(value.numerics_id, e.tuning().numerics_id());
        value.prompt_rows = e.draft() ? std::min(e.target().max_rows(), e.draft()->max_rows()) : e.target().max_rows();
        value.draft_context = e.draft() ? e.draft()->cache().shape().max_rows : 0;
        return write_struct(info, AUSPEX_TYPE_ENGINE_INFO, value) ? AUSPEX_OK : refuse(engine, kNoStruct);
    });
}

auspex_status auspex_engine_prepare(auspex_engine* engine, const auspex_sequence_desc* desc) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        SequenceRequest request;
        if (auto status = make_request(*engine->engine, desc, RequestKind::append, request); status != AUSPEX_OK) return status;
        return to_public(engine->engine->prepare(std::move(request)), engine->engine->log());
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
        if (!engine || (!text && text_bytes > 0) || !count || (!tokens && capacity > 0)) return refuse(engine, kNoPointer);
        auto ids = engine->engine->tokenize({text ? text : "", text_bytes}, add_bos != 0);
        if (!ids.ok()) return to_public(ids.status(), engine->engine->log());
        return give(ids.value(), tokens, capacity, count);
    });
}

auspex_status auspex_engine_encode_chat(auspex_engine* engine, const auspex_chat_turn* turn, uint32_t* tokens, size_t capacity, size_t* count) {
    return guard([&] {
        if (!engine || !count || (!tokens && capacity > 0)) return refuse(engine, kNoPointer);
        ChatRequest request;
        if (const char* why = read_chat_turn(turn, request)) return refuse(engine, why);
        auto ids = engine->engine->encode_chat(std::move(request));
        if (!ids.ok()) return to_public(ids.status(), engine->engine->log());
        return give(ids.value(), tokens, capacity, count);
    });
}

auspex_status auspex_engine_encode_messages(auspex_engine* engine, const auspex_chat_message* messages, size_t message_count,
                                            const auspex_chat_options* options, uint32_t* tokens, size_t capacity, size_t* count) {
    return guard([&] {
        if (!engine || !count || (!tokens && capacity > 0)) return refuse(engine, kNoPointer);
        MessagesRequest request;
        if (const char* why = read_messages(messages, message_count, options, request)) return refuse(engine, why);
        auto ids = engine->engine->encode_messages(std::move(request));
        if (!ids.ok()) return to_public(ids.status(), engine->engine->log());
        return give(ids.value(), tokens, capacity, count);
    });
}

auspex_status auspex_sequence_create(auspex_engine* engine, const auspex_sequence_desc* desc, auspex_sequence* sequence) {
    return guard([&] {
        if (!engine || !sequence) return refuse(engine, "the pointer to the new sequence is NULL");
        SequenceRequest request;
        auspex_status status = make_request(*engine->engine, desc, RequestKind::create, request);
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
        auspex_status status = make_request(*engine->engine, desc, RequestKind::fork, request);
        if (status != AUSPEX_OK) return status;
        auto id = engine->engine->fork_sequence(source.id, std::move(request));
        if (!id.ok()) return to_public(id.status(), engine->engine->log());
        sequence->id = id.value();
        return AUSPEX_OK;
    });
}

auspex_status auspex_sequence_append(auspex_engine* engine, auspex_sequence sequence, const auspex_sequence_desc* desc) {
    return guard([&] {
        if (!find(engine, sequence)) return refuse(engine, kNoSequence);
        SequenceRequest request;
        auspex_status status = make_request(*engine->engine, desc, RequestKind::append, request);
        if (status != AUSPEX_OK) return status;
        return to_public(engine->engine->append_sequence(sequence.id, std::move(request)), engine->engine->log());
    });
}

auspex_status auspex_sequence_destroy(auspex_engine* engine, auspex_sequence sequence) {
    return guard([&] { return engine ? to_public(engine->engine->admission().destroy(sequence.id), engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT; });
}

auspex_status auspex_sequence_cancel(auspex_engine* engine, auspex_sequence sequence) {
    return guard([&] { return engine ? to_public(engine->engine->admission().cancel(sequence.id), engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT; });
}

auspex_status auspex_sequence_park(auspex_engine* engine, auspex_sequence sequence) {
    return guard([&] { return engine ? to_public(engine->engine->admission().park(sequence.id), engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT; });
}

auspex_status auspex_sequence_resume(auspex_engine* engine, auspex_sequence sequence) {
    return guard([&] { return engine ? to_public(engine->engine->admission().resume(sequence.id), engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT; });
}

auspex_status auspex_sequence_set_draft_len(auspex_engine* engine, auspex_sequence sequence, uint32_t draft_len) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        if (engine->engine->draft() && draft_len > engine->engine->max_draft_len())
            return to_public({Code::invalid_argument, "draft_len is " + std::to_string(draft_len) + ", expected at most max_draft_len " +
                                                          std::to_string(engine->engine->max_draft_len())}, engine->engine->log());
        return to_public(engine->engine->admission().set_draft_len(sequence.id, draft_len), engine->engine->log());
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

auspex_status auspex_sequence_read_logprobs(auspex_engine* engine, auspex_sequence sequence, auspex_token_logprobs* logprobs, size_t capacity, size_t* count) {
    return guard([&] {
        LiveSequence* live = find(engine, sequence);
        if (!live || !count || (!logprobs && capacity > 0)) return refuse(engine, kNoSequence);
        auto to_c = [](const TokenLogprob& one) { return auspex_token_logprob{one.id, one.logprob}; };
        *count = std::min(capacity, live->logprobs.size());
        for (size_t i = 0; i < *count; ++i) {
            const TokenLogprobs& of = live->logprobs[i];
            logprobs[i] = {to_c(of.token), of.n_best, {}};
            std::transform(of.best.begin(), of.best.end(), logprobs[i].best, to_c);
        }
        live->logprobs.erase(live->logprobs.begin(), live->logprobs.begin() + static_cast<std::ptrdiff_t>(*count));
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
        return give(std::vector<uint32_t>(live->tokens.begin(), live->tokens.begin() + live->prompt_n), tokens, capacity, count);
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
        value.prefilled_n = live->prefilled_n;
        value.cached_n = live->cached_n;
        value.total_n = static_cast<uint32_t>(live->tokens.size());
        value.tested_n = live->stats.n_tested;
        value.overlap = live->stats.overlap;
        value.not_finite_n = live->stats.n_not_finite;
        const RoundPlanner::Report report = engine->engine->planner().report(*live);
        value.c = report.c;
        value.v = report.v;
        value.predicted_speedup = report.predicted_speedup;
        copy_text(value.choice, report.choice);
        std::copy_n(live->stats.drafter_rounds.begin(), std::size(value.drafter_rounds), value.drafter_rounds);
        value.self_drafter_rounds = live->stats.drafter_rounds[static_cast<size_t>(Drafter::self)];
        std::copy(live->stats.accepted_histogram.begin(), live->stats.accepted_histogram.end(), value.accepted_histogram);
        return write_struct(stats, AUSPEX_TYPE_SEQUENCE_STATS, value) ? AUSPEX_OK : refuse(engine, kNoStruct);
    });
}

auspex_status auspex_sequence_get_state(auspex_engine* engine, auspex_sequence sequence, auspex_sequence_state* state) {
    return guard([&] {
        const LiveSequence* live = find(engine, sequence);
        if (!live) return refuse(engine, kNoSequence);
        const Scheduler::Position at = engine->engine->scheduler().position(*live);
        static_assert(AUSPEX_PHASE_PARKED == static_cast<int>(Phase::parked) && AUSPEX_PHASE_FINISHED == static_cast<int>(Phase::finished));
        auspex_sequence_state value = {};
        value.phase = static_cast<auspex_phase>(at.phase);
        value.place = at.place;
        value.wait_ms = at.wait_ms;
        value.rows_read = std::max(live->target_rows, live->target_len);
        value.rows_to_read = live->wanted_rows;
        value.parked_n = live->n_parked;
        return write_struct(state, AUSPEX_TYPE_SEQUENCE_STATE, value) ? AUSPEX_OK : refuse(engine, kNoStruct);
    });
}

auspex_status auspex_engine_get_load(auspex_engine* engine, auspex_engine_load* load) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        const EngineLoad at = engine->engine->scheduler().load();
        auspex_engine_load value = {};
        value.n_running = at.n_running;
        value.n_waiting = at.n_waiting;
        value.waiting_tokens = at.waiting_tokens;
        value.wait_ms = at.wait_ms;
        value.target_pages = at.target_pages;
        value.target_pages_free = at.target_pages_free;
        value.draft_pages = at.draft_pages;
        value.draft_pages_free = at.draft_pages_free;
        value.parked_n = at.n_parked;
        value.prefix_queries = at.prefix.queries;
        value.prefix_tokens = at.prefix.rows_wanted;
        value.prefix_hit_tokens = at.prefix.rows_found;
        value.prefix_pages_inserted = at.prefix.pages_inserted;
        value.prefix_pages_evicted = at.prefix.pages_evicted;
        value.turn_ms = at.turn_ms;
        value.turn_expected_ms = at.turn_expected_ms;
        value.target_pages_evictable = at.target_pages_evictable;
        value.draft_pages_evictable = at.draft_pages_evictable;
        return write_struct(load, AUSPEX_TYPE_ENGINE_LOAD, value) ? AUSPEX_OK : refuse(engine, kNoStruct);
    });
}

} // extern "C"
