// Client: thin, one C call per function.
#include "cli/common/engine/client.h"

#include "cli/common/engine/llvmpipe_threads.h"
#include "cli/common/engine/self_draft.h"
#include "cli/common/engine/trace_file.h"
#include "cli/common/output/progress_bar.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <thread>

namespace auspex::cli {

namespace {

// call(data, capacity, &count), again when the first guess was too small.
template <typename Unit, typename Call> auspex_status read_whole(std::vector<Unit>& units, size_t guess, Call call) {
    size_t count = 0;
    units.resize(guess);
    auspex_status status = call(units.data(), units.size(), &count);
    if (status == AUSPEX_ERROR_CAPACITY && count > units.size()) {
        units.resize(count);
        status = call(units.data(), units.size(), &count);
    }
    units.resize(status < 0 ? 0 : count);
    return status;
}

size_t guess_tokens(const auspex_chat_turn& turn) {
    constexpr size_t layout_tokens = 512; // more than templates put around what is said
    return std::strlen(turn.user) + (turn.system != nullptr ? std::strlen(turn.system) : 0) + layout_tokens;
}

// Of a function that was given a path and little else: what it calls a wrong argument is a wrong file. The line names
// it.
Failure model_failure(auspex_status status, const std::string& line, const std::string& path) {
    return {status == AUSPEX_ERROR_INVALID_ARGUMENT ? kExitFile : exit_code_of(status),
            line.find(path) != std::string::npos ? line : path + ": " + line};
}

// Adds the flag that the library cannot know.
Failure create_failure(auspex_status status, const std::string& line, const ModelOptions& models) {
    if (status == AUSPEX_ERROR_INVALID_ARGUMENT && models.context > 0 && line.find("context") != std::string::npos)
        return {kExitUsage, format("-c %u: ", models.context) + line};
    if (status == AUSPEX_ERROR_INVALID_ARGUMENT && line.find("self_draft_weights") != std::string::npos)
        return {kExitUsage, "--self-quant: " + line};
    for (const std::string& path : {models.target, models.draft})
        if (!path.empty() && line.starts_with(path)) return model_failure(status, line, path);
    const bool lacks_flag =
        status == AUSPEX_ERROR_NO_DEVICE && models.device && line.find("--device") == std::string::npos;
    return {exit_code_of(status), lacks_flag ? "--device " + *models.device + ": " + line : with_drivers(status, line)};
}

const char* path_or_null(const std::string& path) {
    return path.empty() ? nullptr : path.c_str();
}

// Of the request, but for these models instead of its own. Points into all three.
auspex_engine_desc describe(const Client::Request& request, const ModelOptions& models, LibraryLog& log) {
    auspex_engine_desc desc;
    auspex_engine_desc_init(&desc, sizeof desc);
    desc.header.next = request.synthetic;
    desc.target_path = path_or_null(models.target);
    desc.draft_path = path_or_null(models.draft);
    desc.self_draft_weights = models.self_draft;
    desc.device = models.device ? models.device->c_str() : nullptr;
    desc.max_sequences = request.max_sequences;
    desc.max_waiting = request.max_waiting;
    desc.max_gap_ms = request.max_gap_ms;
    desc.cache_tokens = request.cache_tokens;
    desc.prefix_cache = request.prefix_cache ? 1 : 0;
    desc.max_context = models.context;
    if (request.max_draft_len > 0) desc.max_draft_len = request.max_draft_len;
    desc.cache_type = models.cache_type;
    desc.target_weights = models.target_weights;
    desc.draft_weights = models.draft_weights;
    desc.compile_threads = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
    desc.background_threads = 1;
    desc.log = LibraryLog::callback;
    desc.log_user_data = &log;
    return desc;
}

} // namespace

std::string with_drivers(auspex_status status, const std::string& line) {
    constexpr std::string_view no_device = "no Vulkan device was found";
    if (status != AUSPEX_ERROR_NO_DEVICE || !line.starts_with(no_device)) return line;
    return std::string(no_device) + " by " + vulkan_drivers() + line.substr(no_device.size());
}

ExitCode exit_code_of(auspex_status status) {
    switch (status) {
    case AUSPEX_ERROR_INVALID_ARGUMENT:
        return kExitUsage;
    case AUSPEX_ERROR_NOT_FOUND:
    case AUSPEX_ERROR_BAD_FILE:
    case AUSPEX_ERROR_UNSUPPORTED:
    case AUSPEX_ERROR_MISMATCH:
    case AUSPEX_ERROR_IO:
        return kExitFile;
    case AUSPEX_ERROR_OUT_OF_HOST_MEMORY:
    case AUSPEX_ERROR_OUT_OF_DEVICE_MEMORY:
    case AUSPEX_ERROR_DEVICE_LOST:
    case AUSPEX_ERROR_NO_DEVICE:
        return kExitDevice;
    case AUSPEX_ERROR_CAPACITY:
        return kExitCapacity;
    default:
        return kExitInternal;
    }
}

void LibraryLog::callback(void* user_data, auspex_log_level level, const char* message) {
    if (level == AUSPEX_LOG_ERROR) static_cast<LibraryLog*>(user_data)->last_error_ = message;
    if (level == AUSPEX_LOG_WARNING) {
        const char* clear = can_redraw() ? "\r\033[K" : ""; // a progress bar may be on the line
        std::fprintf(stderr, "%sauspex: warning: %s\n", clear, as_one_line(message).c_str());
    }
}

std::string LibraryLog::error_line(auspex_status status) const {
    return last_error_.empty() ? auspex_status_text(status) : last_error_;
}

auspex_model_info describe_model(const std::string& path, auspex_cache_type cache_type) {
    LibraryLog log;
    auspex_model_info info;
    auspex_model_info_init(&info, sizeof info);
    const auspex_status status = auspex_model_describe(path.c_str(), cache_type, &info, LibraryLog::callback, &log);
    if (status < 0) {
        throw model_failure(status, log.error_line(status), path);
    }
    return info;
}

Client::Client(const Request& request) : target_(request.models.target) {
    keep_llvmpipe_from_waking_threads(request);
    const std::string cache = cache_folder();
    const ModelOptions models = models_loaded(request);
    ProgressBar progress("loading");
    auspex_engine_desc desc = describe(request, models, log_);
    desc.cache_folder = path_or_null(cache);
    desc.progress = ProgressBar::callback;
    desc.progress_user_data = &progress;

    const auspex_status status = auspex_engine_create(&desc, &engine_);
    if (status < 0) throw create_failure(status, log_.error_line(status), request.models);
    auspex_engine_info_init(&info_, sizeof info_);
    auspex_engine_get_info(engine_, &info_);
}

auspex_memory_plan plan_memory(const Client::Request& request) {
    LibraryLog log;
    const auspex_engine_desc desc = describe(request, request.models, log);
    auspex_memory_plan plan;
    auspex_memory_plan_init(&plan, sizeof plan);
    const auspex_status status = auspex_plan_memory(&desc, &plan);
    if (status < 0) throw create_failure(status, log.error_line(status), request.models);
    return plan;
}

SelfDraftVerdict judge_self_draft(const Client::Request& request) {
    LibraryLog log;
    ModelOptions models = request.models;
    models.self_draft = AUSPEX_SELF_DRAFT_Q4_0;
    auspex_engine_desc desc = describe(request, models, log); // with whatever else takes memory
    if (request.max_draft_len == 0) desc.max_draft_len = 1;
    SelfDraftVerdict verdict;
    auspex_memory_plan_init(&verdict.plan, sizeof verdict.plan);
    const auspex_status status = auspex_plan_memory(&desc, &verdict.plan);
    verdict.refusal = status < 0 ? log.error_line(status) : self_draft_refusal(verdict.plan);
    return verdict;
}

ModelOptions models_loaded(const Client::Request& request) {
    ModelOptions models = request.models;
    if (!models.may_self_draft || request.max_draft_len == 0) return models;
    const SelfDraftVerdict verdict = judge_self_draft(request);
    if (verdict.is_taken()) {
        models.self_draft = AUSPEX_SELF_DRAFT_Q4_0;
    } else if (!models.draft_needed_by.empty()) {
        plan_memory(request); // what is wrong without a copy, too, comes first
        throw Failure(kExitUsage, models.draft_needed_by + ": expected a draft model too (-md PATH), or --self-quant; no copy of the model is made unasked: " + verdict.refusal);
    }
    return models;
}

auspex_tuning_report describe_tuning(const Client::Request& request) {
    LibraryLog log;
    const std::string cache = cache_folder();
    const ModelOptions models = models_loaded(request);
    auspex_engine_desc desc = describe(request, models, log);
    desc.cache_folder = path_or_null(cache);
    auspex_tuning_report report;
    auspex_tuning_report_init(&report, sizeof report);
    const auspex_status status = auspex_describe_tuning(&desc, &report);
    if (status < 0) throw create_failure(status, log.error_line(status), models);
    return report;
}

auspex_tuning_report tune_device(const Client::Request& request, std::vector<TuningCandidate>& candidates) {
    LibraryLog log;
    const std::string cache = cache_folder();
    const ModelOptions models = models_loaded(request);
    ProgressBar progress("measuring");
    auspex_engine_desc desc = describe(request, models, log);
    desc.cache_folder = path_or_null(cache);
    desc.progress = ProgressBar::callback;
    desc.progress_user_data = &progress;
    auspex_tuning_report report;
    auspex_tuning_report_init(&report, sizeof report);
    const auspex_tuning_callback each = [](void* list, const auspex_tuning_candidate* c) {
        static_cast<std::vector<TuningCandidate>*>(list)->push_back(
            {c->knob, c->candidate, c->ms, c->is_default != 0, c->is_chosen != 0});
    };
    const auspex_status status = auspex_tune(&desc, each, &candidates, &report);
    if (status < 0) throw create_failure(status, log.error_line(status), models);
    return report;
}

Client::~Client() {
    auspex_engine_destroy(engine_);
}

void Client::check(auspex_status status) const {
    if (status < 0) throw Failure(exit_code_of(status), log_.error_line(status));
}

std::vector<uint32_t> Client::tokenize(const std::string& text) {
    const size_t guess = text.size() + 8; // byte fallback at worst, and BOS
    std::vector<uint32_t> ids;
    check(read_whole(ids, guess, [&](uint32_t* tokens, size_t capacity, size_t* count) {
        return auspex_engine_tokenize(engine_, text.data(), text.size(), 1, tokens, capacity, count);
    }));
    return ids;
}

std::vector<uint32_t> Client::encode_chat(const auspex_chat_turn& turn) {
    std::vector<uint32_t> ids;
    check(read_whole(ids, guess_tokens(turn), [&](uint32_t* tokens, size_t capacity, size_t* count) {
        return auspex_engine_encode_chat(engine_, &turn, tokens, capacity, count);
    }));
    return ids;
}

void Client::score(const std::vector<uint32_t>& tokens, double* log_probs, const auspex_score_options& options) {
    const auspex_status status = auspex_engine_score(engine_, tokens.data(), tokens.size(), log_probs, &options);
    if (status == AUSPEX_ERROR_BAD_FILE) throw model_failure(status, log_.error_line(status), target_);
    check(status);
}

void Client::prepare(const auspex_sequence_desc& desc) {
    check(auspex_engine_prepare(engine_, &desc));
}

auspex_sequence Client::create(const auspex_sequence_desc& desc) {
    auspex_sequence sequence{};
    check(auspex_sequence_create(engine_, &desc, &sequence));
    return sequence;
}

auspex_sequence Client::fork(auspex_sequence source, const auspex_sequence_desc& desc) {
    auspex_sequence sequence{};
    check(auspex_sequence_fork(engine_, source, &desc, &sequence));
    return sequence;
}

void Client::append(auspex_sequence sequence, const auspex_sequence_desc& desc) {
    check(auspex_sequence_append(engine_, sequence, &desc));
}

void Client::cancel(auspex_sequence sequence) {
    check(auspex_sequence_cancel(engine_, sequence));
}

void Client::park(auspex_sequence sequence) {
    check(auspex_sequence_park(engine_, sequence));
}

void Client::resume(auspex_sequence sequence) {
    check(auspex_sequence_resume(engine_, sequence));
}

void Client::destroy(auspex_sequence sequence) {
    check(auspex_sequence_destroy(engine_, sequence));
}

bool Client::step() {
    const auto begin = TraceFile::Clock::now();
    auspex_step_result result;
    auspex_step_result_init(&result, sizeof result);
    const auspex_status status = auspex_engine_step(engine_, 0, &result);
    rounds_read_ += result.n_rounds_read;
    if (trace_ != nullptr) trace_->add_host_event("step", begin, TraceFile::Clock::now());
    check(status);
    return status == AUSPEX_FINISHED;
}

void Client::wait(uint32_t timeout_ms) {
    const auto begin = TraceFile::Clock::now();
    const auspex_status status = auspex_engine_wait(engine_, timeout_ms);
    if (trace_ != nullptr) trace_->add_host_event("wait", begin, TraceFile::Clock::now());
    check(status);
}

void Client::read(auspex_sequence sequence, std::vector<auspex_token>& tokens, std::string& text) {
    std::array<auspex_token, 64> new_tokens;
    std::array<char, 1024> new_text;
    size_t count = 0;
    do {
        check(auspex_sequence_read_tokens(engine_, sequence, new_tokens.data(), new_tokens.size(), &count));
        tokens.insert(tokens.end(), new_tokens.begin(), new_tokens.begin() + static_cast<std::ptrdiff_t>(count));
    } while (count == new_tokens.size());
    do {
        check(auspex_sequence_read_text(engine_, sequence, new_text.data(), new_text.size(), &count));
        text.append(new_text.data(), count);
    } while (count > 0); // a buffer may stay short of a whole character
}

void Client::read_logprobs(auspex_sequence sequence, std::vector<auspex_token_logprobs>& logprobs) {
    std::array<auspex_token_logprobs, 32> more;
    size_t count = 0;
    do {
        check(auspex_sequence_read_logprobs(engine_, sequence, more.data(), more.size(), &count));
        logprobs.insert(logprobs.end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(count));
    } while (count == more.size());
}

auspex_sequence_state Client::state(auspex_sequence sequence) {
    auspex_sequence_state state;
    auspex_sequence_state_init(&state, sizeof state);
    check(auspex_sequence_get_state(engine_, sequence, &state));
    return state;
}

auspex_engine_load Client::load() {
    auspex_engine_load load;
    auspex_engine_load_init(&load, sizeof load);
    check(auspex_engine_get_load(engine_, &load));
    return load;
}

auspex_sequence_stats Client::stats(auspex_sequence sequence) {
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    check(auspex_sequence_get_stats(engine_, sequence, &stats));
    if (stats.not_finite_n > 0)
        throw Failure(kExitFile, (target_.empty() ? "the target" : target_) +
                                     ": found logits that are not finite numbers, expected numbers; the weights are damaged, or "
                                     "too large for the type that they have or are converted to");
    return stats;
}

auspex_round_times Client::take_round_times(uint32_t draft_len) {
    auspex_round_times times{};
    check(auspex_engine_take_round_times(engine_, draft_len, &times));
    return times;
}

auspex_copy_speed Client::measure_copy(uint32_t repetitions) {
    auspex_copy_speed speed{};
    check(auspex_engine_measure_copy(engine_, repetitions, &speed));
    return speed;
}

auspex_pass_times Client::measure_pass(const auspex_pass_desc& desc) {
    auspex_pass_times times;
    auspex_pass_times_init(&times, sizeof times);
    check(auspex_engine_measure_pass(engine_, &desc, &times));
    return times;
}

void Client::trace_to(TraceFile& file) {
    check(auspex_engine_set_trace(engine_, TraceFile::callback, &file));
    trace_ = &file;
}

Tokenizer::Tokenizer(const std::string& model) {
    const auspex_status status = auspex_tokenizer_open(model.c_str(), &tokenizer_, LibraryLog::callback, &log_);
    if (status < 0) throw model_failure(status, log_.error_line(status), model);
}

Tokenizer::~Tokenizer() {
    auspex_tokenizer_destroy(tokenizer_);
}

std::vector<uint32_t> Tokenizer::encode(const std::string& text, bool add_bos, bool parse_control) const {
    std::vector<uint32_t> ids;
    check(read_whole(ids, text.size() + 8, [&](uint32_t* tokens, size_t capacity, size_t* count) {
        return auspex_tokenizer_encode(tokenizer_, text.data(), text.size(), add_bos ? 1 : 0, parse_control ? 1 : 0,
                                       tokens, capacity, count);
    }));
    return ids;
}

std::vector<uint32_t> Tokenizer::encode_chat(const auspex_chat_turn& turn) {
    std::vector<uint32_t> ids;
    check(read_whole(ids, guess_tokens(turn), [&](uint32_t* tokens, size_t capacity, size_t* count) {
        return auspex_tokenizer_encode_chat(tokenizer_, &turn, tokens, capacity, count, LibraryLog::callback, &log_);
    }));
    return ids;
}

std::vector<uint32_t> Tokenizer::encode_messages(const std::vector<auspex_chat_message>& messages, const auspex_chat_options& options) const {
    constexpr size_t layout_tokens = 32; // more than templates put around a message, and some for all
    size_t guess = layout_tokens;
    for (const auspex_chat_message& message : messages)
        guess += message.content_bytes + layout_tokens;
    LibraryLog log; // of this call: another may be made meanwhile
    std::vector<uint32_t> ids;
    const auspex_status status = read_whole(ids, guess, [&](uint32_t* tokens, size_t capacity, size_t* count) {
        return auspex_tokenizer_encode_messages(tokenizer_, messages.data(), messages.size(), &options, tokens, capacity, count,
                                                LibraryLog::callback, &log);
    });
    if (status < 0) throw Failure(exit_code_of(status), log.error_line(status));
    return ids;
}

std::string Tokenizer::decode_with_controls(const std::vector<uint32_t>& ids) const {
    std::string text;
    std::vector<uint32_t> between;
    for (const uint32_t id : ids) {
        if (!is_control(id)) {
            between.push_back(id);
            continue;
        }
        text += decode(between) + piece(id);
        between.clear();
    }
    return text + decode(between);
}

std::string Tokenizer::decode(const std::vector<uint32_t>& ids) const {
    std::vector<char> text;
    check(read_whole(text, 16 * ids.size(), [&](char* bytes, size_t capacity, size_t* count) {
        return auspex_tokenizer_decode(tokenizer_, ids.data(), ids.size(), bytes, capacity, count);
    }));
    return {text.begin(), text.end()};
}

bool Tokenizer::is_control(uint32_t id) const {
    size_t bytes = 0;
    int is_control = 0;
    auspex_tokenizer_piece(tokenizer_, id, nullptr, 0, &bytes, &is_control);
    return is_control != 0 && bytes > 0;
}

std::string Tokenizer::piece(uint32_t id) const {
    std::vector<char> text;
    check(read_whole(text, 256, [&](char* bytes, size_t capacity, size_t* count) {
        return auspex_tokenizer_piece(tokenizer_, id, bytes, capacity, count, nullptr);
    }));
    return {text.begin(), text.end()};
}

uint32_t Tokenizer::vocab_size() const {
    return auspex_tokenizer_vocab_size(tokenizer_);
}

void Tokenizer::check(auspex_status status) const {
    if (status < 0) throw Failure(exit_code_of(status), log_.error_line(status));
}

} // namespace auspex::cli
