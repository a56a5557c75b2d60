// Per-device numbers: the only place that knows vendors. Bit-changing knobs follow from caps alone and make up the
// numerics id; bit-neutral ones may be chosen by timing.
#pragma once

#include "device/device_caps.h"
#include "tensor/dtype.h"

#include <string>
#include <vector>

namespace auspex {

struct Tuning {
    // Bit-changing.
    uint32_t lanes = 32;            // invocations that share one reduction; a power of two
    uint32_t attention_split = 128; // keys per attention split, a multiple of the page size
    uint32_t attention_teams = 1;   // teams of lanes that share a split's keys, a power of two, where shared memory has room for them
    bool prompt_by_rows = false;    // prompts go through the row family: CPUs have no use for another tile shape
    DeviceCaps::MatrixTile matrix;  // of the matrix units that prompts use; 0: none
    uint32_t matmul_parts = 0;      // f16 parts of an activation in prompts' products: 1, or 2 on matrix units, as good as f32; 0: f32 itself
    bool matrix_attention = true;   // prompts' attention uses them, too
    bool prompt_attention = false;  // of prompts by tiles of rows, where prompts do not go by rows; on matrix units if there are any
    uint32_t prompt_dims = 4096;    // … dimensions of a workgroup's queries without matrix units, at most: a power of two, 2048 or more

    // Bit-neutral.
    bool attention_combines = true;           // the last workgroup of attention joins the splits: no stage of its own
    uint32_t norm_stage_rows = 0;             // norms of so many rows or more are stages of their own instead of in every workgroup that reads the rows; 0: none are
    bool subgroup = false;                    // reductions by shuffles; lanes is the pinned subgroup size
    uint32_t pinned_subgroup_size = 0;        // 0: the device has one size, or shared memory is used
    bool full_subgroups = false;              // those of kernels with shuffles are required to be full
    bool wide = false;                        // the ".wide" variants: shuffles, 64-bit fetches, unrolled at build time
    bool texels = false;                      // those fetch from texel buffers instead, 128 bits at a time
    bool tiles_weights = false;               // weights lie in tiles (shared/weight_format.h), in the order in which those read
    uint32_t matvec_teams = 1;                // teams of lanes per workgroup
    uint32_t matvec_outs = 4;                 // outputs per team, a power of two, of passes of one or two rows
    uint32_t matvec_many_outs = 4;            // … of more rows
    uint32_t matvec_sums = 64;                // rows times outputs of a team at once, at most, but one output: what registers hold
    uint32_t matvec_ahead = 1;                // steps of a weight row that a lane asks for before it uses the first, at most; not where `wide`
    uint32_t matvec_many_ahead = 1;           // … in passes of more than two rows
    uint32_t matvec_least_teams = 0;          // a matrix of fewer outputs has fewer per team, 2 at least, until there are so many teams
    uint32_t matvec_staged_bytes = 0;         // of shared memory, by which a workgroup's teams get x where weights are blocks; what needs more fetches x; not where `wide`
    bool int8_drafts = false;                 // passes that only draft round x to 8 bits where weights are blocks: drafts change, and with them only texts of
                                              // rejection sampling, whose distribution does not; not where `wide`
    std::vector<uint32_t> matvec_rows;        // row counts built, ascending; larger passes run in tiles of the last
    std::vector<uint32_t> matvec_quant_rows;  // … for quantised weights
    uint32_t attention_rows = 1;              // rows of a slot that share what attention reads of K and V, at most
    uint32_t attention_dims = ~0u;            // dimensions of the query heads that do so at once, at most, or one head; not where `wide`
    uint32_t vocab_threads = 256;             // invocations per workgroup of what only counts or compares logits: 8 to 256
    bool translates_at_dispatch = false;      // the driver finishes a shader when it is first dispatched, and keeps it on disk (kernels/translator.h)
    bool copies_times = false;                // timestamps of turns come by memory: asking for them waits for what is in flight

