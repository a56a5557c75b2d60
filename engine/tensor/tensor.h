// A matrix of weights on the device, cut by rows into shards that a storage-buffer binding can hold.
#pragma once

#include "base/checked.h"
#include "device/buffer.h"
#include "tensor/dtype.h"

#include <vector>

namespace auspex {

struct Shard {
    Buffer buffer;          // (n_rows, padded_cols) dtype
    uint32_t first_row = 0; // of the tensor
    uint32_t n_rows = 0;
};

struct Tensor {
    DType dtype = DType::f32;
    uint32_t rows = 0;
    uint32_t cols = 0;
    uint32_t padded_cols = 0; // cols rounded up to 8; the padding is zero
    std::vector<Shard> shards;

    uint32_t blocks() const { return padded_cols / 8; } // of 8 elements per row
    uint64_t bytes() const { return uint64_t(rows) * padded_cols * dtype_bytes(dtype); }
};

constexpr uint32_t padded_width(uint32_t width) {
    return round_up<uint32_t>(width, 8);
}

} // namespace auspex
