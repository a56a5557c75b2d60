// Builds an engine from its description, and hands what callers ask to the parts that do it.
#include "session/engine.h"

#include <algorithm>
#include <bit>

namespace auspex {

namespace {
constexpr uint32_t kPageSize = 16;       // tokens
// Rows of one replay, at most: those of a matrix product share what is read of the weights, the row family's only its tiles do.
constexpr uint32_t kReplayRows = 512, kRowFamilyReplayRows = 64;
constexpr uint64_t kMostReplayBytes = 384ull << 20; // activations of more rows than the row family's, of one model
constexpr uint32_t kDefaultContext = 4096;
// Of a plain pass: qkv, attention, output, gate_up, down; and what norms the first and the fourth where that is apart.
uint32_t stages_per_layer(const Tuning& tuning) { return tuning.norm_is_stage(1) ? 7 : 5; }
constexpr uint32_t kCommandSlack = 16384; // commands beyond one whole prompt

// Largest power of two of slots whose round fits every binding.
uint32_t choose_batch(const DeviceCaps& caps, const LlamaConfig& config, uint32_t n_slots, uint32_t draft_len, uint64_t row_bytes) {
    uint32_t batch = std::bit_ceil(n_slots);
    auto fits = [&](uint32_t b) {
        uint64_t rows = uint64_t{b} * gpu::nodes_of(draft_len);
        return rows * (config.vocab_size + 1ull) * 4 <= caps.max_storage_buffer_range && rows * row_bytes <= caps.max_storage_buffer_range &&
               rows <= caps.max_groups[1];
    };
    while (batch > 1 && !fits(batch)) batch /= 2;
    return batch;
}

uint32_t choose_replay_rows(const DeviceCaps& caps, const Tuning& tuning, uint64_t row_bytes) {
    const uint64_t worth_it = std::min(kMostReplayBytes, caps.device_free_bytes / 32) / row_bytes;
    const uint64_t most = tuning.prompt_by_rows ? kRowFamilyReplayRows : std::clamp<uint64_t>(worth_it, kRowFamilyReplayRows, kReplayRows);
    const auto rows = static_cast<uint32_t>(std::min(caps.max_storage_buffer_range / row_bytes, most));
    return std::max(rows / kRowBucket * kRowBucket, kRowBucket);
}

Drafter with_passes(const EngineDesc& desc, const OpenedModels& models) {
    return desc.self_draft != SelfDraft::none ? Drafter::self : models.draft ? Drafter::model : Drafter::none;
}
} // namespace

Result<std::unique_ptr<Engine>> Engine::open(const EngineDesc& desc, OpenedModels& models, const Logger& log) {
    std::unique_ptr<Engine> engine(new Engine());
    engine->log_ = log;
    AUSPEX_TRY_SET(models, open_models({desc.target_path, desc.target_synthetic, desc.target_type}, {desc.draft_path, desc.draft_synthetic, desc.draft_type}, desc.self_draft));
    engine->target_name_ = models.target->name();
    engine->tokenizer_ = std::move(models.tokenizer);
    engine->end_ids_ = std::move(models.end_ids);
    if (engine->end_ids_.size() > gpu::kMaxStopIds)
        return Status(Code::unsupported, engine->target_name_ + ": " + std::to_string(engine->end_ids_.size()) +
                                             " end tokens are named, expected at most " + std::to_string(gpu::kMaxStopIds));
    AUSPEX_TRY_SET(engine->device_, desc.borrowed ? Device::adopt(*desc.borrowed, log) : Device::create(desc.device, log));
    if (desc.adjust_caps) desc.adjust_caps(engine->device_->caps);
    Tuning tuning = choose_tuning(engine->device_->caps, desc.cache_dtype);
    if (desc.adjust_tuning) desc.adjust_tuning(tuning);
    if (desc.adjust_drafters) desc.adjust_drafters(engine->drafters_);
    engine->drafters_.settle(with_passes(desc, models));
    AUSPEX_TRY(engine->make_kernels(desc, tuning));
    return engine;
}

Status Engine::make_kernels(const EngineDesc& desc, const Tuning& tuning) {
    AUSPEX_TRY_SET(kernels_, KernelLibrary::create(*device_, tuning, desc.cache_folder));
    kernels_->use_threads(desc.compile_threads);
    kernels_->use_background_threads(desc.background_threads);
    if (desc.adjust_kernels) desc.adjust_kernels(*kernels_);
    return ok_status();
}

// Before anything is built that depends on what is chosen.
Status Engine::tune_kernels(const EngineDesc& desc, const OpenedModels& models) {
    const Tuning base = kernels_->tuning();
    TuningRequest request;
    request.mode = desc.tuning;
    request.cache_folder = desc.cache_folder;
    request.target = models.target.get();
    request.draft = models.draft.get();
    request.limits = desc.tuning_limits;
    request.adjust_kernels = desc.adjust_kernels;
    if (desc.tuning == TuningMode::full) request.progress = desc.progress;
    auto tuned = tune_device(*device_, base, *kernels_, request, log_);
    tuned_.tuning = base;
    if (tuned.ok()) tuned_ = std::move(tuned).value();
    else if (desc.tuning != TuningMode::automatic || device_->lost()) return tuned.status();
    else log_(LogLevel::warning, tuned.status().message() + "; this device was not measured"); // an engine may do without
    return tuned_.tuning == base ? ok_status() : make_kernels(desc, tuned_.tuning);
}

Result<DeviceTuning> Engine::tune(const EngineDesc& desc, const Logger& log) {
    OpenedModels models;
    AUSPEX_TRY_ASSIGN(engine, open(desc, models, log));
    AUSPEX_TRY(engine->tune_kernels(desc, models));
    return engine->tuned_;
}

Result<std::unique_ptr<Engine>> Engine::create(const EngineDesc& desc, const Logger& log) {
    OpenedModels models;
    AUSPEX_TRY_ASSIGN(engine, open(desc, models, log));
    AUSPEX_TRY(engine->check_fits(desc, models));
    AUSPEX_TRY(engine->tune_kernels(desc, models));
    AUSPEX_TRY_SET(engine->plan_, engine->build(desc, models, false));
    engine->open_store(desc, models);
    return engine;
}

// What rounds cost on this device, and how often drafts of this pair are accepted, is kept between runs.
void Engine::open_store(const EngineDesc& desc, const OpenedModels& models) {
    auto identity = [](const Checkpoint* model, const LlamaModel* loaded) {
        return model ? (loaded->is_copy() ? "itself, " : model->name() + ", ") + std::to_string(loaded->weights().bytes()) + " bytes" : std::string();
    };
    store_ = SpeculationStore(desc.cache_folder);
    store_key_ = {device_->caps.name, device_->caps.driver, identity(models.target.get(), target_.get()),
                  identity(models.draft.get(), draft_.get()), std::string(dtype_name(desc.cache_dtype))};
    planner_->load(store_, store_key_, log_);
}

Engine::~Engine() {
    if (kernels_) {
        kernels_->end_background(); // first: taking the rest down may wait for the GPU
        kernels_->save_cache();
    }
    if (planner_ && !device_->lost()) planner_->save(store_, store_key_, log_);
    take_down();
}

void Engine::take_down() {
    turns_.reset(); // waits
    scheduler_.reset();
    outcomes_.reset();
    admission_.reset();
    beginnings_.reset();
    slots_.reset();
    planner_.reset();
    buffers_ = {};
    draft_.reset();
    target_.reset();
    memory_.reset();
}

void Engine::tell_progress(const EngineDesc& desc, Uploader& uploader, uint64_t bytes, std::pair<float, float> progress) const {
    if (desc.progress && !uploader.rehearses())
        uploader.progress = [&desc, progress, begin = uploader.uploaded_bytes(), bytes](uint64_t done) {
            const double part = std::min(1.0, static_cast<double>(done - begin) / static_cast<double>(bytes));
            desc.progress(progress.first + (progress.second - progress.first) * static_cast<float>(part));
        };
}

Status Engine::load_copy(const EngineDesc& desc, const Checkpoint& checkpoint, Uploader& uploader, std::pair<float, float> progress) {
    tell_progress(desc, uploader, summarize_weights(checkpoint).pass_matrix_bytes, progress);
    auto loaded = load_llama_matrices(*device_, *memory_, uploader, checkpoint, kernels_.get());
    uploader.progress = nullptr;
    if (!loaded.ok()) return loaded.status();
    draft_ = LlamaModel::create_copy(std::move(loaded).value(), *target_, /*rounds_x=*/desc.self_draft != SelfDraft::as_is);
    return ok_status();
}

Status Engine::load_model(const EngineDesc& desc, const Checkpoint& checkpoint, Uploader& uploader, uint32_t max_context, uint32_t max_rows,
                          std::pair<float, float> progress, std::unique_ptr<LlamaModel>& model) {
    const LlamaConfig& c = checkpoint.config();
    tell_progress(desc, uploader, summarize_weights(checkpoint).device_bytes, progress);
    auto loaded = load_llama_weights(*device_, *memory_, uploader, checkpoint, kernels_.get());
    uploader.progress = nullptr; // what follows is no weight
    if (!loaded.ok()) return loaded.status();
    const uint32_t pages_per_slot = ceil_div(max_context, kPageSize);
    const uint64_t pages_of_all = uint64_t{max_sequences_} * pages_per_slot;
    CacheShape cache = {.n_layers = c.n_layers,
                        .n_heads = c.n_heads,
                        .n_kv_heads = c.n_kv_heads,
                        .head_dim = c.head_dim,
                        .dtype = desc.cache_dtype,
                        .n_slots = max_sequences_,
                        .max_rows = max_context,
                        .page_size = kPageSize,
                        .n_pages = static_cast<uint32_t>(desc.cache_tokens == 0 ? pages_of_all : std::min(pages_of_all, ceil_div(desc.cache_tokens, uint64_t{kPageSize})))};
    AUSPEX_TRY_SET(model, LlamaModel::create(*device_, *memory_, uploader, tuning(), std::move(loaded).value(), cache, max_rows));
    return ok_status();
}

Result<MemoryPlan> Engine::build(const EngineDesc& desc, const OpenedModels& models, bool rehearse) {
    const LlamaConfig& target = models.target->config();
    if (desc.max_context > target.max_position)
        return Status(Code::invalid_argument, "a context of " + std::to_string(desc.max_context) + " tokens was asked for, expected at most " +
                                                  std::to_string(target.max_position) + " of the target " + target_name_);
    if (desc.max_sequences == 0 || desc.max_sequences > 4096)
        return Status(Code::invalid_argument, "max_sequences is " + std::to_string(desc.max_sequences) + ", expected 1 to 4096");
    if (desc.max_draft_len > kMaxDraft)
        return Status(Code::invalid_argument, "max_draft_len is " + std::to_string(desc.max_draft_len) + ", expected at most " + std::to_string(kMaxDraft));
    max_context_ = desc.max_context ? desc.max_context : std::min(target.max_position, kDefaultContext);
    if (desc.cache_tokens != 0 && desc.cache_tokens < max_context_)
        return Status(Code::invalid_argument, "cache_tokens is " + std::to_string(desc.cache_tokens) + ", expected at least the context of " + std::to_string(max_context_));
    // Beyond its own context a draft drafts nothing, and holds nothing.
    const uint32_t draft_context = models.draft ? std::min(max_context_, models.draft->config().max_position) : 0;
    max_sequences_ = desc.max_sequences;
    max_draft_len_ = desc.max_draft_len;
    checks_ = RequestChecks(drafters_, {target.vocab_size, max_context_, max_draft_len_, with_passes(desc, models), tokenizer_ != nullptr});

    memory_ = std::make_unique<MemoryPool>(*device_, rehearse);
    AUSPEX_TRY_ASSIGN(uploader, Uploader::create(*device_, *memory_));
    const double target_bytes = static_cast<double>(summarize_weights(*models.target).device_bytes);
    const WeightSummary draft = models.draft ? summarize_weights(*models.draft) : WeightSummary();
    const auto draft_bytes = static_cast<double>(desc.self_draft != SelfDraft::none ? draft.pass_matrix_bytes : draft.device_bytes);
    const auto target_part = static_cast<float>(target_bytes / (target_bytes + draft_bytes));

    uint64_t row_bytes = LlamaModel::activation_bytes_per_row(target, tuning(), max_context_);
    if (models.draft) row_bytes = std::max(row_bytes, LlamaModel::activation_bytes_per_row(models.draft->config(), tuning(), draft_context));
    row_bytes = std::max(row_bytes, truncate_words(target.vocab_size) * 4);
    uint32_t batch = choose_batch(device_->caps, target, max_sequences_, max_draft_len_, std::max(row_bytes, uint64_t{gpu::kept_words_of(max_context_)} * 4));
    const uint32_t replay_rows = desc.max_replay_rows ? desc.max_replay_rows : choose_replay_rows(device_->caps, tuning(), row_bytes);
    AUSPEX_TRY(load_model(desc, *models.target, *uploader, max_context_, std::max(batch * (max_draft_len_ + 1), replay_rows), {0.0f, target_part}, target_));
    if (desc.self_draft != SelfDraft::none) AUSPEX_TRY(load_copy(desc, *models.draft, *uploader, {target_part, 1.0f}));
    else if (models.draft) AUSPEX_TRY(load_model(desc, *models.draft, *uploader, draft_context, std::max(2 * batch, replay_rows), {target_part, 1.0f}, draft_));
    AUSPEX_TRY_SET(buffers_, RoundBuffers::create(*memory_, *uploader, max_sequences_, max_context_, batch, max_draft_len_, target.vocab_size,
                                                   models.draft ? models.draft->config().vocab_size : 0));

    const uint32_t max_commands = max_context_ + kCommandSlack;
    RoundModels round_models = {*target_, draft_.get()};
    AUSPEX_TRY_SET(turns_, TurnQueue::create(*device_, *memory_, *uploader, *kernels_, round_models, buffers_, {batch, replay_rows, max_commands, desc.max_submission_ms}));
    const CostPrior prior = {.target_bytes = target_->weights().bytes(),
                             .draft_bytes = draft_ ? draft_->weights().bytes() : 0,
                             .target_stages = stages_per_layer(tuning()) * target.n_layers,
                             .draft_stages = draft_ ? stages_per_layer(tuning()) * draft_->config().n_layers : 0,
                             .is_cpu = device_->caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU,
                             .target_text_bytes = KvCache::bytes_per_token(target_->cache().shape()),
                             .draft_text_bytes = draft_ ? KvCache::bytes_per_token(draft_->cache().shape()) : 0,
                             .prompt_part = draft_ ? static_cast<double>(draft_->config().n_parameters()) / static_cast<double>(target.n_parameters()) : 1};
    planner_ = std::make_unique<RoundPlanner>(prior, max_draft_len_, draft_context);
    slots_ = std::make_unique<Slots>(round_models, Slots::Limits{max_sequences_, max_context_, max_draft_len_, max_commands, end_ids_});
    if (desc.prefix_cache) beginnings_ = std::make_unique<Beginnings>(round_models, *slots_, tuning().prompt_by_rows);
    admission_ = std::make_unique<Admission>(round_models, *slots_, *turns_, Admission::Limits{max_context_, max_draft_len_, desc.max_waiting},
                                              beginnings_.get());
    outcomes_ = std::make_unique<Outcomes>(*admission_, *slots_, *planner_, drafters_, device_->caps.timestamp_period_ns, device_->caps.timestamp_valid_bits);
    scheduler_ = std::make_unique<Scheduler>(round_models, *turns_, *slots_, *admission_, *planner_, *outcomes_, beginnings_.get(),
                                             Scheduler::Limits{max_context_, max_draft_len_, batch, replay_rows, desc.max_submission_ms, desc.max_gap_ms == 0 ? kNoBudget : desc.max_gap_ms, desc.cache_tokens != 0});
    admission_->predict_wait_by([this] { return scheduler_->load().wait_ms; });

    uploader.reset(); // its staging buffer goes
    MemoryPlan plan = {.target_weights = target_->weights().bytes(),
                       .draft_weights = draft_ ? draft_->weights().bytes() : 0,
                       .target_cache = target_->cache().bytes(),
                       .draft_cache = round_models.draft_cache() ? round_models.draft_cache()->bytes() : 0,
                       .total = memory_->reserved_bytes(),
                       .device_bytes = device_->caps.device_local_bytes,
                       .device_free_bytes = device_->caps.device_free_bytes,
                       .max_context = max_context_,
                       .target_pass = target_->weights().bytes_per_pass(),
                       .draft_pass = draft_ ? draft_->weights().bytes_per_pass() : 0,
                       .is_cpu = device_->caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU};
    plan.activations = memory_->used_bytes() - plan.target_weights - plan.draft_weights - plan.target_cache - plan.draft_cache;
    return plan;
}

Result<std::vector<uint32_t>> Engine::tokenize(std::string_view text, bool add_bos) const {
    if (!tokenizer_) return no_tokenizer();
    AUSPEX_TRY_ASSIGN(tokens, tokenizer_->encode(text));
    if (add_bos && tokenizer_->add_bos()) tokens.insert(tokens.begin(), tokenizer_->bos_id());
    return tokens;
}

Status Engine::check_request(SequenceRequest& request) const {
    if (device_->lost()) return device_->lost_status();
    return checks_.check(request);
}

Result<uint64_t> Engine::create_sequence(SequenceRequest request) {
    AUSPEX_TRY(check_request(request));
    AUSPEX_TRY(checks_.check_new(request));
    return admission_->create(std::move(request), tokenizer_.get());
}

Result<uint64_t> Engine::fork_sequence(uint64_t source, SequenceRequest request) {
    AUSPEX_TRY(check_request(request));
    AUSPEX_TRY(checks_.check_fork(request));
    return admission_->fork(source, std::move(request), tokenizer_.get());
}

Status Engine::append_sequence(uint64_t id, SequenceRequest request) {
    AUSPEX_TRY(check_request(request));
    return admission_->append(id, std::move(request), tokenizer_.get());
}

Status Engine::prepare(SequenceRequest request) {
    AUSPEX_TRY(check_request(request));
    AUSPEX_TRY(scheduler_->prepare(request));
    kernels_->save_cache();
    return ok_status();
}

Result<std::vector<uint32_t>> Engine::encode_chat(ChatRequest request) const {
    if (!tokenizer_) return no_tokenizer();
    return auspex::encode_chat(*tokenizer_, target_name_, std::move(request));
}

Result<std::vector<uint32_t>> Engine::encode_messages(MessagesRequest request) const {
    if (!tokenizer_) return no_tokenizer();
    return auspex::encode_messages(*tokenizer_, target_name_, std::move(request));
}

Result<PassTimes> Engine::measure_pass(const PassRequest& request) {
    if (device_->lost()) return device_->lost_status();
    AUSPEX_TRY(check_pass(request, RoundModels{*target_, draft_.get()}.of(request.of)));
    PassTimes times;
    AUSPEX_TRY(scheduler_->with_free_slot(request.depth + request.n_rows, [&](uint32_t slot, std::span<const PageChange> pages) {
        Errand errand(*device_, *kernels_, {*target_, draft_.get()}, buffers_, slot);
        AUSPEX_TRY_SET(times, PassMeter(errand).measure(request, pages));
        return ok_status();
    }, request.of));
    return times;
}

Result<CopySpeed> Engine::measure_copy(uint32_t repetitions) {
    if (device_->lost()) return device_->lost_status();
    AUSPEX_TRY(check_repetitions(repetitions));
    AUSPEX_TRY(scheduler_->drain());
    return auspex::measure_copy(*device_, *kernels_, repetitions);
}

Status Engine::score(std::span<const uint32_t> tokens, const Scorer::EachRow& each_row, uint32_t chunk) {
    if (device_->lost()) return device_->lost_status();
    AUSPEX_TRY(checks_.check_scored(tokens));
    return scheduler_->with_free_slot(static_cast<uint32_t>(tokens.size()), [&](uint32_t slot, std::span<const PageChange> pages) {
        Errand errand(*device_, *kernels_, {*target_, draft_.get()}, buffers_, slot);
        Scorer scorer(errand, [&](uint32_t n_rows) { return scheduler_->slices_of_pass(n_rows); });
        return scorer.run(tokens, pages, chunk, each_row);
    });
}

} // namespace auspex
