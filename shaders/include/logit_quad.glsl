// Four logits of a row, asked for together.

// Logits quad … quad + 3; those from `end` on are the last. What decides on branches has to follow from all four first, else
// compilers move each load behind the branches of the one before.
#define LOGIT_QUAD(logits, row_begin, quad, end)                                                                       \
    vec4(logits[(row_begin) + min((quad), (end) - 1u)], logits[(row_begin) + min((quad) + 1u, (end) - 1u)],            \
         logits[(row_begin) + min((quad) + 2u, (end) - 1u)], logits[(row_begin) + min((quad) + 3u, (end) - 1u)])
