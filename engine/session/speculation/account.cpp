// Keeps the account of one text.
#include "session/speculation/account.h"

#include <algorithm>

namespace auspex {

namespace {

constexpr double kMaxAccount = 10;       // tokens: what a change of the text may cost
constexpr double kRecordingShare = 0.5;  // of an account, that a recording may be charged with at once
constexpr double kMaxForetold = 1.5;     // tokens: of two rounds with two proposals each
constexpr double kLateCatchUp = 0.03;    // of the tokens to come: what the first one may cost besides, where drafts waited for their shaders
constexpr uint32_t kWriteOffTokens = 64; // over which a catch-up is written off, or its own length if that is more

} // namespace

double Account::recording_now(double recording) const { return std::min(recording, kRecordingShare * tokens_); }

void Account::earn(double n_tokens) {
    const double gain = std::max(0.0, kAllowance * n_tokens - earned_);
    earned_ += gain;
    tokens_ = std::max(tokens_, std::min(tokens_ + gain, kMaxAccount));
}

bool Account::affords(const Cost& cost, bool of_proposals) const {
    return cost.round + recording_now(cost.recording) + cost.catch_up <= tokens_ + (of_proposals ? foretold_ : 0);
}

void Account::pay(const Cost& cost) {
    last_charge_ = cost.round;
    tokens_ -= cost.round + std::max(0.0, recording_now(cost.recording));
}

// Two rounds are charged before the first is read.
void Account::credit(uint32_t accepted_len) { tokens_ = std::min(tokens_ + accepted_len, std::max(kMaxAccount, 3 * last_charge_)); }

void Account::watch(Foretold foretold, double won) {
    if (foretold == Foretold::right) foretold_ = std::min(kMaxForetold, foretold_ + std::max(0.0, won));
    if (foretold == Foretold::wrong) foretold_ = 0;
}

double catch_up_charge(double cost, bool is_trusted, bool had_to_wait, uint32_t tokens_left) {
    const bool is_small = cost <= std::min(kMaxAccount, kLateCatchUp * tokens_left);
    return is_trusted || (had_to_wait && is_small) ? 0 : cost;
}

double catch_up_share(uint32_t lag_rows, uint32_t tokens_left, double tokens) {
    const uint32_t served = std::min(tokens_left, std::max(lag_rows, kWriteOffTokens));
    return std::min(1.0, tokens / served);
}

} // namespace auspex
