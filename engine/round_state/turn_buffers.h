// What host and GPU exchange in one turn: who takes part, what the GPU is told, what it reports. Written between turns, never during one.
#pragma once

#include "device/buffer.h"
#include "shared/logprobs_args.h"

#include <span>
#include <vector>

namespace auspex {

// A known token to be read into a cache.
struct ReplayRow {
    uint32_t slot; // kNoSlot pads
    uint32_t position;
};

struct TurnBuffers {
    Buffer batch;    // (max_batch) uint: slot of each entry, kNoSlot pads
    Buffer count;    // 1 uint: number of commands
    Buffer commands; // (max_commands) SlotCommand
    Buffer list;     // (max_list) ReplayRow
    Buffer records;  // (max_batch) RoundRecord
    Buffer logprobs; // (max_batch, nodes) LogprobRow
    Buffer times;    // (most regions of a turn, 2) uint64: begin and end tick, where Tuning::copies_times; else empty
    uint32_t max_commands = 0;

    struct Sizes {
        uint32_t max_commands, max_list;
        uint32_t max_batch = 0;   // 0: no rounds
        uint32_t max_nodes = 0;   // of rounds, rows of an entry in the target's pass
        uint64_t times_bytes = 0; // 0: none
    };
    static Result<TurnBuffers> create(MemoryPool& memory, const Sizes& sizes);

    void write_commands(std::span<const gpu::SlotCommand> commands);
    // The rest of `n` entries or rows is padded.
    void write_batch(std::span<const uint32_t> slots, uint32_t n);
    void write_list(std::span<const ReplayRow> rows, uint32_t n);
    std::vector<gpu::RoundRecord> read_records(size_t n) const;
    std::vector<gpu::LogprobRow> read_logprobs(size_t n_rows) const;
};

} // namespace auspex
