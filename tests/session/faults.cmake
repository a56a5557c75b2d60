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
