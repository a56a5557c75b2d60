// table_logits: a "model" that knows only the last token: logits of row r = tables[slot % n_tables][token].
#ifndef TABLE_LOGITS_ARGS_H
#define TABLE_LOGITS_ARGS_H
#include "shared/row.h"
SHARED_BEGIN

SHARED_CONST uint kTableTables = 0u; // (n_tables, vocab, vocab) f32
SHARED_CONST uint kTableRows = 1u;   // rows of a pass
SHARED_CONST uint kTableLogits = 2u; // rows of (vocab) f32

struct TableLogitsArgs {
    uint n_rows;
    uint vocab;
    uint n_tables;
    uint row_first; // row r reads rows[row_first + r · row_step]
    uint row_step;
    uint logits_first; // and writes row logits_first + r · logits_step
    uint logits_step;
};

SHARED_END
#endif
