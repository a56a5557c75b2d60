// The host's words to the GPU for one turn. No word is written twice: a later value replaces an earlier one.
#pragma once

#include "round_state/round_pass.h"

#include <map>
#include <span>

namespace auspex {

class CommandWriter {
  public:
    explicit CommandWriter(uint32_t capacity) : capacity_(capacity) {}

    void state_word(uint32_t slot, uint32_t word, uint32_t value) { put(gpu::kCommandState, slot, word, value); }
    void state(uint32_t slot, const gpu::SlotState& state);
    void history(uint32_t slot, uint32_t first_position, std::span<const uint32_t> tokens);
    void biases(uint32_t slot, std::span<const TokenBias> biases);
    void pages(ModelRole of, uint32_t slot, std::span<const PageChange> changes);

    uint32_t room() const { return capacity_ - static_cast<uint32_t>(words_.size()); }
    // Hands everything over to the turn's buffers and starts anew.
    void flush(TurnBuffers& turn);

  private:
    void put(uint32_t op, uint32_t slot, uint32_t index, uint32_t value);
    uint32_t capacity_;
    std::vector<gpu::SlotCommand> words_;
    std::map<std::array<uint32_t, 3>, size_t> index_; // (op, slot, index) → place in words_
};

// Index of a member of SlotState in 4-byte words.
#define AUSPEX_STATE_WORD(member) static_cast<uint32_t>(offsetof(::auspex::gpu::SlotState, member) / 4)

} // namespace auspex
