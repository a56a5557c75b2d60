// Work on tensors that are cut into shards, a dispatch for each.
#pragma once

#include "kernels/kernel_library.h"
#include "tensor/tensor.h"

namespace auspex {

// dispatch(shard) for every shard. What they write differs, but lies in one buffer, which validation layers cannot tell from a
// race: a barrier keeps them apart. Tensors have several only where they exceed what the device binds at once.
template <typename Dispatch> void each_shard(Recorder& to, const Tensor& tensor, Dispatch&& dispatch) {
    for (const Shard& shard : tensor.shards) {
        if (&shard != tensor.shards.data()) to.cmd.barrier();
        dispatch(shard);
    }
}

} // namespace auspex
