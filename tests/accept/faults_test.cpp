// The statistical check sees errors: every planted fault must fail it. The faults live in the shaders behind FAULT.
#include "accept/round_rig.h"

namespace auspex {
namespace {

struct Fault {
    int number;
    const char* name;
    std::vector<const char*> shaders; // that carry it
};

const Fault kFaults[] = {
    {1, "residual_dropped", {"accept_race"}},
    {2, "ratio_inverted", {"accept_test"}},
    {3, "shared_random_number", {"accept_test", "accept_race"}},
    {4, "stale_draft_distribution", {"accept_test"}},
    {5, "off_by_one_row", {"accept_test"}},
    {6, "no_bonus", {"accept_race"}},
    {7, "temperature_forgotten", {"accept_test"}},
};

class Faults : public RoundTest {
  protected:
    // A tenth of the real check's trials is plenty: errors worth the name are large.
    static constexpr uint64_t kDraws = 8000;
    static constexpr uint32_t kDraftLen = 3;

    Verdict verdict_with(KernelLibrary& library) {
        const std::vector<ModelCase> cases = model_cases();
        return judge(play(library, cases, kDraftLen, kDraws, 300), cases, kDraftLen);
    }
};

TEST_F(Faults, the_clean_build_passes) {
    const Verdict verdict = verdict_with(*new_library());
    EXPECT_GT(verdict.pairs, kAlpha) << verdict.worst;
    EXPECT_GT(verdict.later, kAlpha);
    EXPECT_GT(verdict.accepted_len, kAlpha);
}

class PlantedFault : public Faults, public ::testing::WithParamInterface<Fault> {};

TEST_P(PlantedFault, is_found) {
    const std::unique_ptr<KernelLibrary> library = new_library();
    for (const char* shader : GetParam().shaders)
        plant(*library, shader, GetParam().number);
    const Verdict verdict = verdict_with(*library);
    EXPECT_LT(std::min(verdict.pairs, verdict.later), kAlpha) << "the check does not see " << GetParam().name;
    RecordProperty("p_pairs", std::to_string(verdict.pairs));
    RecordProperty("p_later", std::to_string(verdict.later));
    RecordProperty("p_accepted_len", std::to_string(verdict.accepted_len));
    RecordProperty("seen_in", verdict.worst);
}

INSTANTIATE_TEST_SUITE_P(, PlantedFault, ::testing::ValuesIn(kFaults), [](const auto& i) { return i.param.name; });

} // namespace
} // namespace auspex
