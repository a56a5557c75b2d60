// The sequences of an engine: who is let in, with a slot and a promise of pages, and who goes. Starts nothing: the scheduler does.
#pragma once

#include "session/slots/slots.h"
#include "session/turns/turn_queue.h"

#include <map>
#include <set>

namespace auspex {

class Admission {
  public:
    // A sequence may hold rows of max_context tokens, and of the drafts of two rounds under way.
    Admission(RoundModels models, Slots& slots, const TurnQueue& turns, uint32_t max_context, uint32_t max_draft_len)
        : models_(models), slots_(&slots), turns_(&turns), max_context_(max_context), max_draft_len_(max_draft_len) {}

    // The request was checked. capacity when no slot is free, or fewer pages than the sequence may come to need.
    Result<uint64_t> create(SequenceRequest request, const Tokenizer* tokenizer);
    // As create; full pages of the source's are shared.
    Result<uint64_t> fork(uint64_t source, SequenceRequest request, const Tokenizer* tokenizer);
    // A finished sequence goes on after request.prompt, which may be empty. invalid_argument while it runs; capacity when
    // its context is full, the prompt leaves no room, or too few pages are free.
    Status append(uint64_t id, SequenceRequest request, const Tokenizer* tokenizer);
    Status destroy(uint64_t id);
    Status cancel(uint64_t id);
    Status set_draft_len(uint64_t id, uint32_t draft_len);
    LiveSequence* find(uint64_t id); // null: unknown or destroyed

    // All, those among them that are destroyed and whose forks wait.
    std::map<uint64_t, LiveSequence>& sequences() { return sequences_; }
    bool is_awaited(uint64_t id) const; // forks wait to be copied from it
    void forks_are_copied(uint64_t source); // it goes if it was destroyed and nobody waits any more
    Status no_free_slot() const;

  private:
    // What is about to begin, or to go on as `of`, which holds pages.
    struct Part {
        bool by_model;            // the draft model may draft
        uint32_t max_tokens;      // as SequenceRequest has it
        uint64_t n_tokens;        // before what it generates
        uint32_t shared_rows = 0; // of the target's cache, with the source of a fork
        const LiveSequence* of = nullptr;
    };
    LiveSequence& add(SequenceRequest request, std::vector<uint32_t> tokens, const Tokenizer* tokenizer);
    void release(LiveSequence& sequence);
    uint64_t pages_for(ModelRole of, uint64_t n_rows) const;   // of a cache, at most a slot's
    uint64_t may_take(ModelRole of, const Part& part) const;   // pages of a cache that it may come to take
    uint64_t promised(ModelRole of, const LiveSequence* but_for) const; // … to the sequences of now
    // capacity unless all pages that the sequences of now and this part may take are free or on their way back.
    Status check_pages(const Part& part) const;

    RoundModels models_;
    Slots* slots_;
    const TurnQueue* turns_;
    uint32_t max_context_, max_draft_len_;
    std::map<uint64_t, LiveSequence> sequences_;
    std::set<uint64_t> dying_; // destroyed by the caller, kept until forks of them are copied
    uint64_t next_id_ = 1;
};

} // namespace auspex
