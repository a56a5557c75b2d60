// N-gram and prompt-lookup drafts in plain C++.
#include "reference/ngram.h"

#include "shared/propose_args.h"

#include <algorithm>
#include <map>
#include <utility>

namespace auspex::reference {

namespace {
using Tokens = std::vector<uint32_t>;

Tokens last(std::span<const uint32_t> text, size_t n) {
    text = text.last(std::min(n, text.size()));
    return {text.begin(), text.end()};
}
} // namespace

Proposal propose_ngram(std::span<const uint32_t> text, uint32_t ngram_max, uint32_t max_drafts) {
    const Tokens window = last(text, gpu::kNgramWindow);
    std::map<Tokens, std::map<uint32_t, std::pair<uint32_t, size_t>>> followers; // of a context: how often, and where last
    for (size_t at = 0; at < window.size(); ++at)
        for (size_t n = 1; n < ngram_max && n <= at; ++n) {
            auto& [count, where] = followers[last(std::span(window).first(at), n)][window[at]];
            count += 1;
            where = at;
        }
    Proposal proposal;
    Tokens grown(text.begin(), text.end());
    while (proposal.drafts.size() < max_drafts) {
        const size_t least = proposal.drafts.empty() ? std::min(gpu::kFirstMatch, ngram_max - 1) : 1;
        size_t n = std::min<size_t>(ngram_max - 1, grown.size());
        while (n >= least && !followers.contains(last(grown, n))) --n;
        if (n < least) break;
        const auto& found = followers[last(grown, n)];
        const auto best = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        if (proposal.drafts.empty()) proposal.match_len = static_cast<uint32_t>(n);
        proposal.drafts.push_back(best->first);
        grown.push_back(best->first);
    }
    return proposal;
}

Proposal propose_lookup(std::span<const uint32_t> text, uint32_t ngram_max, uint32_t max_drafts) {
    Tokens window = last(text, gpu::kLookupWindow);
    const size_t end = window.size();
    for (size_t n = std::min<size_t>(ngram_max, end); n >= std::min(gpu::kFirstMatch, ngram_max) && max_drafts > 0; --n)
        for (size_t at = end; at-- > n;) { // after the match
            if (!std::equal(window.end() - static_cast<ptrdiff_t>(n), window.end(), window.begin() + static_cast<ptrdiff_t>(at - n))) continue;
            for (size_t i = 0; i < max_drafts; ++i) window.push_back(window[at + i]);
            return {last(window, max_drafts), static_cast<uint32_t>(n)};
        }
    return {};
}

} // namespace auspex::reference
