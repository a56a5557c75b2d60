// propose: what may follow a slot's text, found in that text, for the slots that search. Runs after accept_commit, for the
// next round. Both searches look at a window of the text's last tokens, the last token included, and propose at most
// min(search_len, kMaxDraftLen) tokens.
//
// ngram: the contexts are the text's last ngram_max - 1 … 1 tokens. The longest one that occurs in the window with a token
//   after it decides: the token that follows it most often; among equals the one that followed it last. What was predicted
//   joins the text (not the window) and the next token is predicted, until nothing is found. match_len: tokens of the first
//   prediction's context.
// lookup (Saxena 2023, prompt lookup decoding): the longest suffix of at most ngram_max tokens that occurs earlier in the
//   window, there the latest; what follows it is copied, and the copy goes on into itself where the text ends. match_len:
//   tokens of that suffix.
// A match_len below kFirstMatch, or below the longest that ngram_max allows, proposes nothing: in text that is new, two
// tokens match by chance once in thirty rounds, and the drafts cost more than those few that are accepted save.
//
// Which slots it is run for is accept_commit's business: it keeps an index of what each text's windows hold, and asks for no
// search that would find nothing. A text that the index does not know is searched, and read into the index meanwhile.
#ifndef PROPOSE_ARGS_H
#define PROPOSE_ARGS_H
#include "rows_args.h"
SHARED_BEGIN

SHARED_CONST uint kProposeBatch = 0u;   // (batch) uint: slot of each entry, kNoSlot pads
SHARED_CONST uint kProposeState = 1u;   // (slots) SlotState
SHARED_CONST uint kProposeHistory = 2u; // (slots, history_stride) uint
SHARED_CONST uint kProposeRecords = 3u; // (batch) RoundRecord
SHARED_CONST uint kProposeCounts = 4u;  // see kCountsSearch: its workgroups, and the batch entry of each
SHARED_CONST uint kProposeIndex = 5u;   // (slots, 1 + index_words) uint

SHARED_CONST uint kNgramWindow = 2048u;   // tokens; its continuations are counted in shared memory
SHARED_CONST uint kLookupWindow = 16384u; // tokens; at most 65536
SHARED_CONST uint kFirstMatch = 3u;

struct ProposeArgs {
    uint history_stride;
    uint index_words;
};

// Tokens in which a search looks for a match.
SHARED_FUNCTION uint search_window(uint search) { return search == kDrafterNgram ? kNgramWindow : kLookupWindow; }

// Tokens of the longest context that is looked for.
SHARED_FUNCTION uint search_limit(uint search, uint ngram_max) {
    return (ngram_max < kMaxPath ? ngram_max : kMaxPath) - (search == kDrafterNgram ? 1u : 0u);
}

// The index of a slot has a clock, which ticks with each token, and index_words times, a power of two: when an n-gram of that hash
// was last seen, of as many tokens as a first match must have. One in index_words / (tokens of the window) n-grams that the window
// does not hold passes for one that it does, and is searched for in vain.
SHARED_CONST uint kIndexWordsPerToken = 8u;
SHARED_FUNCTION uint index_words_for(uint history_stride) {
    uint words = 1u;
    while (words < kIndexWordsPerToken * (history_stride < kLookupWindow ? history_stride : kLookupWindow)) words *= 2u;
    return words;
}

SHARED_END
#endif
