// The only code that touches what host and GPU share.
#include "round_state/turn_buffers.h"

#include <algorithm>
#include <cstring>

namespace auspex {

static_assert(sizeof(ReplayRow) == 8);

Result<TurnBuffers> TurnBuffers::create(MemoryPool& memory, const Sizes& sizes) {
    TurnBuffers turn;
    turn.max_commands = sizes.max_commands;
    auto make = [&](Buffer& buffer, uint64_t bytes, MemoryUse use) -> Status {
        if (bytes == 0) return ok_status();
        AUSPEX_TRY_SET(buffer, memory.create(bytes, use));
        if (buffer.mapped()) std::memset(buffer.mapped(), 0, buffer.size());
        return ok_status();
    };
    AUSPEX_TRY(make(turn.batch, sizes.max_batch * 4ull, MemoryUse::upload));
    AUSPEX_TRY(make(turn.count, 4, MemoryUse::upload));
    AUSPEX_TRY(make(turn.commands, sizes.max_commands * sizeof(gpu::SlotCommand), MemoryUse::upload));
    AUSPEX_TRY(make(turn.list, sizes.max_list * sizeof(ReplayRow), MemoryUse::upload));
    AUSPEX_TRY(make(turn.records, sizes.max_batch * sizeof(gpu::RoundRecord), MemoryUse::readback));
    AUSPEX_TRY(make(turn.logprobs, uint64_t{sizes.max_batch} * sizes.max_nodes * sizeof(gpu::LogprobRow), MemoryUse::readback));
    AUSPEX_TRY(make(turn.times, sizes.times_bytes, MemoryUse::readback));
    return turn;
}

void TurnBuffers::write_commands(std::span<const gpu::SlotCommand> words) {
    const uint32_t n = static_cast<uint32_t>(words.size());
    std::memcpy(count.mapped(), &n, 4);
    if (n > 0) std::memcpy(commands.mapped(), words.data(), words.size_bytes());
}

void TurnBuffers::write_batch(std::span<const uint32_t> slots, uint32_t n) {
    auto* to = reinterpret_cast<uint32_t*>(batch.mapped());
    std::fill(std::copy(slots.begin(), slots.end(), to), to + n, gpu::kNoSlot);
}

void TurnBuffers::write_list(std::span<const ReplayRow> rows, uint32_t n) {
    auto* to = reinterpret_cast<ReplayRow*>(list.mapped());
    std::fill(std::copy(rows.begin(), rows.end(), to), to + n, ReplayRow{gpu::kNoSlot, 0});
}

std::vector<gpu::RoundRecord> TurnBuffers::read_records(size_t n) const {
    std::vector<gpu::RoundRecord> read(n);
    if (n > 0) std::memcpy(read.data(), records.mapped(), n * sizeof read[0]);
    return read;
}

std::vector<gpu::LogprobRow> TurnBuffers::read_logprobs(size_t n_rows) const {
    std::vector<gpu::LogprobRow> read(n_rows);
    if (n_rows > 0) std::memcpy(read.data(), logprobs.mapped(), n_rows * sizeof read[0]);
    return read;
}

} // namespace auspex
