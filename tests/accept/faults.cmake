# What each one breaks; which check sees it: faults_test.cpp by number, 25 not_finite_test.cpp, those of several candidates candidates_test.cpp.

# ---- the test of the drafts
# ratio inverted
auspex_fault(2 accept_test
    [[precise float scaled = uniform01(r) * (lenience * draft_p);
        if (!(scaled < target_p)) break;]]
    [[if (!(uniform01(r) * target_p < draft_p)) break;]])
# the acceptance shares its random numbers with the draft noise
auspex_fault(3 accept_test [[kPurposeAccept]] [[kPurposeDraft]])
# stale draft distribution
auspex_fault(4 accept_test
    [[uint draft_row = draft_row_of(args.draft_len, b, accepted);]]
    [[uint draft_row = draft_row_of(args.draft_len, b, accepted > 0u ? accepted - 1u : 0u);]])
# off by one row
auspex_fault(5 accept_test
    [[uint rejected_row = accepted;]]
    [[uint rejected_row = accepted < k && accepted > 0u ? accepted - 1u : accepted;]])
# the test forgets the temperature
auspex_fault(7 accept_test [[float scale = greedy ? 1.0 : 1.0 / temperature;]] [[float scale = 1.0;]])
# one uniform for all positions
auspex_fault(12 accept_test [[uint position = position_after(target_rows[row0 + accepted].position);]] [[uint position = 0u;]])
# one uniform for all slots
auspex_fault(13 accept_test [[uvec2(state[slot].seed_low, state[slot].seed_high)]] [[uvec2(0u, state[slot].seed_high)]])
# lenience in the residual alone
auspex_fault(15 accept_test [[float lenience = state[slot].lenience;]] [[float lenience = 1.0;]])
# overlap beyond the whole
auspex_fault(21 accept_test [[min(1.0, target_p / draft_p)]] [[target_p / draft_p]])
# coupled rows end in a race of their own
auspex_fault(22 accept_test [[bool is_chosen = compares;]] [[bool is_chosen = greedy;]])
# any of the largest passes
auspex_fault(24 accept_test
    [[bool passes = token == choice.best_id;]]
    [[bool passes = target_logits[(row0 + accepted) * args.vocab + token] == choice.best;]])
# comparisons with what is no number decide
auspex_fault(25 accept_test [[if (!is_drawable(target_p) || !is_drawable(draft_p)) break;]] [[]])

# ---- the race for the next token
set(races accept_race accept_race.subgroup)
# residual dropped: the correction comes from the target itself
auspex_fault(1 "${races}"
    [[precise float weight = target_p - lenience * draft_p;]]
    [[precise float weight = target_p;]])
# the correction shares its random numbers with the draft noise
auspex_fault(3 "${races}" [[kPurposeResidual]] [[kPurposeDraft]])
# no bonus: after full acceptance the last draft's row is used again
auspex_fault(6 "${races}"
    [[uint target_row = row_of(args.draft_len, b, next_row);]]
    [[uint target_row = row_of(args.draft_len, b, next_row - (!residual && plans[b].accepted_len > 0u ? 1u : 0u));]])
# the rejected proposal keeps its weight
auspex_fault(8 "${races}" [[ else if (id == draft_token) draft_p = 1.0;]] [[]])
# the draft's probabilities without its cut
auspex_fault(9 "${races}"
    [[draft_choice = draft_choices[draft_row];]]
    [[draft_choice = draft_choices[draft_row];
    draft_choice.cut_logit = kKeepAll.logit;
    draft_choice.cut_last_id = kKeepAll.last_id;]])
# the target's without its cut
auspex_fault(10 "${races}"
    [[VocabChoice target_choice = target_choices[target_row];]]
    [[VocabChoice target_choice = target_choices[target_row];
    target_choice.cut_logit = kKeepAll.logit;
    target_choice.cut_last_id = kKeepAll.last_id;]])
# the bonus takes the noise of the position after its own
auspex_fault(11 "${races}"
    [[position_of(round_slots[b].start, plans[b].accepted_len)]]
    [[position_of(round_slots[b].start, plans[b].accepted_len + (!residual && plans[b].accepted_len > 0u ? 1u : 0u))]])
# lenience in the test alone
auspex_fault(14 "${races}" [[float lenience = state[slot].lenience;]] [[float lenience = 1.0;]])
# all of the target's ties at its cut
auspex_fault(18 "${races}"
    [[VocabChoice target_choice = target_choices[target_row];]]
    [[VocabChoice target_choice = target_choices[target_row];
    target_choice.cut_last_id = kKeepAll.last_id;]])
# the residual of either side
auspex_fault(19 "${races}" [[target_p - lenience * draft_p]] [[abs(target_p - lenience * draft_p)]])
# temperature applied twice
auspex_fault(20 "${races}" [[1.0 / state[slot].temperature]] [[1.0 / (state[slot].temperature * state[slot].temperature)]])
# ids that the draft lacks take no part
auspex_fault(26 "${races}" [[float draft_p = 0.0;]] [[if (!one_hot && id >= args.draft_vocab) continue;
                float draft_p = 0.0;]])

# ---- what comes before both
# noise by row of the round instead of absolute position
auspex_fault(16 "vocab_partials;vocab_partials.subgroup"
    [[uint position = position_after(rows[at].position);]]
    [[uint position = position_after(rows[at].position - rows[at].prefix_len);]])
# a target that is not told that it is coupled
auspex_fault(23 "vocab_partials;vocab_partials.subgroup" [[(args.of_draft != 0u || coupled)]] [[args.of_draft != 0u]])
# proposed drafts are overwritten
auspex_fault(17 "pick;pick.subgroup"
    [[if (args.forward == 0u || round_slots[row].one_hot != 0u) return;]]
    [[if (args.forward == 0u) return;]])

# ---- several candidates for a position
set(candidates accept_candidates accept_candidates.subgroup)
# equal candidates count once
auspex_fault(1 "${candidates}"
    [[r = max(0.0, r - draft_probability(j, id));]]
    [[bool merged = false;
        for (uint i = 0u; i < j; ++i) merged = merged || candidates[entry.first + i].token == candidates[entry.first + j].token;
        if (merged) continue;
        r = max(0.0, r - draft_probability(j, id));]]
    [[precise float scaled = uniform01(random) * draft_p;]]
    [[precise float scaled = uniform01(random) * draft_p;
        for (uint i = 0u; i < tested; ++i)
            if (candidates[entry.first + i].token == x) r = 0.0;]])
# the residual is not normalised
auspex_fault(2 "${candidates}" [[if (j + 1u < n) r = r / sums[j];]] [[]] [[if (tested > 0u) r = r / sums[tested - 1u];]] [[]])
# one uniform for all candidates
auspex_fault(3 "${candidates}" [[kPurposeAccept, tested, 0u]] [[kPurposeAccept, 0u, 0u]])
# proposals that were not drawn keep their weight
auspex_fault(4 "${candidates}"
    [[r = max(0.0, r - draft_probability(j, id));]]
    [[if (candidates[entry.first + j].one_hot != 0u) continue;
        r = max(0.0, r - draft_probability(j, id));]])
# a row without probabilities tests its candidate
auspex_fault(5 "${candidates}" [[bool rejects = !is_drawable(draft_p);]] [[bool rejects = false;]])
