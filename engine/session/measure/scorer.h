// Known tokens through the target as if it had generated them: logits of every row, for scores. Waits; for tools.
#pragma once

#include "session/measure/errand.h"

#include <functional>
#include <span>

namespace auspex {

class Scorer {
  public:
    static constexpr uint32_t kDefaultChunk = 16; // rows of one pass; any number gives the same bits

    // slices: parts of a pass over so many rows, as turn_slices says.
    using Slices = std::function<uint32_t(uint32_t n_rows)>;
    Scorer(Errand& errand, Slices slices) : errand_(&errand), slices_(std::move(slices)) {}

    // Row i's logits, (vocab) f32, go to each_row(i, logits) in ascending order; valid during the call. The target's pages for all rows are told first.
    using EachRow = std::function<void(uint32_t row, std::span<const float> logits)>;
    Status run(std::span<const uint32_t> tokens, std::span<const PageChange> pages, uint32_t chunk, const EachRow& each_row);

  private:
    Status prepare(uint32_t chunk, size_t n_pages);
    const LlamaModel& target() const { return errand_->model(ModelRole::target); }

    Errand* errand_;
    Slices slices_;
    Buffer logits_, host_logits_; // (chunk, vocab) f32; the same, for the host
    uint32_t chunk_ = 0;
    std::unique_ptr<Recording> recording_; // of one chunk; a submission per segment
};

// log of softmax(logits)[token], in double.
double log_probability(std::span<const float> logits, uint32_t token);

} // namespace auspex
