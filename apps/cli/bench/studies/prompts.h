// Short texts of different kinds, for what drafters are good and bad at. All fit a context of 512 tokens of 4096.
#pragma once

#include "cli/common/engine/client.h"

#include <span>

namespace auspex::cli {

struct PromptKind {
    const char* name;
    const char* text; // null: random tokens
    bool is_probe;    // among the few that the artificial pairs are tried on
};

std::span<const PromptKind> prompt_kinds();
// The text's tokens, with BOS as the model asks; of random tokens always the same.
std::vector<uint32_t> tokens_of(Client& client, const PromptKind& kind);

} // namespace auspex::cli
