// The index of a slot's text (shared/propose_args.h): when an n-gram was last seen. Define INDEX_WORDS and HISTORY_STRIDE before
// including, and have buffers `index` and `history`.

uint clock_of(uint slot) { return slot * (INDEX_WORDS + 1u); }

// Where the time of the n-gram is that ends before `end`, a position not below n.
uint time_of(uint slot, uint end, uint n) {
    uint hash = 0u;
    for (uint i = 1u; i <= n; ++i) {
        hash = (hash ^ history[slot * HISTORY_STRIDE + end - i]) * 2654435761u;
        hash ^= hash >> 15;
    }
    return clock_of(slot) + 1u + (hash & INDEX_WORDS - 1u);
}
