# Of the transforms; transforms_test.cpp says what each one is.

# penalties of the target only: a draft's logits lie K rows apart
auspex_fault(1 edit_logits
    [[bool penalises = repeat != 1.0 || presence != 0.0 || frequency != 0.0;]]
    [[bool penalises = args.logits_step == 1u && (repeat != 1.0 || presence != 0.0 || frequency != 0.0);]])
# the context does not grow with the drafts
auspex_fault(2 edit_logits [[parent != kNoRow; ++i)]] [[i > kMaxPath; ++i)]])
# the draft's distribution as it was before truncation
auspex_fault(1 "vocab_partials;vocab_partials.subgroup"
    [[largest = lane_max(largest);]]
    [[largest = lane_max(largest);
        if (args.of_draft != 0u) cut = kKeepAll;]])

# Of drafts into the target's cache; self_draft_test.cpp has them.
# the target's pass begins at start + K: the drafts' own rows stay
auspex_fault(1 rows [[live && node <= k);]] [[live && node == k);]])
# the target's pass leaves the rows of its drafts' ancestors as they are
auspex_fault(2 rows
    [[position_of(start, node), start, parent, live && node <= k);]]
    [[position_of(start, node), start, parent, live && node <= k);
            if (node < k) target_rows[row_of(args.draft_len, b, node)].kv_index = start + args.draft_len;]])
# rows of rejected drafts count as the text's
auspex_fault(1 accept_commit [[state[slot].target_len = start + emitted;]] [[state[slot].target_len = start + max(emitted, k);]])
# a draft of the copy's is tested as if the target had drawn it: q from the wrong weights
auspex_fault(1 accept_test
    [[draft_p = probability(draft_logits[draft_row * args.draft_vocab + token], token, scale, draft_choices[draft_row]);]]
    [[draft_p = probability(target_logits[(row0 + accepted) * args.vocab + token], token, scale, target_choices[row0 + accepted]);]])

# Of drafts by x in 8 bits; int8_drafts_test.cpp has it.
auspex_fault(1 gate_up.quant.int8.subgroup [[= swiglu(gate, up);]] [[= 0.0;]])
