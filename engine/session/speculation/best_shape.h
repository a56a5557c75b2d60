// Which round gives the most tokens per time (rules 1 and 2 of policy.cpp), and how often plain rounds come between (rule 6). Knows
// what candidates promise, nothing of who is charged for them.
#pragma once

#include "session/speculation/cost_model.h"

#include <functional>
#include <map>

namespace auspex {

constexpr double kBestAlpha = 0.95; // that drafts nobody knows could have

// A round that could be run now, and what it promises.
struct Candidate {
    bool model = false;     // asked for: passes of the draft model,
    uint32_t draft_len = 0; // and drafts of a sequence; 0: the plain round
    RoundShape shape;       // what became of it
    uint32_t n_drafting = 0; // sequences with an automatic draft_len that draft
    double tokens = 0, ms = 0;
    double recording_ms = 0; // of a shape that is not recorded yet
    double catch_up_ms = 0;  // as far as this round writes it off
    double rate() const { return tokens / (ms + catch_up_ms); } // tokens per ms
};

class BestShape {
  public:
    using Evaluate = std::function<Candidate(bool model, uint32_t draft_len)>;
    using CanStart = std::function<bool(const Candidate&)>;
    struct Found {
        Candidate best;        // the plain round, unless another one promises enough more
        bool waits = false;    // a better one cannot start yet
    };
    Found find(const Candidate& plain, uint32_t max_draft_len, const Evaluate& evaluate, const CanStart& can_start) const;

    // What a round promises, weighed so that neither noise nor a first recording makes rounds change to and fro.
    double score(const Candidate& candidate) const;

    // A round begins. is_probe: it says nothing about what is best.
    void begin(const Candidate& chosen, bool is_probe);
    bool is_recorded(const RoundShape& shape) const; // for every round in flight

  private:
    bool last_model_ = false; // of the round before
    uint32_t last_draft_len_ = 0;
    std::map<RoundShape, uint32_t> begun_; // rounds of each shape that drafts, of fixed draft_len, too
};

// When plain rounds are due that keep what drafts are held against fresh.
class PlainReference {
  public:
    bool is_due() const;
    void begin(const RoundShape& shape);                       // a round begins
    void expect(double speedup) { last_speedup_ = speedup; } // of rounds that draft, over plain ones

  private:
    uint32_t since_plain_ = 0, plain_run_ = 0; // rounds
    double last_speedup_ = 1;
};

// A round of drafts must promise so much more than a plain one to begin.
bool is_worth_beginning(double rate, double plain_rate);

} // namespace auspex
