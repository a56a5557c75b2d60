# Of rows that hang together as a tree; tree_test.cpp.

# the row before counts as parent
auspex_fault(3 edit_logits [[parent = target_rows[parent].parent;]] [[parent = parent == 0u ? kNoRow : parent - 1u;]])
# noise by the row's place in the round
auspex_fault(27 "vocab_partials;vocab_partials.subgroup" [[uint position = position_after(rows[at].position);]] [[uint position = position_after(rows[at].prefix_len + row);]])
