// Element types of weights, caches and activations, and how many bytes they take in files.
#pragma once

#include <cstdint>
#include <string_view>

namespace auspex {

// Block types are GGUF's: a block is a run of elements of one row that share scales.
enum class DType : uint32_t {
    f32 = 0, f16 = 1, bf16 = 2, u32 = 3,
    q8_0 = 4, q4_0 = 5, q4_1 = 6, q5_0 = 7, q5_1 = 8,
    q2_k = 9, q3_k = 10, q4_k = 11, q5_k = 12, q6_k = 13,
};

struct DTypeInfo {
    std::string_view name;
    uint32_t block_elements; // of one row
    uint32_t block_bytes;    // in a file
    int32_t ggml_id;         // type id in GGUF files; -1: none
};

inline constexpr DTypeInfo kDtypeInfos[] = {
    {"f32", 1, 4, 0},    {"f16", 1, 2, 1},     {"bf16", 1, 2, 30},   {"u32", 1, 4, -1},
    {"q8_0", 32, 34, 8}, {"q4_0", 32, 18, 2},  {"q4_1", 32, 20, 3},  {"q5_0", 32, 22, 6},   {"q5_1", 32, 24, 7},
    {"q2_k", 256, 84, 10}, {"q3_k", 256, 110, 11}, {"q4_k", 256, 144, 12}, {"q5_k", 256, 176, 13}, {"q6_k", 256, 210, 14},
};

constexpr const DTypeInfo& dtype_info(DType dtype) { return kDtypeInfos[static_cast<uint32_t>(dtype)]; }
constexpr std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }
constexpr bool is_quantized(DType dtype) { return dtype_info(dtype).block_elements > 1; }
// Bytes of one element; not for quantised types.
constexpr uint32_t dtype_bytes(DType dtype) { return dtype_info(dtype).block_bytes; }
// Bytes of a row in a file; cols is a multiple of the block.
constexpr uint64_t file_row_bytes(DType dtype, uint64_t cols) {
    return cols / dtype_info(dtype).block_elements * dtype_info(dtype).block_bytes;
}

} // namespace auspex
