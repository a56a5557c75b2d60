// Every cell of the prefix cache: each second prompt × alone or in company × chunks × drafts × parked at a round, or half of the cache evicted.
#include "session/prefix_cells.h"

namespace auspex::prefix_long {
namespace {

using namespace test;
using namespace test::prefix;

void check_cells(bool prompt_kernels, uint32_t chunk) {
    ColdTexts cold(prompt_kernels);
    for (size_t second = 0; second < seconds().size(); ++second)
        for (const uint32_t draft_len : kDraftLens)
            for (const bool in_company : {false, true})
                for (const Fate fate : kFates) {
                    expect_cold_texts({second, fate, chunk, draft_len, in_company, prompt_kernels}, cold);
                    if (testing::Test::HasFailure()) return;
                }
}

TEST(PrefixLong, every_cell_by_rows) { check_cells(false, 64); }
TEST(PrefixLong, every_cell_in_chunks_of_1) { check_cells(true, 1); }
TEST(PrefixLong, every_cell_in_chunks_of_7) { check_cells(true, 7); }
TEST(PrefixLong, every_cell_in_chunks_of_64) { check_cells(true, 64); }
TEST(PrefixLong, every_cell_in_chunks_of_512) { check_cells(true, 512); }

} // namespace
} // namespace auspex::prefix_long
