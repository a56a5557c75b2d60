// llvmpipe translates a shader to machine code when it is first dispatched, on its one queue, and keeps the result on disk. A translator
// has that done elsewhere: it dispatches nothing with a pipeline of its own, on a device of its own, and the engine's device finds the
// result there. Drivers that compile when a pipeline is created need none.
#pragma once

#include "device/buffer.h"
#include "device/kernel.h"

#include <memory>

namespace auspex {

class Translator {
  public:
    // unsupported: the device is a host's.
    static Result<std::unique_ptr<Translator>> create(const Device& device);
    // Returns when it is done; a failure leaves the work to the first dispatch. On any thread, one at a time; throws nothing.
    void translate(const KernelDesc& desc) noexcept;

  private:
    Translator() = default;
    Status try_to(const KernelDesc& desc);
    std::unique_ptr<Device> device_;
    std::unique_ptr<MemoryPool> memory_;
    Buffer any_;
};

} // namespace auspex
