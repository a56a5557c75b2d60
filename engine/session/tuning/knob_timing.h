// Times what bit-neutral sizes of the mat-vec family, of attention, of prompts on matrix units and of counting over the vocabulary
// cost on a device, and chooses those that clearly win. Leaves to its caller what is allowed and how long it may take. Waits.
#pragma once

#include "kernels/rope_append.h"

#include <functional>
#include <string>
#include <vector>

namespace auspex {

// A matrix like those of the models: (rows, cols), of so many bytes on the device.
struct MatrixShape {
    DType dtype = DType::bf16;
    uint32_t rows = 0, cols = 0;
    bool is_behind_norm = false;
};

struct KnobTime {
    std::string knob, candidate;
    double ms = -1;         // least; of mat-vecs of 1 row and of 5 by every matrix, or as the knob says. < 0: no time was left for it
    bool is_default = false, is_chosen = false;
};

struct TimingRequest {
    std::vector<MatrixShape> matrices;
    uint32_t vocab = 0;
    AttentionShape attention = {};     // heads and cache of the target; pages are the timer's. n_heads 0: attention is not timed
    bool may_take_matrices = false;    // for prompts, where those change bits: see times_matrices
    bool may_change_drafts = false;    // only who asked: with rejection a seed's text follows from its drafts
    uint64_t deadline_ns = 0;          // of now_ns(); what is not measured by then stays as it is
    KernelLibrary* kernels = nullptr;  // those of its tuning are taken from it instead of compiled again; may be null
    std::function<void(KernelLibrary&)> adjust_kernels; // tests; may be empty
    std::function<void(float)> progress;                // 0 to 1 of the knobs; may be empty
};

struct TimedKnobs {
    Tuning tuning;
    std::vector<KnobTime> times; // knob by knob
    bool complete = true;        // false: the deadline came first
};

// unsupported without timestamps. keep_rows: which row counts are built is not to be chosen.
Result<TimedKnobs> time_knobs(Device& device, const Tuning& base, bool keep_rows, const TimingRequest& request);

} // namespace auspex
