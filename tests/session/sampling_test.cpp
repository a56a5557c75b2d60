// Speculative sampling end to end against exact enumeration: completions of a tiny random pair through the whole engine
// have the distribution that the double-precision target alone gives.
#include "session/sampling_rig.h"
#include "test_shaders.h"

namespace auspex::sampling_test {
namespace {

using namespace test;
using namespace test::sampling;

TEST(Sampling, completions_have_the_targets_distribution) {
    auto engine = make_engine(tiny_pair(128));
    ASSERT_TRUE(engine);
    uint64_t total = 0;
    for (const Case& c : {Case{0, 1.0f, 6, 20000}, Case{1, 1.0f, 17, 30000}, Case{2, 1.0f, 6, 30000}, Case{3, 1.0f, 1, 30000},
                          Case{2, 0.6f, 17, 20000}, Case{3, 1.7f, 6, 20000}}) {
        const auto prompt = random_prompt(c.prompt_n, kVocab, 11);
        const auto counts = complete(*engine, prompt, c, 1000000 * (c.draft_len + 1) + c.prompt_n);
        ASSERT_FALSE(HasFatalFailure());
        const reference::Fit fit = judge(counts, prompt, static_cast<double>(c.temperature));
        EXPECT_GT(fit.p_value, kAlpha) << "draft_len " << c.draft_len << ", temperature " << c.temperature << ": chi-square "
                                       << fit.statistic << " in " << fit.bins << " bins " << fit.note;
        RecordProperty("p_" + std::to_string(c.draft_len) + "_" + std::to_string(c.prompt_n), std::to_string(fit.p_value));
        if (c.draft_len > 0) total += c.completions;
    }
    EXPECT_GE(total, 100000u);
}

// Accepts with wrong shaders: the same test must see them.
TEST(Sampling, planted_faults_are_seen) {
    for (const char* fault : {"accept_race.fault1", "accept_test.fault2"}) {
        auto engine = make_engine(tiny_pair(128));
        ASSERT_TRUE(engine);
        const std::string name = fault, stem = name.substr(0, name.find('.')), number = name.substr(name.find('.'));
        for (const std::string variant : {"", ".subgroup"}) {
            const auto spirv = test_shader(stem + variant + number);
            if (!spirv.empty()) engine->kernels().replace(stem + variant, spirv);
        }
        const auto prompt = random_prompt(6, kVocab, 11);
        const Case c = {2, 1.0f, 6, 8000};
        const auto fit = judge(complete(*engine, prompt, c, 5), prompt, 1.0);
        EXPECT_LT(fit.p_value, kAlpha) << fault;
    }
}

} // namespace
} // namespace auspex::sampling_test
