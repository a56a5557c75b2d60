// Drafts that somebody outside the round is asked for between rounds.
#pragma once

#include "draft/drafters.h"

namespace auspex {

// As many as there are, up to the first that is no token of the vocabulary.
std::vector<uint32_t> ask_for_drafts(const HostDrafter& who, std::span<const uint32_t> tokens, uint32_t max_drafts, uint32_t vocab);

} // namespace auspex
