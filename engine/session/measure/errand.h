// Known tokens of one slot through passes that belong to no turn: what the GPU is told for that, the rows of a pass, and the wait.
// For tools. It brings its own memory and fence; the slot, its pages and the order of work are the scheduler's.
#pragma once

#include "round_state/round_pass.h"

#include <span>

namespace auspex {

class Errand {
  public:
    // Pages of `slot` are mapped for all tokens to come. Nothing else may be submitted from the first run() on until the last has returned.
    Errand(Device& device, KernelLibrary& kernels, RoundModels models, const RoundBuffers& buffers, uint32_t slot)
        : device_(&device), kernels_(&kernels), models_(models), buffers_(&buffers), slot_(slot), memory_(device) {}
    ~Errand();

    // For passes over at most n_rows tokens, and changes of at most n_pages pages with them.
    Status prepare(uint32_t n_rows, size_t n_pages);
    // What the next run() is told: tokens of a model's rows from `first` on, and changes of its pages.
    void tell(ModelRole of, std::span<const uint32_t> tokens, uint32_t first, std::span<const PageChange> pages);
    // The beginning of its recording: what was told takes effect, and n_rows rows are there for passes like this one.
    Pass record_rows(Recorder& to, ModelRole of, PassKind kind, uint32_t n_rows, uint32_t slice_layers = 0) const;
    // Segments [first, first + count), at most at_once of them in a submission; waits for all.
    Status run(const Recording& recording, uint32_t first, uint32_t count, uint32_t at_once);

    Device& device() const { return *device_; }
    KernelLibrary& kernels() const { return *kernels_; }
    const LlamaModel& model(ModelRole of) const { return *models_.of(of); }
    const RoundBuffers& buffers() const { return *buffers_; }
    MemoryPool& memory() { return memory_; } // given back with the errand

  private:
    Device* device_;
    KernelLibrary* kernels_;
    RoundModels models_;
    const RoundBuffers* buffers_;
    uint32_t slot_;
    MemoryPool memory_;
    TurnBuffers turn_;     // commands, count and list
    Buffer rows_, counts_; // (n_rows) Row, 3 uint
    VkFence fence_ = VK_NULL_HANDLE;
};

} // namespace auspex
