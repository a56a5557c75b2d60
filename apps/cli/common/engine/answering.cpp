// A prompt takes as many slots as it has choices. One sequence reads it; of several choices the others fork from it
// when it has, and it goes on as the last itself. As many again wait in the engine, which lets one in as soon as a slot
// is free: no round passes until it is filled.
#include "cli/common/engine/answering.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace auspex::cli {

namespace {

std::string last_component(const std::string& path) {
    const std::string name = path.substr(0, path.find_last_not_of("/\\") + 1);
    return name.substr(name.find_last_of("/\\") + 1);
}

openai::Limits limits_of(const AnsweringOptions& options, const auspex_engine_info& engine) {
    return {.vocab_size = engine.vocab_size,
            .max_context = engine.max_context,
            .max_draft_len = engine.max_draft_len,
            .max_choices = options.max_choices,
            .has_draft_model = engine.has_draft != 0 && engine.is_self_draft == 0,
            .has_self_draft = engine.is_self_draft != 0};
}

int64_t now() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

// What of a refusal is the request's own fault; what is not, ends the command.
openai::RequestError own_fault(const Failure& failure, const std::string& param) {
    if (failure.exit_code() == kExitCapacity) return {param, failure.what(), "context_length_exceeded"};
    if (failure.exit_code() == kExitUsage) return {param, failure.what()};
    throw failure;
}

// Logits that are no numbers are: others may go on. What else fails is the engine's.
bool is_of_one_job(const Failure& failure) {
    return failure.exit_code() == kExitFile;
}

} // namespace

Answering::Answering(const AnsweringOptions& options, Client& client)
    : options_(options), client_(client), tokenizer_(options.models.target), usual_(options.sampling, 0), limits_(limits_of(options, client.info())),
      model_(options.model.empty() ? last_component(options.models.target) : options.model),
      fingerprint_(std::string(client.info().numerics_id) + "-" + format_api_version(auspex_version())) {}

std::vector<uint32_t> Answering::encode(const openai::Prompt& prompt, const std::string& param) const {
    if (const auto* ids = std::get_if<std::vector<uint32_t>>(&prompt)) return *ids;
    std::vector<uint32_t> tokens = tokenizer_.encode(std::get<std::string>(prompt), /*add_bos=*/true, /*parse_control=*/false);
    if (tokens.empty()) throw openai::RequestError(param, "expected some text, found none");
    return tokens;
}

std::vector<uint32_t> Answering::encode(const std::vector<openai::Message>& messages) const {
    std::vector<auspex_chat_message> said;
    for (const openai::Message& message : messages)
        said.push_back({message.role.c_str(), message.content.data(), message.content.size()});
    auspex_chat_options layout;
    auspex_chat_options_init(&layout, sizeof layout);
    layout.date = options_.date ? options_.date->c_str() : nullptr;
    layout.template_name = options_.template_name.empty() ? nullptr : options_.template_name.c_str();
    try {
        return tokenizer_.encode_messages(said, layout);
    } catch (const Failure& failure) {
        // A model without a layout completes prompts all the same.
        if (failure.exit_code() == kExitFile) throw openai::RequestError("messages", failure.what(), "unsupported");
        throw own_fault(failure, "messages");
    }
}

std::string Answering::text_of(const openai::Prompt& prompt) const {
    if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
    return tokenizer_.decode(std::get<std::vector<uint32_t>>(prompt));
}

void Answering::check_room(const std::vector<uint32_t>& tokens, const std::string& param) const {
    if (tokens.size() >= limits_.max_context)
        throw openai::RequestError(param,
                                   format("the prompt has %zu tokens, expected fewer than the context's %u",
                                          tokens.size(), limits_.max_context),
                                   "context_length_exceeded");
}

