// Owns device, models, caches and buffers: the only place that builds the parts together. Nothing here knows the C interface.
#pragma once

#include "session/measure/copy_meter.h"
#include "session/measure/pass_meter.h"
#include "session/measure/scorer.h"
#include "session/models/open_models.h"
#include "session/scheduler.h"
#include "session/tuning/device_tuning.h"
#include "tokens/chat_template.h"

namespace auspex {

struct EngineDesc {
    std::string target_path;
    std::string draft_path; // empty: none
    std::optional<SyntheticModel> target_synthetic, draft_synthetic; // instead of the paths
    std::optional<DType> target_type, draft_type; // of matrices, converted while loading; none: as the files have them
    SelfDraft self_draft = SelfDraft::none; // instead of a draft model: matrices of the target in fewer bits
    DeviceChoice device;
    std::optional<BorrowedDevice> borrowed; // instead of `device`
    uint32_t max_sequences = 1;
    uint32_t max_context = 0; // 0: min(target, 4096)
    bool prefix_cache = false; // beginnings of texts stay in the caches, for others that begin alike
    uint64_t cache_tokens = 0; // that the pages of each cache hold together, at least max_context; 0: max_sequences · max_context
    uint32_t max_draft_len = 8;
    uint32_t max_waiting = 0; // sequences beyond those that have a slot
    double max_gap_ms = 50;   // predicted, that a prefill may keep texts waiting between two of their rounds; 0: no bound
    DType cache_dtype = DType::f16; // or f32, q8_0
    std::string cache_folder;
    double max_submission_ms = 100; // of predicted GPU time; infinite: no bound
    uint32_t compile_threads = 1; // while shaders are compiled, the caller's among them
    uint32_t background_threads = 0; // that compile what is not needed yet, between calls
    TuningMode tuning = TuningMode::off; // full only in Engine::tune
    TuningLimits tuning_limits;
    std::function<void(float)> progress;
    uint32_t max_replay_rows = 0; // tokens of one prefill or catch-up; 0: as the device likes it
    // Tests look at other devices' numbers, limits and reductions through these.
    std::function<void(DeviceCaps&)> adjust_caps;
    std::function<void(Tuning&)> adjust_tuning;
    std::function<void(KernelLibrary&)> adjust_kernels; // of every library that is made
    std::function<void(Drafters&)> adjust_drafters;
};

// What an engine takes of the device's memory, in bytes.
struct MemoryPlan {
    uint64_t target_weights = 0, draft_weights = 0;
    uint64_t target_cache = 0, draft_cache = 0;
    uint64_t activations = 0; // scratch of passes and rounds, slot states, what host and GPU exchange
    uint64_t total = 0;       // reserved for all of it, in the blocks that the device is asked for
    uint64_t device_bytes = 0, device_free_bytes = 0; // of the device's largest heap
    uint32_t max_context = 0; // tokens
    uint64_t target_pass = 0, draft_pass = 0; // bytes of weights that a pass of one row reads
    bool is_cpu = false;
};

class Engine {
  public:
    // out_of_device_memory before anything is uploaded when the plan exceeds what is free; the message says what would fit.
    static Result<std::unique_ptr<Engine>> create(const EngineDesc& desc, const Logger& log);
    // Builds the same engine without its memory: opens the device and the files' headers, reads no weights.
    static Result<MemoryPlan> plan(const EngineDesc& desc, const Logger& log);
    // What such an engine would run with; desc.tuning says what is measured for that. Reads no weights.
    static Result<DeviceTuning> tune(const EngineDesc& desc, const Logger& log);
    ~Engine();

    Result<std::vector<uint32_t>> tokenize(std::string_view text, bool add_bos) const;
    Result<uint64_t> create_sequence(SequenceRequest request);
    Result<uint64_t> fork_sequence(uint64_t source, SequenceRequest request);
    Status append_sequence(uint64_t id, SequenceRequest request);
    // Compiles what sequences with such a request, prompt aside, will need.
    Status prepare(SequenceRequest request);
    // The tokens from the end of the answer before to the assistant's words.
    Result<std::vector<uint32_t>> encode_chat(ChatRequest request) const;
    // The tokens of a whole conversation to the assistant's next words.
    Result<std::vector<uint32_t>> encode_messages(MessagesRequest request) const;
    // Logits of rows [0, tokens.size()), as if they had been generated; see Scorer. Waits.
    Status score(std::span<const uint32_t> tokens, const Scorer::EachRow& each_row, uint32_t chunk = Scorer::kDefaultChunk);

