// One turn of the wheel, recorded: rows, K draft steps, one target pass, accept, propose. Everything that varies between rounds
// lies in buffers, so a recording is used for as long as K and the batch bucket stay.
#pragma once

#include "round_state/round_pass.h"

namespace auspex {

// The host's commands take effect; first in every turn.
void record_commands(Recorder& to, const RoundModels& models, const RoundBuffers& buffers, const TurnBuffers& turn);

void record_round(Recorder& to, const RoundPass& round);

} // namespace auspex
