// Which rows of a sequence others may have, and what a sequence that is about to be read gets of others: only rows that it would compute
// by the same kernels itself. The tree beside it keeps the pages.
#pragma once

#include "session/prefix/prefix_tree.h"
#include "session/slots/slots.h"

namespace auspex {

class Beginnings {
  public:
    // paths_are_one: rows of prompts and of answers take the same kernels. The models' caches outlive this.
    Beginnings(RoundModels models, Slots& slots, bool paths_are_one)
        : models_(models), slots_(&slots), paths_are_one_(paths_are_one), page_size_(models.target.cache().shape().page_size),
          tree_(page_size_, models.target.cache().pool(), models.draft_cache() ? &models.draft_cache()->pool() : nullptr) {}

    // It is about to be read further: it gets the rows that follow its own and are there by now. So those that come together read their
    // beginning once, in whatever chunks. turn: the last that was started.
    void find(LiveSequence& sequence, uint64_t turn);
    // The first n_rows of one of its caches took the path of prompts or of answers, as PromptRows says, and are there before any turn
    // that is started from here on.
    void share(const LiveSequence& sequence, ModelRole of, uint32_t n_rows);
    // It is about to lose its slot: what it said may go on to others, too.
    void share_all(const LiveSequence& sequence);
    const PrefixTree::Counts& counts() const { return tree_.counts(); }

  private:
    uint32_t canonical_rows(const LiveSequence& sequence, uint32_t n_rows) const;
    RoundModels models_;
    Slots* slots_;
    bool paths_are_one_;
    uint32_t page_size_;
    PrefixTree tree_;
};

} // namespace auspex
