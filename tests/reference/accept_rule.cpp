// A walk over every way a round can go.
#include "reference/accept_rule.h"

#include <algorithm>

namespace auspex::reference {
namespace {

struct Walk {
    const Table& target;
    const Table& draft;
    uint32_t draft_len;
    double lenience;
    RoundDistribution out;

    void emit(std::vector<uint32_t> tokens, const Vector& next, double probability) {
        out.accepted_len[tokens.size()] += probability;
        tokens.push_back(0);
        for (uint32_t t = 0; t < next.size(); ++t) {
            tokens.back() = t;
            if (probability * next[t] > 0.0) out.emitted[tokens] += probability * next[t];
        }
    }

    // `accepted` were drafted and accepted so far; `last` is the newest token.
    void go(std::vector<uint32_t> accepted, uint32_t last, double probability) {
        const Vector& p = target[last];
        if (accepted.size() == draft_len) return emit(accepted, p, probability);
        const Vector& q = draft[last];
        double rejected = 0.0;
        for (uint32_t t = 0; t < q.size(); ++t) {
            if (q[t] == 0.0) continue;
            const double keep = std::min(1.0, p[t] / (lenience * q[t]));
            rejected += q[t] * (1.0 - keep);
            accepted.push_back(t);
            if (keep > 0.0) go(accepted, t, probability * q[t] * keep);
            accepted.pop_back();
        }
        if (rejected > 0.0) emit(accepted, residual(p, q, lenience), probability * rejected);
    }
};

} // namespace

Vector residual(const Vector& target, const Vector& draft, double lenience) {
    Vector out(target.size());
    double sum = 0.0;
    for (size_t i = 0; i < out.size(); ++i)
        sum += out[i] = std::max(0.0, target[i] - lenience * draft[i]);
    if (sum == 0.0) return target;
    for (double& v : out)
        v /= sum;
    return out;
}

RoundDistribution round_distribution(const Table& target, const Table& draft, uint32_t last, uint32_t draft_len, double lenience) {
    Walk walk{target, draft, draft_len, lenience, {{}, Vector(draft_len + 1, 0.0)}};
    walk.go({}, last, 1.0);
    return walk.out;
}

Vector first_two(const Table& target, const Table& draft, uint32_t last, uint32_t draft_len) {
    const size_t vocab = target.size();
    Vector joint(vocab * vocab, 0.0);
    for (const auto& [tokens, probability] : round_distribution(target, draft, last, draft_len).emitted) {
        if (tokens.size() >= 2) {
            joint[tokens[0] * vocab + tokens[1]] += probability;
            continue;
        }
        for (const auto& [more, p] : round_distribution(target, draft, tokens[0], draft_len).emitted)
            joint[tokens[0] * vocab + more[0]] += probability * p;
    }
    return joint;
}

Table candidates_distribution(const Vector& target, const std::vector<Vector>& drafts) {
    Table out;
    Vector left = target; // what candidate i is tested against
    double none = 1.0;    // of those before it was accepted
    for (const Vector& draft : drafts) {
        double accepted = 0.0;
        Vector& row = out.emplace_back(target.size());
        for (size_t t = 0; t < row.size(); ++t) {
            const double both = std::min(left[t], draft[t]);
            row[t] = none * both;
            accepted += both;
        }
        left = residual(left, draft);
        none *= std::max(0.0, 1.0 - accepted);
    }
    out.push_back(left);
    for (double& v : out.back())
        v *= none;
    return out;
}

} // namespace auspex::reference
