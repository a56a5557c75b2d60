// The seeded model of 8300 positions, where llama3 scaling is at work, against transformers.
#include "model/format_goldens.h"

namespace auspex::format_goldens_long {
namespace {

using namespace test;

TEST(FormatGoldensLong, logits_beyond_position_8192_are_those_of_transformers) {
    int compared = 0;
    for (const auto& golden : read_format_goldens())
        if (golden["tokens"].get<int>() > 8192) {
            compare_with_golden(golden);
            ++compared;
        }
    EXPECT_EQ(compared, 1);
}

} // namespace
} // namespace auspex::format_goldens_long
