// A drafter that no product has: it says the last token again. One row and one file, as any new drafter.
#pragma once

#include "draft/drafters.h"

namespace auspex::test {

constexpr Drafter kRepeat = static_cast<Drafter>(6);
constexpr DrafterChoice kRepeatChoice = static_cast<DrafterChoice>(100);

inline void add_repeat_drafter(Drafters& table) {
    const HostDrafter ask = [](std::span<const uint32_t> tokens, uint32_t max_drafts) { return std::vector<uint32_t>(max_drafts, tokens.back()); };
    table.rows.push_back({kRepeat, "repeat", DraftNeed::host, true, DraftRows::none, ask});
    table.choices.push_back({kRepeatChoice, "repeat", "the last token again", Drafter::none, false, kRepeat, false, kRepeatChoice});
}

} // namespace auspex::test
