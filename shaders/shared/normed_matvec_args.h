// normed_matvec: matvec of what an RMSNorm makes of x. As the head of a round that needs no logits it writes per row the best
// token of each workgroup's outputs instead of the sums, for pick.
#ifndef NORMED_MATVEC_ARGS_H
#define NORMED_MATVEC_ARGS_H
#include "matvec_args.h"
#include "vocab_args.h"
SHARED_BEGIN

SHARED_CONST uint kNormedBests = 4u;      // (n_rows, n_bests) BestToken
SHARED_CONST uint kNormedState = 5u;      // (slots) SlotState, of which none is sampled but coupled
SHARED_CONST uint kNormedRows = 6u;       // Row: of row r of x the one at first_row + r · row_step

struct NormedMatvecArgs {
    MATVEC_MEMBERS
    uint first_row;
    uint row_step;
    uint first_best; // of the shard's first workgroup
    uint n_bests;    // of a row: workgroups of all shards
};

SHARED_END
#endif
