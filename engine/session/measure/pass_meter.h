// Times single passes of a model as rounds and prefills record them, whole and stage by stage. Waits; for tools.
#pragma once

#include "session/measure/errand.h"

namespace auspex {

struct PassRequest {
    ModelRole of = ModelRole::target;
    PassKind kind = PassKind::rows; // rows: with head and greedy choice, as the target's part of a round; prompt: layers only
    uint32_t n_rows = 1;            // at most max_rows of the model
    uint32_t depth = 0;             // positions before the first row; their keys are whatever the pages hold
    uint32_t repetitions = 5;       // after one that warms up
    bool stages = false;            // time every stage, too
};

struct StageTime {
    Region stage;
    double ms;      // of all such stages in one pass; the median over the repetitions
    uint32_t count; // of them
};

struct PassTimes {
    double gpu_ms = -1, least_ms = -1, most_ms = -1; // median and range; < 0: the device has no timestamps
    double wall_ms = 0;                              // of one pass among those submitted together
    uint32_t n_dispatches = 0, n_barriers = 0;
    uint64_t weights_bytes = 0; // read by one pass, whatever n_rows
    uint64_t cache_bytes = 0;   // keys and values read
    double flops = 0;           // of the matrices: two for each weight and row
    std::vector<StageTime> stages = {}; // in the order in which they first come; none unless asked for
};

class PassMeter {
  public:
    explicit PassMeter(Errand& errand) : errand_(&errand) {}

    // The model's pages for depth + n_rows rows are told first.
    Result<PassTimes> measure(const PassRequest& request, std::span<const PageChange> pages);

  private:
    Status prepare(const PassRequest& request, std::span<const PageChange> pages);
    // `n` passes, each in a segment of its own.
    Result<std::unique_ptr<Recording>> record(const PassRequest& request, uint32_t n, bool stages);
    void record_pass(Recorder& to, const PassRequest& request, const Pass& pass);

    Errand* errand_;
    Buffer bests_, choices_; // (n_rows, at most half the vocabulary) BestToken, (n_rows) VocabChoice
};

} // namespace auspex
