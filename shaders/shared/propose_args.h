// propose: what may follow a slot's text, found in that text, for the slots that search. Runs behind accept_commit, for the
// next round. Both searches look at a window of the text's last tokens, the last token included, and propose at most
// min(search_len, kMaxDraftLen) tokens.
//
// ngram: the contexts are the text's last ngram_max - 1 … 1 tokens. The longest one that occurs in the window with a token
//   behind it decides: the token that follows it most often; among equals the one that followed it last. What was predicted
//   joins the text (not the window) and the next token is predicted, until nothing is found. match_len: tokens of the first
//   prediction's context.
// lookup (Saxena 2023, prompt lookup decoding): the longest suffix of at most ngram_max tokens that occurs earlier in the
//   window, there the latest; what follows it is copied, and the copy goes on into itself where the text ends. match_len:
//   tokens of that suffix.
// A match_len below kFirstMatch, or below the longest that ngram_max allows, proposes nothing: in text that is new, two
// tokens match by chance once in thirty rounds, and the drafts cost more than those few that are accepted save.
#ifndef PROPOSE_ARGS_H
#define PROPOSE_ARGS_H
#include "slot_state.h"
SHARED_BEGIN

SHARED_CONST uint kProposeBatch = 0u;   // (batch) uint: slot of each entry, kNoSlot pads
SHARED_CONST uint kProposeState = 1u;   // (slots) SlotState
SHARED_CONST uint kProposeHistory = 2u; // (slots, history_stride) uint
SHARED_CONST uint kProposeRecords = 3u; // (batch) RoundRecord

SHARED_CONST uint kNgramWindow = 2048u;   // tokens; its continuations are counted in shared memory
SHARED_CONST uint kLookupWindow = 16384u; // tokens; at most 65536
SHARED_CONST uint kFirstMatch = 3u;

struct ProposeArgs {
    uint history_stride;
};

SHARED_END
#endif