    // For tools; both wait for what is under way and for their own work. A pass uses a free slot.
    Result<PassTimes> measure_pass(const PassRequest& request);
    Result<CopySpeed> measure_copy(uint32_t repetitions);

    Admission& admission() { return *admission_; }
    Outcomes& outcomes() { return *outcomes_; }
    Scheduler& scheduler() { return *scheduler_; }
    TurnQueue& turns() { return *turns_; }
    Device& device() { return *device_; }
    const Device& device() const { return *device_; }
    KernelLibrary& kernels() { return *kernels_; }
    LlamaModel& target() { return *target_; }
    const LlamaModel& target() const { return *target_; }
    LlamaModel* draft() { return draft_.get(); }
    const LlamaModel* draft() const { return draft_.get(); }
    RoundBuffers& buffers() { return buffers_; }
    const RoundPlanner& planner() const { return *planner_; }
    const Tokenizer* tokenizer() const { return tokenizer_.get(); }
    const std::vector<uint32_t>& end_ids() const { return end_ids_; } // tokens that end an answer, ascending
    const Tuning& tuning() const { return kernels_->tuning(); }
    const DeviceTuning& device_tuning() const { return tuned_; }
    uint32_t max_context() const { return max_context_; }
    uint32_t max_draft_len() const { return max_draft_len_; }
    uint32_t max_sequences() const { return max_sequences_; }
    uint64_t reserved_bytes() const { return memory_->reserved_bytes(); }
    const MemoryPlan& memory_plan() const { return plan_; }
    const Logger& log() const { return log_; }

  private:
    Engine() = default;
    static Result<std::unique_ptr<Engine>> open(const EngineDesc& desc, OpenedModels& models, const Logger& log);
    void tell_progress(const EngineDesc& desc, Uploader& uploader, uint64_t bytes, std::pair<float, float> progress) const; // from, to
    Status load_copy(const EngineDesc& desc, const Checkpoint& checkpoint, Uploader& uploader, std::pair<float, float> progress);
    Status load_model(const EngineDesc& desc, const Checkpoint& checkpoint, Uploader& uploader, uint32_t max_context, uint32_t max_rows,
                      std::pair<float, float> progress, std::unique_ptr<LlamaModel>& model);
    Result<MemoryPlan> build(const EngineDesc& desc, const OpenedModels& models, bool rehearse);
    void take_down(); // what build made
    Status make_kernels(const EngineDesc& desc, const Tuning& tuning);
    Status tune_kernels(const EngineDesc& desc, const OpenedModels& models);
    void open_store(const EngineDesc& desc, const OpenedModels& models);
    Status check_fits(const EngineDesc& desc, const OpenedModels& models);
    std::string what_fits(const EngineDesc& desc, const OpenedModels& models, const MemoryPlan& plan);
    Status check_request(SequenceRequest& request) const; // completes it, too

    Logger log_;
    Drafters drafters_ = Drafters::built_in();
    std::unique_ptr<Device> device_;
    std::unique_ptr<MemoryPool> memory_;
    std::unique_ptr<KernelLibrary> kernels_;
    DeviceTuning tuned_;
    std::unique_ptr<Tokenizer> tokenizer_;                             // none for synthetic models
    std::vector<uint32_t> end_ids_;
    std::string target_name_; // for messages
    MemoryPlan plan_;
    std::unique_ptr<LlamaModel> target_, draft_;
    RoundBuffers buffers_;
    std::unique_ptr<TurnQueue> turns_;
    std::unique_ptr<RoundPlanner> planner_;
    std::unique_ptr<Slots> slots_;
    std::unique_ptr<Beginnings> beginnings_; // null: none are kept
    std::unique_ptr<Admission> admission_;
    std::unique_ptr<Outcomes> outcomes_;
    std::unique_ptr<Scheduler> scheduler_;
    RequestChecks checks_;
    SpeculationStore store_{""};
    SpeculationKey store_key_;
    uint32_t max_context_ = 0, max_draft_len_ = 0, max_sequences_ = 0;
};

} // namespace auspex
