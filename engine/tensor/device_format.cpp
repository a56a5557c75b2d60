// Packs rows of weights for the device. Every format is read as 32 codes a step, split into low and high bits, and written
// the one way that shaders read (shared/weight_format.h).
#include "tensor/device_format.h"

#include "shared/weight_format.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace auspex {

namespace {

using namespace gpu; // the macros of weight_format.h name its constants

static_assert(gpu::kFormatF32 == static_cast<uint32_t>(DType::f32) && gpu::kFormatF16 == static_cast<uint32_t>(DType::f16) &&
              gpu::kFormatBf16 == static_cast<uint32_t>(DType::bf16) && gpu::kFormatQ8_0 == static_cast<uint32_t>(DType::q8_0) &&
              gpu::kFormatQ4_0 == static_cast<uint32_t>(DType::q4_0) && gpu::kFormatQ4_1 == static_cast<uint32_t>(DType::q4_1) &&
              gpu::kFormatQ5_0 == static_cast<uint32_t>(DType::q5_0) && gpu::kFormatQ5_1 == static_cast<uint32_t>(DType::q5_1) &&
              gpu::kFormatQ2K == static_cast<uint32_t>(DType::q2_k) && gpu::kFormatQ3K == static_cast<uint32_t>(DType::q3_k) &&
              gpu::kFormatQ4K == static_cast<uint32_t>(DType::q4_k) && gpu::kFormatQ5K == static_cast<uint32_t>(DType::q5_k) &&
              gpu::kFormatQ6K == static_cast<uint32_t>(DType::q6_k));
static_assert(16 * STEP_VECTORS(kFormatF32) == 8 * dtype_bytes(DType::f32) && 16 * STEP_VECTORS(kFormatF16) == 8 * dtype_bytes(DType::f16) &&
              16 * STEP_VECTORS(kFormatBf16) == 8 * dtype_bytes(DType::bf16));

using Codes = std::array<uint8_t, 32>; // one step

uint32_t word(const uint8_t* at) {
    uint32_t value;
    std::memcpy(&value, at, 4);
    return value;
}

void put(std::byte* at, uint32_t value) {
    std::memcpy(at, &value, 4);
}

// Where the planes of one device row begin.
struct Planes {
    std::byte *low, *high, *scales;
};

// Bits 0…1 of codes 0…15 in one word: byte i, bits 2c, is code 4c + i.
uint32_t two_bits(const uint8_t* codes) {
    return word(codes) | word(codes + 4) << 2 | word(codes + 8) << 4 | word(codes + 12) << 6;
}

template <DType type> void put_codes(const Planes& to, uint32_t step, const Codes& low, const Codes& high) {
    constexpr uint32_t format = static_cast<uint32_t>(type);
    std::byte* out = to.low + size_t{step} * LOW_BITS(format) * 4;
    if constexpr (LOW_BITS(format) == 8) {
        std::memcpy(out, low.data(), 32);
    } else if constexpr (LOW_BITS(format) == 4) {
        std::array<uint8_t, 16> pairs;
        for (size_t j = 0; j < 16; ++j) pairs[j] = static_cast<uint8_t>(low[j] | low[j + 16] << 4);
        std::memcpy(out, pairs.data(), 16);
    } else {
        put(out, two_bits(low.data()));
        put(out + 4, two_bits(low.data() + 16));
    }
    if constexpr (HIGH_BITS(format) == 1) {
        uint32_t bits = 0;
        for (uint32_t c = 0; c < 4; ++c) bits |= word(&high[4 * c]) << c | word(&high[16 + 4 * c]) << (4 + c);
        put(to.high + size_t{step} * 4, bits);
    } else if constexpr (HIGH_BITS(format) == 2) {
        put(to.high + size_t{step} * 8, two_bits(high.data()));
        put(to.high + size_t{step} * 8 + 4, two_bits(high.data() + 16));
    }
}

// ---- the blocks of 32, as ggml lays them out: scales first, then 5-bit types' high bits, then codes -------------------

template <DType type> void pack_small_block(const uint8_t* block, const Planes& to, uint32_t step) {
    constexpr bool pair = type == DType::q4_1 || type == DType::q5_1;
    constexpr bool five = type == DType::q5_0 || type == DType::q5_1;
    std::memcpy(to.scales + size_t{step} * (pair ? 4 : 2), block, pair ? 4 : 2);
    const uint8_t* codes = block + (pair ? 4 : 2) + (five ? 4 : 0);
    Codes low{}, high{};
    for (size_t j = 0; j < 32; ++j) {
        if constexpr (type == DType::q8_0) {
            low[j] = codes[j] ^ 0x80; // signed to the distance from -128
        } else {
            low[j] = j < 16 ? codes[j] & 15 : codes[j - 16] >> 4;
        }
        if constexpr (five) high[j] = word(codes - 4) >> j & 1;
    }
    put_codes<type>(to, step, low, high);
}

// ---- the blocks of 256 --------------------------------------------------------------------------------------------

// q4_k and q5_k: 12 bytes with eight 6-bit scales and eight 6-bit mins.
void pack_packed_scales(const uint8_t* block, std::byte* out) {
    const uint8_t* from = block + 4;
    uint32_t scale_low = 0, min_low = 0, upper = 0;
    for (uint32_t s = 0; s < 8; ++s) {
        const uint32_t scale = s < 4 ? from[s] & 63u : (from[s + 4] & 15u) | (from[s - 4] >> 6) << 4;
        const uint32_t least = s < 4 ? from[s + 4] & 63u : (from[s + 4] >> 4) | (from[s] >> 6) << 4;
        scale_low |= (scale & 15u) << (4 * s);
        min_low |= (least & 15u) << (4 * s);
        upper |= (scale >> 4) << (2 * s) | (least >> 4) << (16 + 2 * s);
    }
    std::memcpy(out, block, 4); // d, dmin
    put(out + 4, scale_low);
    put(out + 8, min_low);
    put(out + 12, upper);
}

// q3_k: 12 bytes with sixteen 6-bit scales, 32 above their value; out come signed bytes.
void unpack_q3_scales(const uint8_t* from, uint8_t out[16]) {
    for (uint32_t s = 0; s < 16; ++s) {
        const uint32_t low = s < 8 ? from[s] & 15u : from[s - 8] >> 4u;
        const uint32_t high = from[8 + s % 4] >> (2 * (s / 4)) & 3u;
        out[s] = static_cast<uint8_t>((low | high << 4) - 32u);
    }
}

template <DType type> void pack_large_scales(const uint8_t* block, std::byte* out) {
    if constexpr (type == DType::q4_k || type == DType::q5_k) {
        pack_packed_scales(block, out);
    } else {
        uint8_t head[20] = {};
        if constexpr (type == DType::q6_k) { // 128 low, 64 high, 16 scales, d
            std::memcpy(head, block + 208, 2);
            std::memcpy(head + 4, block + 192, 16);
        } else if constexpr (type == DType::q3_k) { // 32 high, 64 low, 12 scales, d
            std::memcpy(head, block + 108, 2);
            unpack_q3_scales(block + 96, head + 4);
        } else { // q2_k: 16 scales, 64 low, d, dmin
            std::memcpy(head, block + 80, 4);
            std::memcpy(head + 4, block, 16);
        }
        std::memcpy(out, head, 20);
    }
}

// Step s of a block of 256.
template <DType type> void unpack_large_step(const uint8_t* block, uint32_t s, Codes& low, Codes& high) {
    for (size_t j = 0; j < 32; ++j) {
        if constexpr (type == DType::q4_k || type == DType::q5_k) {
            const uint8_t* codes = block + (type == DType::q4_k ? 16 : 48) + 32 * (s / 2);
            low[j] = codes[j] >> (4 * (s & 1)) & 15;
            if constexpr (type == DType::q5_k) high[j] = block[16 + j] >> s & 1;
        } else if constexpr (type == DType::q6_k) {
            const uint32_t half = s / 4, quarter = s % 4;
            low[j] = block[64 * half + 32 * (quarter & 1) + j] >> (4 * (quarter >> 1)) & 15;
            high[j] = block[128 + 32 * half + j] >> (2 * quarter) & 3;
        } else if constexpr (type == DType::q3_k) {
            low[j] = block[32 + 32 * (s / 4) + j] >> (2 * (s % 4)) & 3;
            high[j] = block[j] >> s & 1;
        } else {
            low[j] = block[16 + 32 * (s / 4) + j] >> (2 * (s % 4)) & 3;
        }
    }
}

template <DType type> void pack_row(uint32_t cols, const uint8_t* from, const Planes& to) {
    constexpr DTypeInfo info = dtype_info(type);
    for (uint32_t block = 0; block < cols / info.block_elements; ++block, from += info.block_bytes) {
        if constexpr (info.block_elements == 32) {
            pack_small_block<type>(from, to, block);
        } else {
            constexpr bool packed = type == DType::q4_k || type == DType::q5_k;
            pack_large_scales<type>(from, to.scales + size_t{block} * (packed ? 16 : 20));
            Codes low{}, high{};
            for (uint32_t s = 0; s < 8; ++s) {
                unpack_large_step<type>(from, s, low, high);
                put_codes<type>(to, 8 * block + s, low, high);
            }
        }
    }
}

void pack_quantized_row(DType type, uint32_t cols, const uint8_t* from, const Planes& to) {
    switch (type) {
    case DType::q8_0: return pack_row<DType::q8_0>(cols, from, to);
    case DType::q4_0: return pack_row<DType::q4_0>(cols, from, to);
    case DType::q4_1: return pack_row<DType::q4_1>(cols, from, to);
    case DType::q5_0: return pack_row<DType::q5_0>(cols, from, to);
    case DType::q5_1: return pack_row<DType::q5_1>(cols, from, to);
    case DType::q2_k: return pack_row<DType::q2_k>(cols, from, to);
    case DType::q3_k: return pack_row<DType::q3_k>(cols, from, to);
    case DType::q4_k: return pack_row<DType::q4_k>(cols, from, to);
    case DType::q5_k: return pack_row<DType::q5_k>(cols, from, to);
    case DType::q6_k: return pack_row<DType::q6_k>(cols, from, to);
    default: return;
    }
}

// Rows of numbers without padding: what each has of a tile is moved in one piece.
void pack_tiles(DType dtype, uint32_t cols, std::span<const std::byte> file_rows, std::span<std::byte> device_rows) {
    const uint64_t row_bytes = file_row_bytes(dtype, cols);
    const uint32_t format = static_cast<uint32_t>(dtype), row_vectors = static_cast<uint32_t>(row_bytes / 16);
    for (uint32_t row = 0; row < device_rows.size() / row_bytes; ++row)
        for (uint32_t v = 0; v < row_vectors; v += TILE_VECTORS(format))
            std::memcpy(device_rows.data() + 16ull * (TILED_ROW(format, row, row_vectors) + TILED_VECTOR(format, v)), file_rows.data() + row * row_bytes + 16ull * v,
                        16ull * TILE_VECTORS(format));
}

} // namespace

