// Owns device, models, caches and buffers: the only place that builds the parts together. Sequences live in the
// scheduler. Nothing here knows the C interface.
#pragma once

#include "session/scheduler.h"
#include "tokens/tokenizer.h"

namespace auspex {

struct EngineDesc {
    std::string target_path;
    std::string draft_path; // empty: none
    std::optional<SyntheticModel> target_synthetic, draft_synthetic; // instead of the paths
    DeviceChoice device;
    std::optional<BorrowedDevice> borrowed; // instead of `device`
    uint32_t max_sequences = 1;
    uint32_t max_context = 0; // 0: min(model, 4096)
    uint32_t max_draft_len = 8;
    DType cache_dtype = DType::f16; // or f32, q8_0
    std::string cache_folder;
    std::function<void(float)> progress;
    // Tests look at other devices' numbers, limits and reductions through these.
    std::function<void(DeviceCaps&)> adjust_caps;
    std::function<void(Tuning&)> adjust_tuning;
};

class Engine {
  public:
    static Result<std::unique_ptr<Engine>> create(const EngineDesc& desc, const Logger& log);
    ~Engine();

    Result<std::vector<uint32_t>> tokenize(std::string_view text, bool add_bos) const;
    Result<uint64_t> create_sequence(SequenceRequest request);
    Result<uint64_t> fork_sequence(uint64_t source, SequenceRequest request);

    Scheduler& scheduler() { return *scheduler_; }
    const Scheduler& scheduler() const { return *scheduler_; }
    TurnQueue& turns() { return *turns_; }
    Device& device() { return *device_; }
    const Device& device() const { return *device_; }
    KernelLibrary& kernels() { return *kernels_; }
    LlamaModel& target() { return *target_; }
    const LlamaModel& target() const { return *target_; }
    LlamaModel* draft() { return draft_.get(); }
    const LlamaModel* draft() const { return draft_.get(); }
    RoundBuffers& buffers() { return buffers_; }
    const Tokenizer* tokenizer() const { return tokenizer_.get(); }
    const Tuning& tuning() const { return kernels_->tuning(); }
    uint32_t max_context() const { return max_context_; }
    uint32_t max_draft_len() const { return max_draft_len_; }
    uint32_t max_sequences() const { return max_sequences_; }
    uint64_t reserved_bytes() const { return memory_->reserved_bytes(); }
    const Logger& log() const { return log_; }

  private:
    Engine() = default;
    Status open_models(const EngineDesc& desc);
    Status load_model(const EngineDesc& desc, const Checkpoint& checkpoint, Uploader& uploader, uint32_t max_rows,
                      std::unique_ptr<LlamaModel>& model);
    Status build(const EngineDesc& desc);
    Status check_request(const SequenceRequest& request) const;

    Logger log_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<MemoryPool> memory_;
    std::unique_ptr<KernelLibrary> kernels_;
    std::unique_ptr<Checkpoint> target_checkpoint_, draft_checkpoint_; // until loaded
    std::unique_ptr<Tokenizer> tokenizer_;                             // none for synthetic models
    std::unique_ptr<LlamaModel> target_, draft_;
    RoundBuffers buffers_;
    std::unique_ptr<TurnQueue> turns_;
    std::unique_ptr<Scheduler> scheduler_;
    uint32_t max_context_ = 0, max_draft_len_ = 0, max_sequences_ = 0;
};

} // namespace auspex
