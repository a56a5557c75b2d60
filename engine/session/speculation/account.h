// What a text may still lose to drafts (rule 3 of policy.cpp), and what rows that the draft's cache lacks are charged with (rule 5).
// Plain arithmetic. Everything is counted in tokens that plain rounds would give in the same time.
#pragma once

#include "sequence/sequence.h"

#include <cstdint>

namespace auspex {

constexpr double kAllowance = 0.0115; // of a text's tokens, that drafts may lose; noise of costs takes the rest of 1.5 %
constexpr double kProbeSavings = 8;  // tokens: what a probe of doubtful costs takes, besides its catch-up
constexpr double kFirstTokens = 128; // of a text, whose share it may lose at once

class Account {
  public:
    // What one more round with drafts costs one sequence. recording and catch_up are paid once.
    struct Cost {
        double round = 0; // what the round takes longer than a plain one
        double recording = 0, catch_up = 0;
    };

    // A text begins with so many tokens, whatever its share is.
    void open(double tokens) { tokens_ = tokens; }
    // Adds 1.15 % of n_tokens, which the text has or is going to have, less what was added before. Lifts the account to 10 at most.
    void earn(double n_tokens);
    // of_proposals: what single proposals would have won counts besides.
    bool affords(const Cost& cost, bool of_proposals) const;
    void pay(const Cost& cost); // of a round that begins
    void pay_catch_up(double tokens) { tokens_ -= tokens; }
    void credit(uint32_t accepted_len); // the tokens that a round won

    // What became of a proposal that a search found, and nobody drafted; won: tokens, had it been tested alone.
    void watch(Foretold foretold, double won);
    void proposals_failed() { foretold_ = 0; }

    double tokens() const { return tokens_; }

  private:
    double recording_now(double recording) const; // a part of what is left, at most
    double tokens_ = 0;
    double earned_ = 0;      // by earn, so far
    double foretold_ = 0;    // what single proposals would have won since the last wrong one
    double last_charge_ = 0; // of the last round that drafted
};

// What a catch-up is charged with: nothing where the drafts are trusted or where it is a small part of the tokens to come and drafts
// had to wait for their shaders. cost, tokens_left: tokens.
double catch_up_charge(double cost, bool is_trusted, bool had_to_wait, uint32_t tokens_left);

// The share of a catch-up that a round of `tokens` tokens writes off: it serves 64 tokens or as many as it has rows, as far as the
// text goes.
double catch_up_share(uint32_t lag_rows, uint32_t tokens_left, double tokens);

} // namespace auspex
