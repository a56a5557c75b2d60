// The sequences of an engine: who waits, who is let in with a slot, who loses it again when pages run short, and who goes. Starts
// nothing: the scheduler does.
#pragma once

#include "session/admission/waiting_room.h"
#include "session/prefix/beginnings.h"
#include "session/slots/slots.h"
#include "session/turns/turn_queue.h"

#include <functional>
#include <map>
#include <set>

namespace auspex {

class Admission {
  public:
    // A sequence may hold rows of max_context tokens, and of the drafts of two rounds under way. max_waiting: sequences that may wait
    // to be let in for the first time, or for a part.
    struct Limits {
        uint32_t max_context, max_draft_len, max_waiting;
    };
    // beginnings: null where none are kept.
    Admission(RoundModels models, Slots& slots, const TurnQueue& turns, const Limits& limits, Beginnings* beginnings)
        : models_(models), slots_(&slots), turns_(&turns), limits_(limits), beginnings_(beginnings) {}

    // wait_ms: that a sequence which came now would wait, about; < 0: not known.
    void predict_wait_by(std::function<double()> wait_ms) { wait_ms_ = std::move(wait_ms); }
    // The request was checked. It waits where no slot is free, or too few pages to begin; capacity when too many wait already.
    Result<uint64_t> create(SequenceRequest request, const Tokenizer* tokenizer);
    // As create; full pages of the source's are shared, if it has them.
    Result<uint64_t> fork(uint64_t source, SequenceRequest request, const Tokenizer* tokenizer);
    // A finished sequence goes on after request.prompt, which may be empty; one that lost its slot waits for another. invalid_argument
    // while it runs; capacity when its context is full or the prompt leaves no room.
    Status append(uint64_t id, SequenceRequest request, const Tokenizer* tokenizer);
    Status destroy(uint64_t id);
    Status cancel(uint64_t id);
    // Slot and pages are free for others until resume; what was said, and what comes next, stays as it is.
    Status park(uint64_t id);
    Status resume(uint64_t id);
    Status set_draft_len(uint64_t id, uint32_t draft_len);
    LiveSequence* find(uint64_t id); // null: unknown or destroyed

    // All, those among them that wait, and those that are destroyed and whose forks wait.
    std::map<uint64_t, LiveSequence>& sequences() { return sequences_; }
    bool is_awaited(uint64_t id) const; // forks wait to be copied from it
    void forks_are_copied(uint64_t source); // it goes if it was destroyed and nobody waits any more
    void has_ended() { n_ended_ += 1; } // a sequence: those that were parked may come back
    Status no_free_slot() const;

    // Who waits gets a slot, in order, as far as there are slots, and pages to begin with.
    void let_in();
    bool is_waiting(const LiveSequence& sequence) const { return waiting_.contains(sequence.id, sequence.request.priority, sequence.came_ns); }
    uint32_t place(const LiveSequence& sequence) const; // how many are before it
    uint64_t n_parked() const { return n_parked_; } // times
    const WaitingRoom& waiting() const { return waiting_; }

    // Somebody needs so many pages more than are free: they are given back, unless enough are on their way already, by whoever
    // misses them least: draft caches that change no text, sequences that are over, and at last the youngest of the least urgent.
    void make_room(ModelRole of, uint32_t n_pages);

  private:
    LiveSequence& add(SequenceRequest request, std::vector<uint32_t> tokens, const Tokenizer* tokenizer);
    Status wait_or_enter(LiveSequence& sequence); // capacity: neither; it is as it was
    void enter_waiting(LiveSequence& sequence);
    void leave_waiting(LiveSequence& sequence);
    bool may_come_in(const LiveSequence& sequence) const;
    void leave_slot(LiveSequence& sequence);
    void unseat(LiveSequence& sequence); // it had a slot
    void part_from_forks(uint64_t source); // those that wait for it read their tokens themselves
    void part_from_source(LiveSequence& fork); // which goes if it was destroyed and nobody else waits for it
    void release(LiveSequence& sequence);
    void release_when_possible(LiveSequence& sequence);
    bool all_are_idle() const; // of those with a slot
    bool park_one_that_is_over(); // false: there is none
    LiveSequence* longest_optional_draft();
    LiveSequence* least_missed();

    uint32_t pages_for(ModelRole of, uint64_t n_rows) const; // of a cache, at most a slot's
    uint32_t may_take_soon(ModelRole of, const LiveSequence& sequence) const; // pages until a round of it is under way, and one more
    // capacity unless so many pages of this cache are free, or on their way back, that nobody who is in may take soon.
    Status check_pages(ModelRole of, const LiveSequence& sequence) const;

    RoundModels models_;
    Slots* slots_;
    const TurnQueue* turns_;
    Limits limits_;
    std::function<double()> wait_ms_ = {};
    Beginnings* beginnings_;
    std::map<uint64_t, LiveSequence> sequences_;
    WaitingRoom waiting_;
    std::set<uint64_t> dying_; // destroyed by the caller, kept until forks of them are copied
    uint64_t next_id_ = 1, n_ended_ = 0, n_parked_ = 0;
    uint32_t n_back_ = 0; // of those who wait: they were in before, and no limit keeps them out
};

} // namespace auspex
