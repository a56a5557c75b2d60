// Which rows of a batch take part in the transforms of logits.
#include "shared/slot_state.h"

// n_drafts: drafts of this round that come before the token that the row gives.
bool has_row(RoundSlot entry, uint n_drafts, bool of_draft) {
    if (entry.live == 0u) return false;
    return of_draft ? entry.one_hot == 0u && n_drafts < entry.draft_len : n_drafts <= entry.draft_len;
}
