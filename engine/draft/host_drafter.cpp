// Whoever drafts may answer anything.
#include "draft/host_drafter.h"

#include <algorithm>

namespace auspex {

std::vector<uint32_t> ask_for_drafts(const HostDrafter& who, std::span<const uint32_t> tokens, uint32_t max_drafts, uint32_t vocab) {
    std::vector<uint32_t> drafts = who(tokens, max_drafts);
    if (drafts.size() > max_drafts) drafts.resize(max_drafts);
    drafts.erase(std::find_if(drafts.begin(), drafts.end(), [&](uint32_t token) { return token >= vocab; }), drafts.end());
    return drafts;
}

} // namespace auspex
