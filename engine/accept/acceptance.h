// Rows into an accepted prefix and one more token: records the decision, and reads what it was.
#pragma once

#include "kernels/accept.h"
#include "sequence/sequence.h"
#include "shared/slot_state.h"

namespace auspex {

void record_acceptance(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape);

// Valid for records whose live_before is set.
Outcome read_outcome(const gpu::RoundRecord& record);

} // namespace auspex
