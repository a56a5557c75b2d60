// A matrix of weights on the device, cut by rows into shards that a storage-buffer binding can hold. How a row lies there is
// device_format.h's business.
#pragma once

#include "base/checked.h"
#include "device/buffer.h"
#include "tensor/device_format.h"

#include <vector>

namespace auspex {

struct Shard {
    Buffer buffer;          // (n_rows, device_row_bytes)
    uint32_t first_row = 0; // of the tensor
    uint32_t n_rows = 0;
};

struct Tensor {
    DType dtype = DType::f32;
    uint32_t rows = 0;
    uint32_t cols = 0;
    uint32_t padded_cols = 0; // cols rounded up to 8; the padding is zero
    bool tiled = false;       // in tiles of shared/weight_format.h, every shard in whole ones
    std::vector<Shard> shards;

    uint32_t steps() const { return device_steps(dtype, cols); } // of a row; what a lane owns in turn
    uint32_t layout() const { return device_layout(dtype, tiled); }
    uint64_t row_bytes() const { return device_row_bytes(dtype, cols); }
    uint64_t bytes() const { return rows * row_bytes(); }
};

} // namespace auspex
