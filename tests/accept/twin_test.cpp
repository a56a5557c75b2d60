// Every single decision of the acceptance once more in double, from the same random numbers: which drafts are kept, and
// which token wins the race over the residual, the bonus or the plain row.
#include "accept/accept_fixture.h"
#include "reference/accept_rule.h"
#include "shared/philox.h"

#include <algorithm>
#include <cmath>

namespace auspex::twin_test {
namespace {

constexpr uint32_t kDraftLen = 4, kBatch = 300, kHistory = 64;
// Probabilities in f32: z = logit · (1 / T), its distance from the largest, exp and a quotient.
constexpr double kProbabilityError = 1e-5;

class Twin : public AcceptFixture {
  protected:
    static AcceptInput make_input(uint32_t vocab, uint32_t seed) {
        reference::DataStream data(seed);
        AcceptInput in(kBatch, kDraftLen, vocab, kHistory);
        for (float& v : in.target)
            v = 3.0f * data.normal();
        for (uint32_t b = 0; b < kBatch; ++b) {
            gpu::SlotState state = neutral_state();
            state.live = 1;
            state.max_generated = state.max_context = 1000;
            state.temperature = b % 3 ? 0.7f : 1.0f;
            state.seed_low = data.bits();
            state.seed_high = data.bits();
            in.states[kBatch - 1 - b] = state;
            in.round_slots[b] = {kBatch - 1 - b, b % (kDraftLen + 1), 1 + data.below(40), 1, 0};
            for (uint32_t j = 0; j < kDraftLen; ++j) {
                for (uint32_t i = 0; i < vocab; ++i)
                    in.draft_row(b, j)[i] = in.target_row(b, j)[i] + 0.7f * data.normal();
                in.drafts[b * kDraftLen + j] = draw(probabilities(in.draft_row(b, j), state), data);
            }
        }
        return in;
    }
    static reference::Vector probabilities(std::span<const float> logits, const gpu::SlotState& state) {
        return reference::softmax(reference::Vector(logits.begin(), logits.end()), double(state.temperature));
    }
    static uint32_t draw(const reference::Vector& p, reference::DataStream& data) {
        double left = double(data.bits()) * 0x1p-32;
        uint32_t token = 0;
        while (token + 1 < p.size() && (left -= p[token]) >= 0.0)
            ++token;
        return token;
    }
    static uint32_t random(const gpu::SlotState& state, uint32_t position, uint32_t purpose, uint32_t token) {
        return reference::philox({position, purpose, 0, token / 4}, {state.seed_low, state.seed_high})[token % 4];
    }

    // Number of drafts kept; undecided is set when rounding may decide otherwise.
    static uint32_t accepted_len(AcceptInput& in, uint32_t b, bool& undecided) {
        const gpu::RoundSlot slot = in.round_slots[b];
        const gpu::SlotState& state = in.states[slot.slot];
        for (uint32_t j = 0; j < slot.draft_len; ++j) {
            const uint32_t token = in.drafts[b * kDraftLen + j];
            const double p = probabilities(in.target_row(b, j), state)[token],
                         q = probabilities(in.draft_row(b, j), state)[token];
            const double u = double(random(state, slot.start + 1 + j, gpu::kPurposeAccept, 0) >> 8) * 0x1p-24;
            if (std::abs(u * q - p) < 2 * kProbabilityError * p) undecided = true;
            if (u * q >= p) return j;
        }
        return slot.draft_len;
    }
    // How far the token that won is from the one that should have, in units of what rounding may do.
    static double distance_from_winner(AcceptInput& in, uint32_t b, uint32_t accepted, uint32_t found) {
        const gpu::RoundSlot slot = in.round_slots[b];
        const gpu::SlotState& state = in.states[slot.slot];
        const reference::Vector p = probabilities(in.target_row(b, accepted), state);
        reference::Vector q(p.size(), 0.0);
        if (accepted < slot.draft_len) q = probabilities(in.draft_row(b, accepted), state);
        double best = 0.0, found_key = 0.0, slack = 0.0;
        for (uint32_t t = 0; t < p.size(); ++t) {
            const double e = reference::exponential(random(state, slot.start + 1 + accepted, gpu::kPurposeResidual, t));
            const double key = std::max(0.0, p[t] - q[t]) / e, error = kProbabilityError * (p[t] + q[t]) / e;
            if (t == found) {
                found_key = key;
                slack += error;
            }
            if (key - error > best) best = key - error;
        }
        return found_key + slack >= best ? 0.0 : (best - found_key) / best;
    }
};

TEST_F(Twin, agrees_in_every_decision) {
    for (uint32_t vocab : {5u, 40u, 1234u}) {
        SCOPED_TRACE("vocab " + std::to_string(vocab));
        AcceptInput in = make_input(vocab, vocab);
        const AcceptOutput out = accept(in);
        uint32_t n_undecided = 0, n_accepted = 0;
        for (uint32_t b = 0; b < kBatch; ++b) {
            bool undecided = false;
            const uint32_t accepted = accepted_len(in, b, undecided);
            n_undecided += undecided;
            n_accepted += accepted;
            if (undecided) continue;
            ASSERT_EQ(out.records[b].accepted_len, accepted) << "entry " << b;
            ASSERT_EQ(out.records[b].n_tokens, accepted + 1);
            for (uint32_t j = 0; j < accepted; ++j)
                EXPECT_EQ(out.records[b].tokens[j], in.drafts[b * kDraftLen + j]);
            ASSERT_LT(out.records[b].tokens[accepted], vocab);
            EXPECT_EQ(distance_from_winner(in, b, accepted, out.records[b].tokens[accepted]), 0.0) << "entry " << b;
        }
        EXPECT_LT(n_undecided, 3u);
        EXPECT_GT(n_accepted, kBatch / 2); // the cases are worth something
        EXPECT_LT(n_accepted, kBatch * kDraftLen / 2 * 9 / 10);
    }
}

} // namespace
} // namespace auspex::twin_test