    uint32_t matrix_rows = 32;                // rows and outputs of a subgroup on matrix units, at most; see matrix_tile_of
    uint32_t matrix_outs = 64;
    uint32_t matrix_least_groups = 0;         // a product of few rows or outputs has smaller tiles, until there are so many workgroups
    uint32_t matrix_blocks = 1;               // of 32 k that a workgroup has in shared memory at once

    bool norm_is_stage(uint32_t n_rows) const { return norm_stage_rows > 0 && n_rows >= norm_stage_rows; }
    bool prompts_use_matrices() const { return !prompt_by_rows && matrix; }
    std::string numerics_id() const;
    // The bit-neutral sizes in a few words, for people.
    std::string sizes() const;
    bool operator==(const Tuning&) const = default;
};

// cache_dtype: what prompts are read into. One of 16 bits or fewer rounds K and V as much as one f16 part rounds what they come from.
Tuning choose_tuning(const DeviceCaps& caps, DType cache_dtype = DType::f16);

// matrix_rows, matrix_outs, matrix_blocks.
struct MatrixTile {
    uint32_t rows, outs, blocks = 1;
    std::string text() const; // "32 x 64", "32 x 64 x 64": rows, outputs, and k where they are not 32
    bool operator==(const MatrixTile&) const = default;
};
// matrix_outs for weights of so many f16 parts: halved until their slabs fit into a device's shared memory.
uint32_t matrix_outs_of(const Tuning& tuning, uint32_t weight_parts, const DeviceCaps& caps);
// The tile of a product of n_rows rows by a matrix of so many outputs: of these sizes, or of halves, quarters … of them.
MatrixTile matrix_tile_of(const Tuning& tuning, uint32_t weight_parts, uint32_t n_rows, uint32_t n_outs, const DeviceCaps& caps);
// All that matrix_tile_of may give, the largest first.
std::vector<MatrixTile> matrix_tiles(const Tuning& tuning, uint32_t weight_parts, const DeviceCaps& caps);

// Whether prompts use this device's matrix units only after timing has shown that to be faster: its driver may claim units that it
// lacks. It is the one choice of timing that changes bits; it is made where it can be kept, and stays.
bool times_matrices(const DeviceCaps& caps);
// Prompts by the device's matrix units, where it has any that the kernels can use.
Tuning with_matrices(Tuning tuning, const DeviceCaps& caps);
// As the device would run prompts if it had no matrix units.
Tuning without_matrices(const Tuning& tuning, const DeviceCaps& caps);

std::string norms_text(uint32_t norm_stage_rows); // "within", "as stages"
// What timing may choose from, ascending. Everything that is not here follows from caps.
std::vector<uint32_t> outs_choices();      // of one or two rows; with 16 of them, lanes ask for two steps at most
std::vector<uint32_t> many_outs_choices(); // of more: no compiler holds 16 outputs of 8 rows in registers
std::vector<uint32_t> ahead_choices();
std::vector<uint32_t> teams_choices(const Tuning& base, const DeviceCaps& caps);
std::vector<uint32_t> norm_stage_choices(); // of norm_stage_rows: of none, of passes with drafts but for the smallest or all of them, of every pass
std::vector<uint32_t> staged_choices(const DeviceCaps& caps); // matvec_staged_bytes: none, or all that there are
std::vector<uint32_t> int8_draft_choices(const Tuning& base, const DeviceCaps& caps); // of int8_drafts: not where four products are no instruction
std::vector<uint32_t> vocab_threads_choices(const DeviceCaps& caps);
std::vector<uint32_t> attention_rows_choices();
std::vector<MatrixTile> matrix_tile_choices(const Tuning& base, const DeviceCaps& caps); // none where prompts do without matrix units
// Whether `tuning` differs from `base` (choose_tuning's) in such choices only; its row counts are some of base's, 1 among
// them or a single one.
bool may_choose(const Tuning& tuning, const Tuning& base, const DeviceCaps& caps);

} // namespace auspex
