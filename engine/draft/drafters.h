// Who may draft: a row each, and what may be asked of a sequence: which of them. The planner, the C interface, traces and apps know
// drafters by these rows alone. How one drafts is in the file of its name beside this one.
#pragma once

#include "sequence/sequence.h"

#include <functional>
#include <span>

namespace auspex {

// Whose drafts a round tests; equal kDrafter… of shared/slot_state.h, and the places of auspex_sequence_stats.drafter_rounds.
enum class Drafter : uint32_t { none = 0, model = 1, ngram = 2, lookup = 3, host = 4, self = 5 };
// Whose drafts a sequence may use; equal auspex_drafter.
enum class DrafterChoice : uint32_t { automatic = 0, none = 1, model = 2, ngram = 3, lookup = 4, hybrid = 5, host = 6, self = 7 };

// What a round with drafts leaves in caches besides the rows that the target committed.
enum class DraftRows {
    none,
    own_cache,   // of its drafts in the draft model's cache, which others leave short
    overwritten, // it drafts into the target's cache, and the target's pass of the same round writes all of them again
};

enum class DraftNeed {
    nothing,
    pass,   // passes of a model within the round
    search, // of the text, after the round before
    host,   // somebody is asked between rounds, when all tokens are known
};

// From all tokens so far to at most max_drafts tokens that may follow.
using HostDrafter = std::function<std::vector<uint32_t>(std::span<const uint32_t> tokens, uint32_t max_drafts)>;

struct DrafterRow {
    Drafter drafter;
    const char* name; // in traces and reports
    DraftNeed need;
    bool one_hot;           // its drafts are proposed, not sampled: each has probability 1, whatever it was found by
    DraftRows leaves;
    HostDrafter ask = {};   // of DraftNeed::host: who is asked; empty: SequenceRequest::host_drafter
};

struct DrafterChoiceRow {
    DrafterChoice choice;
    const char* name;    // as flags have it
    const char* summary; // a few words; "": the name says it
    Drafter by_pass;     // none: no passes. An engine has one drafter with passes of its own; see settle
    bool any_pass;       // whichever that is
    Drafter proposer;    // whose drafts cost no pass; none: nobody's
    bool wants_long_matches;     // the proposer drafts only where its match is long, as long as by_pass can
    DrafterChoice without_pass; // what is meant where by_pass is not there
};

class Drafters {
  public:
    static const Drafters& built_in();

    std::vector<DrafterRow> rows;           // by Drafter: at most kMostDrafters
    std::vector<DrafterChoiceRow> choices;  // in the order in which people are told of them

    const DrafterRow& of(Drafter drafter) const { return rows[static_cast<size_t>(drafter) < rows.size() ? static_cast<size_t>(drafter) : 0]; } // nobody, if unknown
    const DrafterChoiceRow* find(DrafterChoice choice) const; // null: there is none
    // In an engine whose drafter with passes is this one (none: it has none).
    void settle(Drafter with_passes);
    // What a choice needs.
    bool passes(const DrafterChoiceRow& choice) const { return of(choice.by_pass).need == DraftNeed::pass; }
    bool searches(const DrafterChoiceRow& choice) const { return of(choice.proposer).need == DraftNeed::search; }
    bool asks(const DrafterChoiceRow& choice) const { return of(choice.proposer).need == DraftNeed::host; }
};

} // namespace auspex
