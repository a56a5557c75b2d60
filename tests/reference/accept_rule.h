// One round of speculative sampling (Leviathan et al. 2023, algorithm 1) as exact probabilities, for models that see
// only the last token: row t of a table is the distribution of what follows token t.
#pragma once

#include "reference/ops.h"

#include <map>

namespace auspex::reference {

using Table = std::vector<Vector>; // (vocab, vocab), rows sum to one

// norm(max(0, target - lenience · draft)); the target itself where the difference is empty.
Vector residual(const Vector& target, const Vector& draft, double lenience = 1.0);

struct RoundDistribution {
    std::map<std::vector<uint32_t>, double> emitted; // tokens of a round that starts after `last` → probability
    Vector accepted_len;                             // (draft_len + 1)
};
// lenience: of appendix A.5, a factor of the draft's probabilities wherever they meet the target's.
RoundDistribution round_distribution(const Table& target, const Table& draft, uint32_t last, uint32_t draft_len, double lenience = 1.0);

// (vocab · vocab): the first two tokens after `last` when rounds of draft_len follow each other, first token slowest.
// The theorem says: target[last][a] · target[a][b].
Vector first_two(const Table& target, const Table& draft, uint32_t last, uint32_t draft_len);

// Several proposals for one position (Miao et al. 2024, SpecInfer, algorithm 2), each drawn from its own distribution; a
// chosen one is drawn from a distribution that has nothing else. Row i: the token is candidate i, and which; row n: none
// was accepted. The columns' sums are the target, says the theorem.
Table candidates_distribution(const Vector& target, const std::vector<Vector>& drafts);

} // namespace auspex::reference
