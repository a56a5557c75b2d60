// Which rounds with drafts a group of sequences could start now, and what background threads compile so that it may start others.
#pragma once

#include "session/turns/turn_forms.h"

#include <map>

namespace auspex {

class ReadyRounds {
  public:
    ReadyRounds(TurnQueue& turns, const TurnLimits& limits) : turns_(&turns), limits_(limits) {}

    // Before the rounds are asked about that may be chosen from next.
    void begin_choice();
    // Whether a round of that form, with its drafts, needs nothing compiled, and nothing recorded while the GPU has nothing to do,
    // but where that would have been the only reason last time, too.
    bool is_ready(const RoundForm& form);
    // Lets what a group may choose from be compiled: rounds like `form`, which has the batch and the sampling, and what the draft model
    // reads before it drafts; drafts of more than 4 tokens where the last ones, of draft_len, were that long.
    Status ask_for(RoundForm form, bool by_model, bool by_others, uint32_t draft_len);

  private:
    bool draft_can_begin(); // whatever it lacks
    TurnQueue* turns_;
    TurnLimits limits_;
    struct Asked {
        RoundForm form; // without drafts
        bool by_model, by_others;
        auto operator<=>(const Asked&) const = default;
    };
    std::map<Asked, uint32_t> asked_; // up to which draft_len
    bool records_idle_ = false, refused_ = false, draft_can_begin_ = false;
};

} // namespace auspex
