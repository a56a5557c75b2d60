// The checks see errors: every planted fault must fail one. The faults are in faults.cmake.
#include "accept/rule_checks.h"

namespace auspex::faults_test {
namespace {

// Who sees a fault. The smallest p-value of a check, where it has several.
enum class Check {
    sampled,       // rounds of model drafts against the target's distribution
    overlap,       // of the same rounds: the record's overlap against Σ min(target, draft)
    proposed,      // rounds of proposals against it
    cut,           // truncated rows against the truncated target's
    lenient,       // lenient rounds against their own
    coupled,       // coupled rounds against the target's
    coupled_texts, // coupled rounds against plain ones, bitwise
    greedy_texts,  // greedy rounds against plain ones, bitwise
    narrow,        // rounds of a draft with fewer ids against the target's
    mixed_batch,   // slots of different drafters in one batch against batches of one kind, bitwise
};

struct Fault {
    int number;
    const char* name;
    std::vector<const char*> shaders; // that carry it
    Check check;
};

const Fault kFaults[] = {
    {1, "residual_dropped", {"accept_race"}, Check::sampled},
    {2, "ratio_inverted", {"accept_test"}, Check::sampled},
    {3, "shared_random_number", {"accept_test", "accept_race"}, Check::sampled},
    {4, "stale_draft_distribution", {"accept_test"}, Check::sampled},
    {5, "off_by_one_row", {"accept_test"}, Check::sampled},
    {6, "no_bonus", {"accept_race"}, Check::sampled},
    {7, "temperature_forgotten", {"accept_test"}, Check::sampled},
    {8, "rejected_proposal_keeps_its_weight", {"accept_race"}, Check::proposed},
    {9, "draft_without_its_cut", {"accept_race"}, Check::cut},
    {10, "target_without_its_cut", {"accept_race"}, Check::cut},
    {11, "noise_of_another_position_for_the_bonus", {"accept_race"}, Check::sampled},
    {12, "one_uniform_for_all_positions", {"accept_test"}, Check::sampled},
    {13, "one_uniform_for_all_slots", {"accept_test"}, Check::sampled},
    {14, "lenience_in_the_test_alone", {"accept_race"}, Check::lenient},
    {15, "lenience_in_the_residual_alone", {"accept_test"}, Check::lenient},
    {16, "coupled_noise_by_row", {"vocab_partials"}, Check::coupled_texts},
    {17, "proposals_overwritten", {"pick"}, Check::mixed_batch},
    {18, "all_ties_at_the_cut", {"accept_race"}, Check::cut},
    {19, "residual_of_either_side", {"accept_race"}, Check::sampled},
    {20, "temperature_twice", {"accept_race"}, Check::sampled},
    {21, "overlap_beyond_the_whole", {"accept_test"}, Check::overlap},
    {22, "coupled_rows_race_again", {"accept_test"}, Check::coupled_texts},
    {23, "coupled_target_without_noise", {"vocab_partials"}, Check::coupled},
    {24, "any_of_the_largest_passes", {"accept_test"}, Check::greedy_texts},
    {26, "ids_that_the_draft_lacks_take_no_part", {"accept_race"}, Check::narrow},
};
const Check kAllChecks[] = {Check::sampled, Check::overlap, Check::proposed, Check::cut, Check::lenient, Check::coupled,
                            Check::coupled_texts, Check::greedy_texts, Check::narrow, Check::mixed_batch};

class Faults : public RuleChecks {
  protected:
    // A tenth of the real checks' trials is plenty: errors worth the name are large.
    static constexpr uint64_t kDraws = 8000;

    // Of bitwise checks and of overlap: 1 or 0.
    double p_value(KernelLibrary& library, Check check) {
        const std::vector<ModelCase> cases = model_cases();
        switch (check) {
        case Check::sampled: return play_and_judge(library, cases, 3, kDraws, 300, {}).smallest();
        case Check::overlap: {
            const Verdict verdict = play_and_judge(library, cases, 3, kDraws, 300, {});
            return std::abs(verdict.overlap_error) < 5.0 * 0.5 / std::sqrt(double(verdict.tested)) ? 1.0 : 0.0;
        }
        case Check::proposed: return play_proposals(library, kDraws).smallest();
        case Check::cut: return play_cut(library, kDraws).smallest();
        case Check::lenient: return play_and_judge(library, cases, 2, kDraws, 440, {.lenience = 0.5f}).smallest();
        case Check::coupled: return play_and_judge(library, cases, 3, kDraws, 420, kCoupled).smallest();
        case Check::coupled_texts: return other_than_plain(library, mixed_cases(), 3, kCoupled) ? 0.0 : 1.0;
        case Check::greedy_texts: return other_than_plain(library, tied_cases(), 3, kGreedy) ? 0.0 : 1.0;
        case Check::narrow: return play_narrow(library, kDraws).smallest();
        case Check::mixed_batch: return strange_tokens(library) ? 0.0 : 1.0;
        }
        return 1.0;
    }
};

TEST_F(Faults, the_clean_build_passes) {
    const std::unique_ptr<KernelLibrary> library = new_library();
    for (const Check check : kAllChecks)
        EXPECT_GT(p_value(*library, check), kAlpha) << "check " << int(check);
}

class PlantedFault : public Faults, public ::testing::WithParamInterface<Fault> {};

TEST_P(PlantedFault, is_found) {
    const std::unique_ptr<KernelLibrary> library = new_library();
    for (const char* shader : GetParam().shaders)
        plant(*library, shader, GetParam().number);
    const double p = p_value(*library, GetParam().check);
    EXPECT_LT(p, kAlpha) << "the check does not see " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(, PlantedFault, ::testing::ValuesIn(kFaults), [](const auto& i) { return i.param.name; });

} // namespace
} // namespace auspex::faults_test
