// How a row of weights lies on the device, for C++ that packs it and shaders that read it.
//
// f32, f16, bf16: elements in order, rows padded with zeros to 8 elements; a step of a lane is 8 elements.
// The same in tiles, where all steps and rows come in whole ones: kTileSteps steps of each of kTileRows rows in turn, then the
// next steps of these rows. A team of 8 lanes that computes 16 outputs then reads on and on, which a CPU's prefetcher follows.
// Quantised (cols is a multiple of 32): three planes, each padded to 16 bytes; a step is 32 elements. A code has low bits
// and high bits: value = scale · (code - zero) - min, in this order of roundings. Elements 4c + i ("a") and 16 + 4c + i
// ("b") of a step make octet c, 0 ≤ c, i < 4; scales differ between a and b where a format scales 16 elements.
//   low   8 bits: byte i of word c is a, of word 4 + c is b.  4 bits: byte i of word c, a in its lower half, b in the upper.
//         2 bits: byte i of word 0 (a) and 1 (b), bits 2c and 2c + 1.
//   high  1 bit: byte i of the step's word, bit c is a, bit 4 + c is b.  2 bits: as low bits of 2.
//   scale kScalesHalf: one f16 per step.  kScalesPair: f16 scale and -min per step.
//         kScalesPacked: per 256 elements f16 d and dmin; 8 lower halves of 6-bit scales; 8 lower halves of mins; 8 upper
//         quarters of scales, 8 of mins: scale = d · s, min = dmin · m.
//         kScalesSigned: per 256 f16 d and 16 bits unused; 16 signed bytes: scale = d · s, for 16 elements each.
//         kScalesNibbles: per 256 f16 d and dmin; 16 bytes: scale = d · lower half, min = dmin · upper half.
#ifndef WEIGHT_FORMAT_H
#define WEIGHT_FORMAT_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kFormatF32 = 0u; // all equal DType
SHARED_CONST uint kFormatF16 = 1u;
SHARED_CONST uint kFormatBf16 = 2u;
SHARED_CONST uint kFormatQ8_0 = 4u;
SHARED_CONST uint kFormatQ4_0 = 5u;
SHARED_CONST uint kFormatQ4_1 = 6u;
SHARED_CONST uint kFormatQ5_0 = 7u;
SHARED_CONST uint kFormatQ5_1 = 8u;
SHARED_CONST uint kFormatQ2K = 9u;
SHARED_CONST uint kFormatQ3K = 10u;
SHARED_CONST uint kFormatQ4K = 11u;
SHARED_CONST uint kFormatQ5K = 12u;
SHARED_CONST uint kFormatQ6K = 13u;

// What a specialisation constant says of a tensor: its format, and kTiled if it lies in tiles.
SHARED_CONST uint kFormatMask = 15u;
SHARED_CONST uint kTiled = 16u;
SHARED_CONST uint kTileRows = 16u;
SHARED_CONST uint kTileSteps = 8u;

SHARED_CONST uint kScalesHalf = 0u;
SHARED_CONST uint kScalesPair = 1u;
SHARED_CONST uint kScalesPacked = 2u;
SHARED_CONST uint kScalesSigned = 3u;
SHARED_CONST uint kScalesNibbles = 4u;

// As macros, so that a shader's format, a specialization constant, makes constants of them: functions of it would leave their
// branches in every place that they are called from, and drivers pay for those at each start.
// Bits of a code in each plane, which are also words of a step.
#define LOW_BITS(format) ((format) == kFormatQ8_0 ? 8u : (format) == kFormatQ2K || (format) == kFormatQ3K ? 2u : 4u)
#define HIGH_BITS(format)                                                                                              \
    ((format) == kFormatQ6K ? 2u                                                                                       \
     : (format) == kFormatQ5_0 || (format) == kFormatQ5_1 || (format) == kFormatQ5K || (format) == kFormatQ3K ? 1u : 0u)
#define SCALE_KIND(format)                                                                                             \
    ((format) == kFormatQ4_1 || (format) == kFormatQ5_1  ? kScalesPair                                                 \
     : (format) == kFormatQ4K || (format) == kFormatQ5K ? kScalesPacked                                                \
     : (format) == kFormatQ6K || (format) == kFormatQ3K ? kScalesSigned                                                \
     : (format) == kFormatQ2K                           ? kScalesNibbles                                               \
                                                        : kScalesHalf)
// The code of value 0 in formats without min, else 0.
#define ZERO_CODE(format)                                                                                              \
    ((format) == kFormatQ8_0 ? 128u : (format) == kFormatQ6K ? 32u : (format) == kFormatQ5_0 ? 16u                     \
     : (format) == kFormatQ4_0 ? 8u : (format) == kFormatQ3K ? 4u : 0u)

// Words of scales of eight steps.
#define SCALE_WORDS_OF_8(format)                                                                                       \
    ((format) == kFormatQ4_1 || (format) == kFormatQ5_1                          ? 8u                                  \
     : (format) == kFormatQ6K || (format) == kFormatQ3K || (format) == kFormatQ2K ? 5u : 4u)
#define SCALE_WORDS(format, steps) (((steps) * SCALE_WORDS_OF_8(format) + 7u) / 8u)
// 16 bytes of a step of numbers.
#define STEP_VECTORS(format) ((format) == kFormatF32 ? 2u : 1u)
// In tiles: where a row of `row_vectors` times 16 bytes begins, and where 16 bytes of it lie from there.
#define TILE_VECTORS(format) (kTileSteps * STEP_VECTORS(format))
#define TILED_ROW(format, row, row_vectors)                                                                            \
    (((row) - (row) % kTileRows) * (row_vectors) + (row) % kTileRows * TILE_VECTORS(format))
#define TILED_VECTOR(format, vector)                                                                                   \
    (((vector) - (vector) % TILE_VECTORS(format)) * kTileRows + (vector) % TILE_VECTORS(format))
// Where the planes of a quantised row begin and where it ends, in 16 bytes.
#define HIGH_PLANE(format, steps) (((steps) * LOW_BITS(format) + 3u) / 4u)
#define SCALE_PLANE(format, steps) (HIGH_PLANE(format, steps) + ((steps) * HIGH_BITS(format) + 3u) / 4u)
#define QUANTIZED_VECTORS(format, steps) (SCALE_PLANE(format, steps) + (SCALE_WORDS(format, steps) + 3u) / 4u)

SHARED_END
#endif
