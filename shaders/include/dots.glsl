// What the mat-vec family shares. One team of LANES invocations computes OUTS outputs for ROWS rows: lane l owns the steps
// l, l + LANES, … of a weight row whatever the number of rows, so a row's bits never depend on its company.
// Grid: x, y fold the output groups, z counts tiles of ROWS rows. OUTS is a power of two.
// NORM: x goes through an RMSNorm first (Zhang and Sennrich 2019, equation 4), whose scale multiplies the finished sum, so
// that nothing waits for the mean of squares: every team finds it on its way through x. Unless the includer's constant PREPARED
// says that prenorm.comp has done all that.
// AHEAD: steps whose weights a lane asks for before it uses the first, so that enough of them are on their way; sums are in the
// same order whatever it is.
// STAGED: the workgroup reads the x of these steps together, in order, and its teams take it from shared memory. A lane's own x lies
// 32 bytes from its neighbour's, of blocks 128: a load of 32 lanes that way takes up to 32 turns of an L1 cache.
// INT8_X: what goes through shared memory is x rounded to 8 bits (int8_x.glsl, dot_int8.glsl). Of blocks; STAGED is 1.
// UNROLLED: row and output counts are fixed at build time and unrolled there, for compilers that would not.
// Include after the push constants `args`, which begin with MATVEC_MEMBERS; then dot_rows.glsl inside main().
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
#ifdef UNROLLED
const uint LANES = 8; // else loops over what a lane holds would stay
#else
layout(constant_id = 1) const uint LANES = 8;
#endif
layout(constant_id = 2) const uint TEAMS = 1;
layout(constant_id = 3) const uint WEIGHT_LAYOUT = kFormatBf16;
#ifdef UNROLLED
const int ROWS = UNROLLED_ROWS;
const int OUTS = UNROLLED_OUTS;
const int AHEAD = 1; // llvmpipe's lanes wait for no memory
const uint STAGED = 0u;
#else
layout(constant_id = 4) const int ROWS = 1;
layout(constant_id = 5) const int OUTS = 4;
layout(constant_id = 6) const int AHEAD = 1;
layout(constant_id = 7) const uint STAGED = 0; // 1: x comes through shared memory
#endif
#define WEIGHT_BINDING kMatvecWeight
#define AT_ONCE 4
#include "include/reduce.glsl"
#include "include/weight.glsl"

layout(std430, binding = kMatvecX) readonly buffer X { WIDE_VEC x[]; };
TEXEL_VECS(kTexelVecs + kMatvecX, x_texels)
vec4 x_vec(uint at) { return uintBitsToFloat(FETCH_VEC(x, x_texels, at)); }
// Where a row of the pass begins in x, in vec4; those after the last are the last.
uint x_begin(uint row) { return (args.x_first_row + min(row, args.n_rows - 1u) * args.x_row_step) * args.x_row_stride; }
#ifndef UNROLLED
const uint kQuads = 2u * kOctets; // vec4 of x of a step
const uint kTurnSteps = LANES * uint(AHEAD); // of a row, that a team takes before it asks for more
#endif
#ifndef INT8_X
#ifndef UNROLLED
const uint kStagedPitch = kTurnSteps + 1u; // from quad to quad of a step: the quads of one step and those of neighbours lie in different banks
#ifdef NORM
const uint kStagedRows = uint(ROWS) + 1u; // the norm's weights are the last
#else
const uint kStagedRows = uint(ROWS);
#endif
shared vec4 staged[STAGED != 0u ? kStagedRows * kQuads * kStagedPitch : 1u]; // (row, quad of a step, step)
uint staged_place(uint row, uint quad, uint step) { return (row * kQuads + quad) * kStagedPitch + step; }
#define X_QUAD(row, fetched, quad) (STAGED != 0u ? staged[staged_place(row, quad, ahead * LANES + lane)] : fetched)
#else
#define X_QUAD(row, fetched, quad) fetched
#endif
#endif
#ifdef NORM
#include "include/norm_scale.glsl"
layout(std430, binding = kMatvecNorm) readonly buffer Norm { WIDE_VEC norm[]; };
TEXEL_VECS(kTexelVecs + kMatvecNorm, norm_texels)
layout(std430, binding = kMatvecNorm) readonly buffer Scales { float norm_scales[]; };
vec4 norm_vec(uint at) { return uintBitsToFloat(FETCH_VEC(norm, norm_texels, at)); }
#endif
#ifdef INT8_X
#include "include/int8_x.glsl"
#endif

// Outputs that a lane holds after the reduction.
const int kHeld = uint(OUTS) > LANES ? OUTS / int(LANES) : 1;
const uint kTeamSums = uint(OUTS * ROWS); // (output, row)
#ifdef PAIRS_OUT
// (team, output, row), where a lane holds one output of every row: its lanes share the pairs, in a loop, because compilers take long
// over 16 copies of an emit_pair. Where it holds more, as llvmpipe's, they are unrolled, which is faster.
shared float sums[kHeld > 1 ? 1u : TEAMS * kTeamSums];
#endif

// One level of the reduction tree. While a team holds several outputs, each half of the lanes keeps half of them, so that
// one exchange serves two outputs; the additions are those of lane_sum.
#define KEPT_SUM(i) (upper ? acc[i + n_kept] : acc[i])
#define GIVEN_SUM(i) (upper ? acc[i] : acc[i + n_kept])
#define WHOLE_SUM(i) acc[i]
#define SQUARES(i) squares[i]
#define SQUARES_LEVEL(distance) SUM_EACH(ROWS, squares, SQUARES, SQUARES, distance)
#define REDUCE_LEVEL(level)                                                                                            \
    if ((LANES >> level) >= 2u) {                                                                                      \
        uint distance = LANES >> (level + 1);                                                                          \
        if ((OUTS >> level) >= 2) {                                                                                    \
            bool upper = (lane & distance) != 0u;                                                                      \
            const int n_kept = (OUTS >> (level + 1)) * ROWS;                                                           \
            SUM_EACH(n_kept, acc, KEPT_SUM, GIVEN_SUM, distance)                                                       \
            if (upper) first_out += OUTS >> (level + 1);                                                               \
        } else {                                                                                                       \
            SUM_EACH(ROWS, acc, WHOLE_SUM, WHOLE_SUM, distance)                                                        \
            writes = writes && (lane & distance) == 0u;                                                                \
        }                                                                                                              \
    }
