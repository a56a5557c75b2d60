// Blocks of quantised weights as they lie in files, to f32 and back. Host only; what the device holds is
// device_format.h.
#pragma once

#include "base/status.h"
#include "tensor/dtype.h"

#include <cstddef>
#include <span>

namespace auspex {

// Decodes whole blocks (of any DType but u32) bit-exactly as gguf-py's dequantize does, but for the payload of NaNs:
// f16 scales widened, products and sums in f32 in its order. `out` holds blocks × block_elements floats; `blocks` is
// not aligned. Source: the block structures of ggml's ggml-common.h and the operations of gguf-py's quants.py.
void dequantize_blocks(DType dtype, std::span<const std::byte> blocks, std::span<float> out);

// Encodes whole blocks to f32, f16, bf16, q8_0, q4_0, q4_k or q6_k; `out` holds them. Deterministic, each block by
// itself. NaN and infinite inputs are the caller's to refuse. f16 and bf16 round to nearest even. q8_0 and q4_0 use the
// reference's rule (largest magnitude decides the scale), byte for byte; a scale beyond f16 becomes infinite. q4_k and
// q6_k minimise the squared error over a search of scales of our own, and saturate.
void quantize_blocks(DType dtype, std::span<const float> in, std::span<std::byte> out);

constexpr bool can_quantize_to(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::q8_0 ||
           dtype == DType::q4_0 || dtype == DType::q4_k || dtype == DType::q6_k;
}

} // namespace auspex
