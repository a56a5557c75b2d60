// Rows into an accepted prefix and one more token: records the decision, and reads what it was.
#pragma once

#include "kernels/accept.h"
#include "round_state/round_pass.h"

namespace auspex {

// Three ops with barriers between them: the test of the drafts, the race for the next token (if any entry draws it), the commit.
void record_accept(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape);
// The same of a round, and the logits of what it said for log-probabilities.
void record_acceptance(Recorder& to, const RoundPass& round);

// Valid for records whose live_before is set.
Outcome read_outcome(const gpu::RoundRecord& record);
// Of a row that gave a token, in the form of a round with log-probabilities; n_best: how many the slot asked for. Where the row's largest
// logit is no finite number there is no distribution, and every log-probability is NaN; else only that of a logit that is NaN.
TokenLogprobs read_logprobs(const gpu::LogprobRow& row, uint32_t n_best);

} // namespace auspex
