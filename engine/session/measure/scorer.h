// Known tokens through the target as if it had generated them: logits of every row, for scores. Waits; for tools.
// It brings its own buffers and recording; the slot, its pages and the order of work are the scheduler's.
#pragma once

#include "round/round.h"

#include <functional>
#include <span>

namespace auspex {

class Scorer {
  public:
    static constexpr uint32_t kDefaultChunk = 16; // rows of one pass; any number gives the same bits

    // Rows are evaluated in `slot`, whose target pages for all of them are mapped: `pages` are told to the GPU first. Nothing
    // else may be submitted until run() returns. slices: parts of a pass over so many rows, as turn_slices says.
    using Slices = std::function<uint32_t(uint32_t n_rows)>;
    Scorer(Device& device, KernelLibrary& kernels, RoundModels models, const RoundBuffers& buffers, uint32_t slot, Slices slices)
        : device_(&device), kernels_(&kernels), models_(models), buffers_(&buffers), slot_(slot), slices_(std::move(slices)), memory_(device) {}
    ~Scorer();

    // Row i's logits, (vocab) f32, go to each_row(i, logits) in ascending order; valid during the call.
    using EachRow = std::function<void(uint32_t row, std::span<const float> logits)>;
    Status run(std::span<const uint32_t> tokens, std::span<const PageChange> pages, uint32_t chunk, const EachRow& each_row);

  private:
    Status prepare(uint32_t chunk, uint32_t max_commands);
    Status run_chunk(std::span<const uint32_t> tokens, uint32_t first, std::span<const PageChange> pages);
    Device* device_;
    KernelLibrary* kernels_;
    RoundModels models_;
    const RoundBuffers* buffers_;
    uint32_t slot_;
    Slices slices_;
    MemoryPool memory_; // of this scorer alone: given back with it
    TurnBuffers turn_;  // commands, count and list
    Buffer rows_, counts_; // (chunk) Row, 3 uint
    Buffer logits_;        // (chunk, vocab) f32
    Buffer host_logits_;   // the same, for the host
    uint32_t chunk_ = 0;
    VkFence fence_ = VK_NULL_HANDLE;
    std::unique_ptr<Recording> recording_; // of one chunk; a submission per segment
};

// log of softmax(logits)[token], in double.
double log_probability(std::span<const float> logits, uint32_t token);

} // namespace auspex
