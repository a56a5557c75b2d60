// The table.
#include "draft/drafters.h"

#include "shared/slot_state.h"

#include <algorithm>

namespace auspex {

static_assert(gpu::kDrafterNone == static_cast<uint32_t>(Drafter::none) && gpu::kDrafterModel == static_cast<uint32_t>(Drafter::model));
static_assert(gpu::kDrafterNgram == static_cast<uint32_t>(Drafter::ngram) && gpu::kDrafterLookup == static_cast<uint32_t>(Drafter::lookup));
static_assert(gpu::kDrafterHost == static_cast<uint32_t>(Drafter::host) && gpu::kDrafterSelf == static_cast<uint32_t>(Drafter::self));

const Drafters& Drafters::built_in() {
    using Choice = DrafterChoice;
    static const Drafters table = [] {
        Drafters t;
        t.rows = { // one-hot
            {Drafter::none, "none", DraftNeed::nothing, false, DraftRows::none},
            {Drafter::model, "model", DraftNeed::pass, false, DraftRows::own_cache},
            {Drafter::ngram, "ngram", DraftNeed::search, true, DraftRows::none},
            {Drafter::lookup, "lookup", DraftNeed::search, true, DraftRows::none},
            {Drafter::host, "host", DraftNeed::host, true, DraftRows::none},
            {Drafter::self, "self", DraftNeed::pass, false, DraftRows::overwritten},
        };
        t.choices = {
            {Choice::model, "model", "", Drafter::model, false, Drafter::none, false, Choice::none},
            {Choice::self, "self", "the model's own weights in fewer bits", Drafter::self, false, Drafter::none, false, Choice::none},
            {Choice::ngram, "ngram", "what mostly followed the last tokens in this text", Drafter::none, false, Drafter::ngram, false, Choice::ngram},
            {Choice::lookup, "lookup", "what followed their latest, longest match", Drafter::none, false, Drafter::lookup, false, Choice::lookup},
            {Choice::hybrid, "hybrid", "ngram where its match is long, else model or self", Drafter::model, true, Drafter::ngram, true, Choice::ngram},
            {Choice::host, "host", "", Drafter::none, false, Drafter::host, false, Choice::host},
            {Choice::none, "none", "", Drafter::none, false, Drafter::none, false, Choice::none},
            {Choice::automatic, "auto", "the one expected to be fastest", Drafter::model, true, Drafter::ngram, false, Choice::automatic},
        };
        return t;
    }();
    return table;
}

const DrafterChoiceRow* Drafters::find(DrafterChoice choice) const {
    const auto found = std::find_if(choices.begin(), choices.end(), [&](const DrafterChoiceRow& row) { return row.choice == choice; });
    return found == choices.end() ? nullptr : &*found;
}

void Drafters::settle(Drafter with_passes) {
    for (DrafterChoiceRow& choice : choices)
        if (choice.any_pass && with_passes != Drafter::none) choice.by_pass = with_passes;
}

} // namespace auspex
