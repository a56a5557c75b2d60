// The slots of an engine: each is one sequence's place in the GPU's tables. A slot owns the pages of its rows in every cache and
// knows what the GPU was told of it; what is to be told next is collected here until a turn takes it along.
#pragma once

#include "session/live_sequence.h"
#include "session/slots/command_writer.h"

namespace auspex {

struct Slot {
    uint32_t number;
    std::vector<PageList> pages; // by ModelRole, of the models that there are
    // What the GPU knows:
    bool is_told = false; // of the sequence, as of its last part; then also
    Drafter drafter = Drafter::none; // of the next round
    uint32_t draft_len = 0;

    PageList& pages_of(ModelRole role) { return pages[static_cast<size_t>(role)]; }
    const PageList& pages_of(ModelRole role) const { return pages[static_cast<size_t>(role)]; }
};

struct CacheCopy { // of a page
    ModelRole of;
    PageCopy pages;
};

class Slots {
  public:
    struct Limits {
        uint32_t n_slots, max_context, max_draft_len, max_commands;
        std::vector<uint32_t> stop_ids;
    };
    Slots(RoundModels models, Limits limits);
    Slots(const Slots&) = delete; // sequences point to their slots

    uint32_t n_slots() const { return limits_.n_slots; }
    bool has_free() const { return !free_.empty(); }
    // A free slot, which the GPU knows nothing of. has_free().
    Slot& take();
    // Its pages are free when turns up to `turn`, which may still write to them, are complete.
    void give_back(Slot& slot, uint64_t turn);

    // has_free() and no turn is under way: a slot with pages for n_rows, for as long as `use` takes.
    using Use = std::function<Status(uint32_t slot, std::span<const PageChange> pages)>;
    Status lend(ModelRole of, uint32_t n_rows, const Use& use);

    // Rows [0, n_rows) of the slot's table, as far as it goes, get pages. capacity: too few are free now; nothing changed.
    Status map(Slot& slot, ModelRole of, uint32_t n_rows);
    // Pages wholly beyond n_rows of every cache go back when `turn` is complete.
    void keep(Slot& slot, uint32_t n_rows, uint64_t turn);
    // The slot's first pages of this cache are these from now on, which others own, too; its own go back when `turn` is complete.
    void adopt(Slot& slot, ModelRole of, std::span<const uint32_t> pages, uint64_t turn);
    // All pages of one cache go back when `turn` is complete.
    void give_up(Slot& slot, ModelRole of, uint64_t turn) { slot.pages_of(of).shrink(0, turn); }
    // `to` gets the first n_rows of `from`; what is to be copied joins `copies`. capacity as map.
    Status share(const Slot& from, Slot& to, ModelRole of, uint32_t n_rows, std::vector<CacheCopy>& copies);
    void record_copies(Recording& cmd, std::span<const CacheCopy> copies) const; // between transfer barriers
    void collect(uint64_t completed_turn);

    // Whether what a turn tells of one more sequence fits: besides its state so many tokens and whole page tables.
    bool has_room(const LiveSequence& sequence, uint64_t n_tokens = 0, uint32_t n_tables = 0) const;
    // The GPU learns of the sequence, unless it knows.
    void tell(const LiveSequence& sequence);
    void tell_tokens(const Slot& slot, uint32_t first_position, std::span<const uint32_t> tokens) { writer_.history(slot.number, first_position, tokens); }
    void tell_plan(const LiveSequence& sequence); // drafter and draft_len of the next round
    void tell_search_len(const Slot& slot, uint32_t draft_len);
    void tell_proposals(const Slot& slot, std::span<const uint32_t> drafts);
    void tell_draft_rows(const Slot& slot, uint32_t n_rows);
    void tell_end(const Slot& slot); // rounds under way do nothing more
    // All that was told goes into the turn's buffers.
    void hand_over(TurnBuffers& turn) { writer_.flush(turn); }

  private:
    gpu::SlotState state_of(const LiveSequence& sequence) const;
    RoundModels models_;
    Limits limits_;
    CommandWriter writer_;
    std::vector<Slot> slots_;
    std::vector<Slot*> free_; // a stack; the lowest is taken first
};

} // namespace auspex