void Answering::prepare(Job& job) const {
    const openai::Request& request = job.request;
    if (request.endpoint == openai::Endpoint::chat) {
        job.prompts.push_back(encode(request.messages));
        check_room(job.prompts.back(), "messages");
    }
    for (size_t i = 0; i < request.prompts.size(); ++i) {
        const std::string param = request.prompts.size() == 1 ? "prompt" : format("prompt[%zu]", i);
        job.prompts.push_back(encode(request.prompts[i], param));
        check_room(job.prompts.back(), param);
    }
    openai::Answer& answer = job.answer;
    answer.endpoint = request.endpoint;
    answer.id = openai::random_id(openai::id_prefix(request.endpoint));
    answer.model = model_;
    answer.fingerprint = fingerprint_;
    answer.seed = request.seed ? static_cast<uint64_t>(*request.seed) : std::random_device{}();
    answer.choices.resize(job.n_choices());
    answer.has_tokens = request.has_tokens;
    for (size_t i = 0; request.has_echo && i < answer.choices.size(); ++i)
        answer.choices[i].before = text_of(request.prompts[i / request.n]);
    if (request.logprobs) answer.pieces = pieces();
}

bool Answering::begin(Job& job) {
    const uint32_t n_slots = job.request.max_tokens == 0u ? 1 : job.request.n;
    while (!job.has_begun_all() && live_.size() + n_slots <= options_.max_alive) {
        try {
            begin_prompt(job);
        } catch (const Failure& failure) {
            abandon(job);
            throw own_fault(failure, "");
        }
    }
    return job.has_begun_all();
}

void Answering::begin_prompt(Job& job) {
    const openai::Request& request = job.request;
    const std::vector<uint32_t>& tokens = job.prompts[job.n_begun];
    const size_t first = job.n_begun * request.n;
    if (job.answer.created == 0) job.answer.created = now();
    ++job.n_begun;
    openai::ChoiceDesc desc(request, *usual_, job.answer.seed, static_cast<uint32_t>(first));
    desc->prompt_tokens = tokens.data();
    desc->prompt_token_count = tokens.size();
    if (request.max_tokens == 0u) desc->max_tokens = 1; // the shortest that has an end; nobody sees its token
    const bool forks = request.n > 1 && request.max_tokens != 0u;
    if (forks) desc->max_tokens = AUSPEX_HOLD;
    const auto sequence = client_.create(*desc);
    live_.push_back({sequence, &job, forks ? first + request.n - 1 : first, {}, {}, 0});
    if (is_waiting(live_.back())) live_.back().waits_since = Clock::now();
    if (!forks) return;
    const size_t reader = live_.size() - 1; // goes on as the last choice when its forks have what they share
    for (size_t choice = first; choice < first + request.n - 1; ++choice) {
        const openai::ChoiceDesc own(request, *usual_, job.answer.seed, static_cast<uint32_t>(choice));
        live_.push_back({client_.fork(sequence, *own), &job, choice, {}, {}, 0});
    }
    live_[reader].fork = live_[reader + 1].sequence;
}

void Answering::abandon(Job& job) {
    for (const Live& live : live_) {
        if (live.job != &job) continue;
        try {
            if (!job.failure) job.on_end(client_.stats(live.sequence));
        } catch (const Failure& failure) { // what is taken away may have logits that are no numbers
            if (!is_of_one_job(failure)) throw;
        }
        client_.destroy(live.sequence);
    }
    std::erase_if(live_, [&](const Live& live) { return live.job == &job; });
}

void Answering::park(const Job& job) {
    for (const Live& live : live_)
        if (live.job == &job) client_.park(live.sequence);
}

void Answering::resume(const Job& job) {
    for (const Live& live : live_)
        if (live.job == &job) client_.resume(live.sequence);
}

std::optional<auspex_sequence_state> Answering::state(const Job& job) {
    for (const Live& live : live_)
        if (live.job == &job) return client_.state(live.sequence);
    return std::nullopt;
}

bool Answering::has_parked() {
    return std::any_of(live_.begin(), live_.end(),
                       [&](const Live& live) { return client_.state(live.sequence).phase == AUSPEX_PHASE_PARKED; });
}

std::vector<Job*> Answering::end_waiting() {
    std::vector<Job*> jobs, waiting;
    for (const Live& live : live_)
        if (jobs.empty() || jobs.back() != live.job) jobs.push_back(live.job);
    for (Job* job : jobs) {
        const bool is_in = std::any_of(live_.begin(), live_.end(),
                                       [&](const Live& live) { return live.job == job && !is_waiting(live); });
        if (is_in || job->n_ended > 0 || !job->has_begun_all()) continue;
        abandon(*job);
        waiting.push_back(job);
    }
    return waiting;
}

