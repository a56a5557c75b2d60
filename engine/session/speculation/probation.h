// Which classes of drafts rest, and which are tried again (rule 4 of policy.cpp). Counts rounds of one sequence.
#pragma once

#include "session/speculation/acceptance_estimator.h"

#include <array>

namespace auspex {

class Probation {
  public:
    // Whether a round may draft so. is_probe: the round would be drafted only to see what becomes of it.
    bool allows(DraftClass drafts, bool is_probe) const;
    // A round with such drafts begins. True: a probe begins with it, so what was known of these drafts is old.
    bool drafts(DraftClass drafts, bool is_probe);
    // A round without them begins. no_longer_won: they could have been drafted, and others or none were better.
    void rests(DraftClass drafts, bool no_longer_won);
    // Some were accepted: a probe of them goes on.
    void accepted(DraftClass drafts);
    bool is_probing(DraftClass drafts) const { return of(drafts).probe_left > 0; }

  private:
    struct Pause { // in rounds without such drafts
        uint32_t left = 0, next = 0;
        uint32_t probe_left = 0; // rounds of the probe under way
        uint32_t run = 0;        // rounds with such drafts up to the one before
    };
    Pause& of(DraftClass drafts) { return pauses_[static_cast<uint32_t>(drafts)]; }
    const Pause& of(DraftClass drafts) const { return pauses_[static_cast<uint32_t>(drafts)]; }
    std::array<Pause, kDraftClasses> pauses_ = {};
};

} // namespace auspex
