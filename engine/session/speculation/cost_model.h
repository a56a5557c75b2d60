// What rounds cost on this device with this pair of models: starts from bytes and stages, learns from real rounds,
// answers for every shape. Knows nothing of acceptance.
//
// Every cost is a multiple of `unit`, the time of a one-row target pass now, without text before it: machines change speed by 2x within minutes,
// ratios stay. A pass takes longer the more text is before its rows; how much longer is reckoned from the bytes of keys and values:
// otherwise a long text followed by a short one would look like a faster machine. On a GPU the rows of one sequence read its keys and
// values together, so drafts pay for larger batches where texts are long; on a CPU arithmetic counts, and each row pays for itself.
//
// Logarithms of the unit and of all ratios are the state of a Kalman filter: known ratios tell the machine's speed, a known speed tells
// new ratios. A ratio that is not observed for long becomes less certain and moves with those that are. A busy machine teaches all of
// them wrongly in one direction, and that has to be forgotten again.
#pragma once

#include "session/turns/turn_slices.h"
#include "shared/round_rows.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace auspex {

struct RoundShape {
    bool model = false;     // the draft model runs draft_len passes
    bool proposals = false; // drafts are taken from the text
    uint32_t draft_len = 0; // the largest of the round
    uint32_t batch = 1;     // slots recorded (bucket)
    bool transforms = false;

    uint32_t rows() const { return batch * gpu::nodes_of(draft_len); } // of the target pass
    auto operator<=>(const RoundShape&) const = default;
};

struct CostPrior {
    uint64_t target_bytes = 0, draft_bytes = 0; // weights read by a pass; draft 0: no draft model
    uint32_t target_stages = 0, draft_stages = 0; // dependent dispatches of a pass
    bool is_cpu = false;
    uint64_t target_text_bytes = 0, draft_text_bytes = 0; // keys and values that a pass reads for each token of the text
    double prompt_part = 1; // of the target's arithmetic for a row of a prompt, that the draft has
};

// Milliseconds; negative: not available. wall: since the round before was complete, if nothing else ran between.
struct ObservedRound {
    double draft_ms = -1, verify_ms = -1, accept_ms = -1, wall_ms = -1;
    double recording_ms = 0; // of the host, before all that; 0: the recording was there
    double text_len = 0;     // tokens before the round; of several sequences the mean
    bool is_steady = true;   // directly after another round, and of sequences that were all alive: else caches are cold, or rows are skipped
};

class CostModel {
  public:
    explicit CostModel(const CostPrior& prior);
    CostModel untaught() const { return CostModel(prior_); } // what bytes and stages alone say

    void observe(const RoundShape& shape, const ObservedRound& times);
    // Rows recorded, of one sequence or several; the first of so many teaches nothing of ms. recording_ms: as of a round.
    void observe_catch_up(uint32_t n_rows, double ms, double recording_ms);
    // The target read so many rows of a prompt.
    void observe_prompt(uint32_t n_rows, double ms) { prompts_.observe(n_rows, ms); }

    // What is asked from here on is asked of rounds after this many tokens.
    void set_text_len(double tokens) { text_len_ = tokens; }
    double text_len() const { return text_len_; }

    double round_ms(const RoundShape& shape) const;
    double plain_ms(uint32_t batch) const { return round_ms({.batch = batch}); }
    double catch_up_ms(uint32_t n_rows) const;
    double prompt_catch_up_ms(uint32_t n_rows) const; // judged by what the target took for a prompt; < 0: nobody timed one
    double tiles_ms(uint32_t n_rows) const; // target layers over so many known rows, by the row family
    double c() const;              // draft pass / target pass, one row each
    double v(uint32_t rows) const; // target pass of so many rows / of one
    double overhead_ms(const RoundShape& shape) const; // wall - GPU
    double recording_ms() const { return n_recordings_ > 0 ? recordings_ms_ / n_recordings_ : 0; } // of one turn, by the host
    uint32_t n_rounds() const { return n_rounds_; } // timed and learnt from
    bool is_calibrated() const; // ratios are held against plain rounds, now or when they were stored

    // What was learnt, as it is stored.
    enum class Part : uint32_t { unit, verify, draft, draft_transformed, proposals, accept, accept_transformed, catch_up };
    static constexpr uint32_t kParts = 8;
    struct Learnt {
        Part part;
        uint32_t index;   // rows or batch, by part
        double factor;    // to multiply the prior with
        double variance;  // of its logarithm
    };
    std::vector<Learnt> learnt() const;
    void restore(const Learnt& learnt); // checked numbers; less sure than when it was stored

  private:
    struct Factor {
        double log = 0;
        int suspect = 0; // sign of an outlier that was passed over
        size_t at = 0;   // row of covariance_
    };
    using Key = std::tuple<Part, uint32_t>;
    struct Share {
        Key key;
        double weight; // d log(time) / d log(factor)
    };
    // A ratio by itself or, unseen, by the one or two beside it: sum of weight × log.
    struct Blend {
        std::array<const Factor*, 2> factors = {};
        std::array<double, 2> weights = {};
    };
    // The last overheads in units; their median is answered.
    struct Recent {
        std::array<double, 9> values = {};
        uint32_t n = 0;
        double median() const;
    };

    double rows_prior(uint32_t rows) const;             // v(rows) before anything was seen
    double prior(Part part, uint32_t index) const;      // in units
    Blend blend(Part part, uint32_t index) const;       // none: the prior alone
    double correction(Part part, uint32_t index) const; // log(ratio / prior)
    double ratio(Part part, uint32_t index) const;      // in units
    double unit_ms() const;
    Factor& factor(const Key& key);
    // Units of a pass, which takes `pass` where there is no text. growth: of a pass of one row with each token; apart: what passes of
    // one row for each of its sequences would take, one after the other.
    double with_text(double pass, double growth, double apart) const;
    double verify_ratio(const RoundShape& shape) const;
    double draft_ratio(const RoundShape& shape) const; // all passes of the round
    double accept_ratio(const RoundShape& shape) const;
    double gpu_ratio(const RoundShape& shape) const;
    const Recent& overhead(const RoundShape& shape) const;
    void drift(); // of the ratios, in a round
    void learn(double measured_ms, double predicted_ms, const std::optional<Share>& own, double more_noise);

    CostPrior prior_;
    double text_len_ = 0;
    double target_growth_ = 0, draft_growth_ = 0; // with each token
    double unit_prior_ms_ = 1, c_prior_ = 0.5;
    std::map<Key, Factor> factors_;
    std::vector<std::vector<double>> covariance_; // of logs, in the order in which factors were first met; row 0: the unit
    std::vector<double> is_pass_;                 // 1: of the target or the draft model. Those err together; what plain rounds
                                                  // tell, the unit and their accept stage, says nothing of them
    std::set<RoundShape> seen_;        // in this process
    std::set<uint32_t> seen_catch_ups_; // number of rows
    ReplayPace prompts_;                // of the target, in this process
    double recordings_ms_ = 0;
    uint32_t n_recordings_ = 0;
    double noise_ = 0; // variance of one measured time's logarithm, as met so far
    uint32_t n_plain_ = 0, n_rounds_ = 0; // timed and learnt from
    std::array<Recent, 3> overheads_;     // by kind of round: plain, model, proposals only
};

} // namespace auspex
