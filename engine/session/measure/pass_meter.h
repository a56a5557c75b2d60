// Times single passes of a model as rounds and prompts record them, whole and stage by stage. Waits; for tools.
// It brings its own buffers and recordings; the slot, its pages and the order of work are the scheduler's.
#pragma once

#include "session/slots/command_writer.h"

namespace auspex {

struct PassRequest {
    ModelRole of = ModelRole::target;
    PassKind kind = PassKind::rows; // rows: with head and greedy choice, as the target's part of a round; prompt: layers only
    uint32_t n_rows = 1;            // at most max_rows of the model
    uint32_t depth = 0;             // positions before the first row; their keys are whatever the pages hold
    uint32_t repetitions = 5;       // after one that warms up
    bool stages = false;            // time every stage, too
};

struct StageTime {
    const char* name;
    double ms;      // of all stages of this name in one pass; the median over the repetitions
    uint32_t count; // of them
};

struct PassTimes {
    double gpu_ms = -1, least_ms = -1, most_ms = -1; // median and range; < 0: the device has no timestamps
    double wall_ms = 0;                              // of one pass among those submitted together
    uint32_t n_dispatches = 0, n_barriers = 0;
    uint64_t weights_bytes = 0; // read by one pass, whatever n_rows
    uint64_t cache_bytes = 0;   // keys and values read
    double flops = 0;           // of the matrices: two for each weight and row
    std::vector<StageTime> stages = {}; // in the order in which they first come; none unless asked for
};

class PassMeter {
  public:
    // Rows lie in `slot`, whose pages for depth + n_rows rows of the model are mapped: `pages` are told to the GPU first.
    // Nothing else may be submitted until measure() returns.
    PassMeter(Device& device, KernelLibrary& kernels, RoundModels models, const RoundBuffers& buffers, uint32_t slot)
        : device_(&device), kernels_(&kernels), models_(models), buffers_(&buffers), slot_(slot), memory_(device) {}
    ~PassMeter();

    Result<PassTimes> measure(const PassRequest& request, std::span<const PageChange> pages);

  private:
    Status prepare(const PassRequest& request, std::span<const PageChange> pages);
    // `n` passes, each in a segment of its own.
    Result<std::unique_ptr<Recording>> record(const PassRequest& request, uint32_t n, bool stages);
    void record_pass(Recorder& to, const PassRequest& request);
    // Segments of a recording, so many in a submission at most.
    Status run(const Recording& recording, uint32_t first, uint32_t count, uint32_t at_once);
    const LlamaModel& model(const PassRequest& request) const { return *models_.of(request.of); }

    Device* device_;
    KernelLibrary* kernels_;
    RoundModels models_;
    const RoundBuffers* buffers_;
    uint32_t slot_;
    MemoryPool memory_; // of this meter alone: given back with it
    TurnBuffers turn_;  // commands, count and list
    Buffer rows_, counts_;                 // (n_rows) Row, 3 uint
    Buffer bests_, choices_;               // (n_rows, at most half the vocabulary) BestToken, (n_rows) VocabChoice
    VkFence fence_ = VK_NULL_HANDLE;
};

} // namespace auspex
