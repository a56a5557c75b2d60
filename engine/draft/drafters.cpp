// The table.
#include "draft/drafters.h"

#include "shared/slot_state.h"

#include <algorithm>

namespace auspex {

static_assert(gpu::kDrafterNone == static_cast<uint32_t>(Drafter::none) && gpu::kDrafterModel == static_cast<uint32_t>(Drafter::model));
static_assert(gpu::kDrafterNgram == static_cast<uint32_t>(Drafter::ngram) && gpu::kDrafterLookup == static_cast<uint32_t>(Drafter::lookup));
static_assert(gpu::kDrafterHost == static_cast<uint32_t>(Drafter::host));

const Drafters& Drafters::built_in() {
    using Choice = DrafterChoice;
    static const Drafters table = [] {
        Drafters t;
        t.rows = { // one-hot; leaves rows in the draft cache
            {Drafter::none, "none", DraftNeed::nothing, false, false},
            {Drafter::model, "model", DraftNeed::pass, false, true},
            {Drafter::ngram, "ngram", DraftNeed::search, true, false},
            {Drafter::lookup, "lookup", DraftNeed::search, true, false},
            {Drafter::host, "host", DraftNeed::host, true, false},
        };
        t.choices = {
            {Choice::model, "model", "", Drafter::model, Drafter::none, false, Choice::none},
            {Choice::ngram, "ngram", "what mostly followed the last tokens in this text", Drafter::none, Drafter::ngram, false, Choice::ngram},
            {Choice::lookup, "lookup", "what followed their latest, longest match", Drafter::none, Drafter::lookup, false, Choice::lookup},
            {Choice::hybrid, "hybrid", "ngram where its match is long, else model", Drafter::model, Drafter::ngram, true, Choice::ngram},
            {Choice::host, "host", "", Drafter::none, Drafter::host, false, Choice::host},
            {Choice::none, "none", "", Drafter::none, Drafter::none, false, Choice::none},
            {Choice::automatic, "auto", "the one expected to be fastest", Drafter::model, Drafter::ngram, false, Choice::automatic},
        };
        return t;
    }();
    return table;
}

const DrafterChoiceRow* Drafters::find(DrafterChoice choice) const {
    const auto found = std::find_if(choices.begin(), choices.end(), [&](const DrafterChoiceRow& row) { return row.choice == choice; });
    return found == choices.end() ? nullptr : &*found;
}

} // namespace auspex
