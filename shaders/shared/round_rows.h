// How the rows of a round lie; no other place knows. An entry of the batch has draft_len + 1 nodes: node 0 is the last token
// that is known, the others are its drafts. A node's row is in the target's pass, its logits choose the token after it, and
// what is known of that token's text goes from parent to parent.
#ifndef ROUND_ROWS_H
#define ROUND_ROWS_H
#include "row.h"
SHARED_BEGIN

SHARED_FUNCTION uint nodes_of(uint draft_len) { return draft_len + 1u; }

// Row of a node in the target's pass, and of its logits and choices. Its token is draft `node`, from 1 on.
SHARED_FUNCTION uint row_of(uint draft_len, uint entry, uint node) { return entry * nodes_of(draft_len) + node; }
// Row of the draft's logits and choices from which the drafts after `node` were taken.
SHARED_FUNCTION uint draft_row_of(uint draft_len, uint entry, uint node) { return entry * draft_len + node; }

// Here a node follows the one before it. Of node 0 nobody asks.
SHARED_FUNCTION uint parent_of(uint node) { return node - 1u; }
SHARED_FUNCTION uint position_of(uint start, uint node) { return start + node; } // start: of node 0
// Of the token that a row's logits choose.
SHARED_FUNCTION uint position_after(uint position) { return position + 1u; }

// Rows of the draft's passes lie in regions, one per pass, each at a multiple of 8 rows (768 bytes) so that it can be bound alone.
// Pass `node` evaluates that node of every entry. The first has `lead` more rows per entry, before node 0: one that catches a draft model's
// cache up, or none where the passes share the target's cache.
SHARED_FUNCTION uint draft_pass_first_row(uint batch, uint node) {
    return node == 0u ? 0u : (2u * batch + 7u) / 8u * 8u + (node - 1u) * ((batch + 7u) / 8u * 8u);
}
SHARED_FUNCTION uint draft_pass_rows_per_entry(uint lead, uint node) { return node == 0u ? 1u + lead : 1u; }
// Within its region.
SHARED_FUNCTION uint draft_pass_row(uint lead, uint entry, uint node) { return node == 0u ? (1u + lead) * entry + lead : entry; }

SHARED_END
#endif
