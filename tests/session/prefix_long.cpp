// Every cell of the prefix cache: each second prompt × alone or in company × chunks × drafts × parked at a round, or half of the cache evicted.
#include "session/prefix_cells.h"

namespace auspex::prefix_long {
namespace {

using namespace test;
using namespace test::prefix;

constexpr uint32_t kNever = 0, kEvicted = ~0u;

void check_cells(bool prompt_kernels, uint32_t chunk) {
    ColdTexts cold(prompt_kernels);
    const Case c = {.prompt_kernels = prompt_kernels, .chunk = chunk};
    uint64_t company_seed = 1000;
    for (const Second& second : seconds())
        for (const uint32_t draft_len : {0u, 3u, kAutoDraftLen}) {
            const Job job = greedy(second.prompt, draft_len);
            const Answer expected = cold.of(job);
            for (const bool in_company : {false, true})
                for (const uint32_t parked_at : {kNever, 1u, 2u, 7u, kEvicted}) {
                    SCOPED_TRACE(std::string(second.name) + ", draft_len " + std::to_string(draft_len) + ", parked at " + std::to_string(parked_at) + (in_company ? ", in company" : ", alone"));
                    auto engine = make_engine(engine_of(c));
                    run_job(*engine, greedy(kPrompt, 3));
                    if (parked_at == kEvicted) engine->target().cache().pool().ask_for(engine->target().cache().pool().n_spare() / 2);
                    std::vector<uint64_t> company;
                    for (uint32_t i = 0; in_company && i < 7; ++i)
                        company.push_back(engine->create_sequence(greedy(random_prompt(20 + 5 * i, kVocab, company_seed++), 3).request()).value());
                    const uint64_t id = engine->create_sequence(job.request()).value();
                    if (parked_at != kNever && parked_at != kEvicted) {
                        drive(*engine, [&] { return find_sequence(*engine, id)->stats.rounds >= parked_at || find_sequence(*engine, id)->stop != StopReason::none; });
                        ASSERT_TRUE(engine->admission().park(id).ok());
                        ASSERT_TRUE(engine->admission().resume(id).ok());
                    }
                    drive(*engine);
                    expect_same(answer_of(*engine, id), expected, "warm");
                    if (testing::Test::HasFailure()) return;
                    if (parked_at != kEvicted) {
                        EXPECT_GE(find_sequence(*engine, id)->cached_n, second.hit);
                    }
                }
        }
}

TEST(PrefixLong, every_cell_by_rows) { check_cells(false, 64); }
TEST(PrefixLong, every_cell_in_chunks_of_1) { check_cells(true, 1); }
TEST(PrefixLong, every_cell_in_chunks_of_7) { check_cells(true, 7); }
TEST(PrefixLong, every_cell_in_chunks_of_64) { check_cells(true, 64); }
TEST(PrefixLong, every_cell_in_chunks_of_512) { check_cells(true, 512); }

} // namespace
} // namespace auspex::prefix_long
