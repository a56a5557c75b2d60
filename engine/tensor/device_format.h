// How rows of weights lie on the device, and packing them so: shaders/shared/weight_format.h as C++ sees it.
#pragma once

#include "base/checked.h"
#include "tensor/dtype.h"

#include <cstddef>
#include <span>

namespace auspex {

// Widths of activations that meet weights: a multiple of every step.
constexpr uint32_t padded_width(uint32_t width) {
    return round_up<uint32_t>(width, 8);
}

// Steps of a row: 8 elements, 32 of the quantised types.
uint32_t device_steps(DType dtype, uint32_t cols);
// A multiple of 16.
uint64_t device_row_bytes(DType dtype, uint32_t cols);
// Whether a shard of so many rows can lie in tiles, and how many rows a tile has.
bool fits_tiles(DType dtype, uint32_t rows, uint32_t cols);
extern const uint32_t kRowsPerTile;
// What shaders are told of a tensor.
uint32_t device_layout(DType dtype, bool tiled);
// Whole rows, or tiles, from a file's bytes to the device's; the values are the same. cols is a multiple of the block.
void pack_rows(DType dtype, uint32_t cols, bool tiled, std::span<const std::byte> file_rows, std::span<std::byte> device_rows);

} // namespace auspex
