// Pauses, probes and their lengths.
#include "session/speculation/probation.h"

#include <algorithm>

namespace auspex {

namespace {

constexpr uint32_t kFirstPause = 8, kLongestPause = 256, kProbeRounds = 2; // rounds
constexpr uint32_t kGoodRun = 32; // rounds, after which earlier failures are forgotten

} // namespace

bool Probation::allows(DraftClass drafts, bool is_probe) const {
    const Pause& pause = of(drafts);
    return pause.probe_left > 0 || (pause.left == 0 && !(is_probe && pause.run > 0)); // a probe ends
}

bool Probation::drafts(DraftClass drafts, bool is_probe) {
    Pause& pause = of(drafts);
    const bool begins = is_probe && pause.run == 0;
    if (begins) pause.probe_left = kProbeRounds;
    pause.probe_left -= std::min(pause.probe_left, 1u);
    if (!is_probe) pause.left = 0; // the probe showed that they win
    if (++pause.run >= kGoodRun && !is_probe) pause.next = 0;
    return begins;
}

void Probation::rests(DraftClass drafts, bool no_longer_won) {
    Pause& pause = of(drafts);
    if (no_longer_won && pause.run > 0) {
        pause.left = pause.next = std::clamp(pause.next * 2, kFirstPause, kLongestPause);
        pause.run = 0;
    } else if (pause.left > 0) {
        pause.left -= 1;
    }
}

void Probation::accepted(DraftClass drafts) {
    Pause& pause = of(drafts);
    if (pause.next > 0) pause.probe_left = std::max(pause.probe_left, 1u);
}

} // namespace auspex
