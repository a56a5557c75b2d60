// embed: x[r] = table[token of row r], for the tokens whose table row lies in this shard.
#ifndef EMBED_ARGS_H
#define EMBED_ARGS_H
#include "row.h"
SHARED_BEGIN

SHARED_CONST uint kEmbedWeight = 0u; // (n_table_rows) rows of shared/weight_format.h
SHARED_CONST uint kEmbedRows = 1u;   // (n_rows) Row
SHARED_CONST uint kEmbedX = 2u;      // (n_rows, x_stride) f32

SHARED_CONST uint kEmbedThreads = 64u; // of a workgroup, each with an octet of a row

struct EmbedArgs {
    uint n_rows;
    uint width;         // elements
    uint table_steps;   // of a table row
    uint first_token;   // of this shard
    uint n_tokens;      // in this shard
    uint table_tokens;  // in all shards
    uint x_stride;      // floats
};

SHARED_END
#endif
