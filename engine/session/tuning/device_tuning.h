// The sizes an engine runs with: those that caps give, changed by what was measured on this device, now or in an earlier
// run. Decides what is measured when, says what was found, and keeps it.
#pragma once

#include "model/checkpoint/checkpoint.h"
#include "session/tuning/knob_timing.h"

namespace auspex {

enum class TuningMode {
    off,       // nothing is measured; what an earlier run kept is used
    automatic, // the same, and what is not known yet is measured as far as that is quick; on CPUs nothing is
    full,      // everything is measured anew, but that prompts use matrix units, which changes bits, stays once it was chosen
};

// By the host's clock and with the time that compiling takes, about.
struct TuningLimits {
    double full_ms = 20'000;  // of a full pass's timing
    double once_ms = 3000;    // of what is measured unasked, where it is kept: no kernel is begun after it
    double each_time_ms = 100; // … and where it is not
};

struct TuningRequest {
    TuningMode mode = TuningMode::off;
    std::string cache_folder;             // empty: nothing is kept
    const Checkpoint* target = nullptr;
    const Checkpoint* draft = nullptr;    // null: none
    TuningLimits limits;
    std::function<void(KernelLibrary&)> adjust_kernels; // for tests with planted faults
    std::function<void(float)> progress;  // 0 to 1; may be empty
};

enum class RowCounts { not_compared, agree, differ };

struct DeviceTuning {
    Tuning tuning;
    RowCounts rows = RowCounts::not_compared; // differ: every pass runs through tiles of one row count
    std::string difference;                   // the first one that was found; "" when it is from an earlier run
    bool is_timed = false;                    // sizes were chosen by timing
    bool is_from_store = false;               // in an earlier run
    bool is_kept = false;                     // for the next run
    std::vector<KnobTime> times;              // of this run
    bool is_complete = true;                  // false: time ran out before every candidate was timed
};

// by_caps: what caps give; matrix units that fail their check are taken out of it. kernels: made with it; what it compiles here it need not compile again.
Result<DeviceTuning> tune_device(Device& device, const Tuning& by_caps, KernelLibrary& kernels, const TuningRequest& request, const Logger& log);

} // namespace auspex