bool Answering::collect(Live& live) {
    Job& job = *live.job;
    const openai::Request& request = job.request;
    if (live.fork.id != 0) { // stands before it in the list, so that it is still there
        const auspex_sequence_stats of_fork = client_.stats(live.fork);
        if (of_fork.prompt_ms < 0 && of_fork.stop_reason == AUSPEX_STOP_NONE) return false;
        auspex_sequence_stats reading = client_.stats(live.sequence); // begins anew with what is appended
        reading.prompt_ms = of_fork.prompt_ms;
        job.answer.totals.add_prompt(reading, live.waited_ms);
        const openai::ChoiceDesc desc(request, *usual_, job.answer.seed, static_cast<uint32_t>(live.choice));
        client_.append(live.sequence, *desc);
        live.fork = {};
        return false;
    }
    openai::Choice& choice = job.answer.choices[live.choice];
    // Asked before reading: what ended is complete.
    const auspex_sequence_stats stats = client_.stats(live.sequence);
    tokens_.clear();
    client_.read(live.sequence, tokens_, choice.text);
    if (request.logprobs) client_.read_logprobs(live.sequence, choice.logprobs);
    if (request.has_tokens)
        for (const auspex_token& token : tokens_)
            choice.tokens.push_back(token.id);
    const bool has_ended = stats.stop_reason != AUSPEX_STOP_NONE;
    if (has_ended) {
        choice.stop_reason = stats.stop_reason;
        client_.destroy(live.sequence);
    }
    // With the first token, so that whoever is told of each knows by then.
    if ((has_ended || !tokens_.empty()) && (request.n == 1 || request.max_tokens == 0u) && !std::exchange(live.is_prompt_counted, true))
        job.answer.totals.add_prompt(stats, live.waited_ms);
    if (request.max_tokens == 0u) { // nobody sees its token
        for (size_t i = 0; has_ended && i < request.n; ++i, ++job.n_ended) {
            openai::Choice& other = job.answer.choices[live.choice + i];
            other.text.clear(); // what was said only so that there was an end
            other.tokens.clear();
            other.logprobs.clear();
            other.stop_reason = AUSPEX_STOP_LENGTH;
            job.on_news(live.choice + i, {});
        }
        return has_ended;
    }
    if (has_ended) {
        job.answer.totals.add_choice(stats);
        ++job.n_ended;
    }
    if (has_ended || !tokens_.empty()) job.on_news(live.choice, tokens_);
    if (has_ended) job.on_end(stats);
    return has_ended;
}

openai::Pieces Answering::pieces() const {
    return [&of = tokenizer_](uint32_t token) { return openai::Piece{of.piece(token), of.is_control(token)}; };
}

bool Answering::step() {
    const auto begin = Clock::now();
    const bool all_finished = client_.step();
    for (Live& live : live_) {
        if (!live.waits_since || is_waiting(live)) continue;
        live.waited_ms = std::chrono::duration<double, std::milli>(begin - *live.waits_since).count();
        live.waits_since.reset();
    }
    std::vector<Live> running;
    for (Live& live : live_) {
        Job& job = *live.job;
        try {
            if (job.failure) {
                client_.destroy(live.sequence);
            } else if (!collect(live)) {
                running.push_back(live);
            } else if (job.has_ended()) {
                ended_.push_back(&job);
            }
        } catch (const Failure& failure) {
            if (!is_of_one_job(failure)) throw;
            client_.destroy(live.sequence);
            job.failure = failure;
            ended_.push_back(&job);
        }
    }
    const bool has_news = running.size() < live_.size();
    live_ = std::move(running);
    for (Job* job : ended_)
        if (job->failure) abandon(*job); // the choices before the one that failed
    if (!has_news && all_finished && !live_.empty() && !has_parked())
        throw Failure(kExitInternal, "the engine has nothing left to do, but an answer has not ended");
    return has_news;
}

} // namespace auspex::cli