uint32_t device_steps(DType dtype, uint32_t cols) {
    return is_quantized(dtype) ? cols / 32 : padded_width(cols) / 8;
}

uint64_t device_row_bytes(DType dtype, uint32_t cols) {
    const uint32_t format = static_cast<uint32_t>(dtype), steps = device_steps(dtype, cols);
    return is_quantized(dtype) ? 16ull * QUANTIZED_VECTORS(format, steps) : 8ull * dtype_bytes(dtype) * steps;
}

const uint32_t kRowsPerTile = kTileRows;

bool fits_tiles(DType dtype, uint32_t rows, uint32_t cols) {
    return !is_quantized(dtype) && rows % kTileRows == 0 && cols % (8 * kTileSteps) == 0;
}

uint32_t device_layout(DType dtype, bool tiled) {
    return static_cast<uint32_t>(dtype) | (tiled ? kTiled : 0);
}

void pack_rows(DType dtype, uint32_t cols, bool tiled, std::span<const std::byte> file_rows, std::span<std::byte> device_rows) {
    if (tiled) return pack_tiles(dtype, cols, file_rows, device_rows);
    const uint64_t file_row = file_row_bytes(dtype, cols), row_bytes = device_row_bytes(dtype, cols);
    const uint32_t format = static_cast<uint32_t>(dtype), steps = device_steps(dtype, cols);
    std::fill(device_rows.begin(), device_rows.end(), std::byte{0});
    for (uint64_t row = 0; row < device_rows.size() / row_bytes; ++row) {
        const std::byte* from = file_rows.data() + row * file_row;
        std::byte* to = device_rows.data() + row * row_bytes;
        if (is_quantized(dtype)) {
            pack_quantized_row(dtype, cols, reinterpret_cast<const uint8_t*>(from),
                               {to, to + 16ull * HIGH_PLANE(format, steps), to + 16ull * SCALE_PLANE(format, steps)});
        } else {
            std::memcpy(to, from, file_row);
        }
    }
}

} // namespace auspex
