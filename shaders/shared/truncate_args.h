// Truncation: top_k, then top_p over what that left, and min_p, become one Cut per row; logits stay as they are. A radix
// select over (logit descending, id ascending): keys of 32 bits, a digit of 8 bits per level.
//
//   truncate_prepare   (chunk, row)  the chunk's largest key; zeroes the row's first histograms
//   truncate_level     (chunk, row)  counts the chunk's tokens by the level's digit, those that share the digits found so far
//                                    level 0 serves both searches; then levels 1 to 3 of top_k, then those of top_p
//                                    a search is over, and its levels do nothing, once all that share the digits are kept
//   truncate_cut       (row)         last digit, ties by id, min_p
//
// Masses are softmax numerators at temperature 1 in fixed point: sums do not depend on their order.
#ifndef TRUNCATE_ARGS_H
#define TRUNCATE_ARGS_H
#include "vocab_args.h"
SHARED_BEGIN

SHARED_CONST uint kDigitBins = 256u;
SHARED_CONST uint kSelectLevels = 4u;
SHARED_CONST uint kHistogramWords = 3u * kDigitBins; // count; mass in parts: Σ low 16 bits (carried at every flush), Σ the rest
SHARED_CONST uint kHistograms = 7u;                  // level 0; levels 1 to 3 of top_k; levels 1 to 3 of top_p
SHARED_CONST uint kStepWords = 8u;
SHARED_CONST uint kSteps = 6u;                       // entering levels 1 to 3 of top_k, of top_p
SHARED_CONST uint kSearchTopK = 0u;
SHARED_CONST uint kSearchTopP = 1u;
SHARED_CONST uint kMaxTruncateVocab = (1u << 20) - 1u; // more could overflow a mass

// Scratch of a row, in words: largest keys of chunks; steps; histograms.
SHARED_FUNCTION uint truncate_scratch_words(uint n_chunks) { return n_chunks + kSteps * kStepWords + kHistograms * kHistogramWords; }

SHARED_CONST uint kTruncateLogits = 0u;     // see LOGITS_ROWS_MEMBERS
SHARED_CONST uint kTruncateState = 1u;      // (slots) SlotState
SHARED_CONST uint kTruncateRows = 2u;       // Row; those that are not live are left out
SHARED_CONST uint kTruncateScratch = 3u;    // (n_rows, truncate_scratch_words(n_chunks)) uint
SHARED_CONST uint kTruncateCuts = 4u;       // (n_rows) Cut; truncate_cut only

struct TruncateArgs {
    LOGITS_ROWS_MEMBERS
    uint search;       // of truncate_level: kSearch…
    uint level;        // of truncate_level
};

SHARED_END
#endif
