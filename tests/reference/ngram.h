// What shared/propose_args.h says, from the definition: counts of every context in maps, suffixes compared one by one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace auspex::reference {

struct Proposal {
    std::vector<uint32_t> drafts;
    uint32_t match_len = 0;
    bool operator==(const Proposal&) const = default;
};

Proposal propose_ngram(std::span<const uint32_t> text, uint32_t ngram_max, uint32_t max_drafts);
Proposal propose_lookup(std::span<const uint32_t> text, uint32_t ngram_max, uint32_t max_drafts);

} // namespace auspex::reference
