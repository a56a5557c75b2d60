# Of the index of a text; text_index_test.cpp. It forgets one in eight.
auspex_fault(1 accept_commit.searches [[        index[at] = now;]] [[        if ((at & 7u) != 0u) index[at] = now;]])

# Of log-probabilities; logprobs_test.cpp says what each one is.
auspex_fault(1 "logprobs_partials;logprobs_partials.subgroup"
    [[if (!counts[i]) continue;]]
    [[if (quad + i >= end) continue;]])
auspex_fault(2 "logprobs_partials;logprobs_partials.subgroup" [[find_next(first_rank, first_id, rank, id);]] [[find_next(first_rank, 0u, rank, id);]])
auspex_fault(1 "logprobs_rows;logprobs_rows.subgroup" [[exp(partials[row * args.n_chunks + c].max - largest)]] [[1.0]])
auspex_fault(2 "logprobs_rows;logprobs_rows.subgroup" [[if (id == other_id) logit = other;]] [[logit = other;]])
auspex_fault(1 logprobs_keep [[parent != kNoRow; ++i)]] [[i > kMaxPath; ++i)]])
auspex_fault(2 logprobs_keep [[i - args.history_stride < n_biases]] [[i < n_biases]])
auspex_fault(1 logprobs_chosen [[place == kNowhere ?]] [[place != 0xfffffffeu ?]])
auspex_fault(2 logprobs_chosen [[i <= position; i += THREADS)]] [[i < position; i += THREADS)]])
