// Collects SlotCommands.
#include "session/slots/command_writer.h"

#include <bit>
#include <cstring>

namespace auspex {

static_assert(sizeof(gpu::SlotState) == gpu::kSlotStateWords * 4);

void CommandWriter::put(uint32_t op, uint32_t slot, uint32_t index, uint32_t value) {
    auto [at, inserted] = index_.emplace(std::array<uint32_t, 3>{op, slot, index}, words_.size());
    if (inserted) words_.push_back({op, slot, index, value});
    else words_[at->second].value = value;
}

void CommandWriter::state(uint32_t slot, const gpu::SlotState& state) {
    uint32_t words[gpu::kSlotStateWords];
    std::memcpy(words, &state, sizeof words);
    for (uint32_t i = 0; i < gpu::kSlotStateWords; ++i) state_word(slot, i, words[i]);
}

void CommandWriter::history(uint32_t slot, uint32_t first_position, std::span<const uint32_t> tokens) {
    for (uint32_t i = 0; i < tokens.size(); ++i) put(gpu::kCommandHistory, slot, first_position + i, tokens[i]);
}

void CommandWriter::biases(uint32_t slot, std::span<const TokenBias> biases) {
    for (uint32_t i = 0; i < biases.size(); ++i) {
        put(gpu::kCommandBias, slot, 2 * i, biases[i].token);
        put(gpu::kCommandBias, slot, 2 * i + 1, std::bit_cast<uint32_t>(biases[i].bias));
    }
}

void CommandWriter::pages(ModelRole of, uint32_t slot, std::span<const PageChange> changes) {
    const uint32_t op = of == ModelRole::target ? gpu::kCommandTargetPage : gpu::kCommandDraftPage;
    for (const PageChange& change : changes) put(op, slot, change.logical_page, change.page);
}

void CommandWriter::flush(TurnBuffers& turn) {
    turn.write_commands(words_);
    words_.clear();
    index_.clear();
}

} // namespace auspex
