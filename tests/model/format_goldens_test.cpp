// Seeded models against transformers (tests/peers/format_goldens.py): the numbers are the same here and there, and
// config, rope scaling, heads and both file formats lead to the same logits. Positions beyond 8192 are in
// format_goldens_long.cpp.
#include "model/format_goldens.h"

namespace auspex::format_goldens_test {
namespace {

using namespace test;

TEST(FormatGoldens, weights_and_tokens_are_those_of_python) {
    for (const auto& golden : read_format_goldens()) {
        const auto tokens = seeded_tokens(golden);
        for (size_t i = 0; i < golden["first_tokens"].size(); ++i)
            EXPECT_EQ(tokens.at(i), golden["first_tokens"][i].get<uint32_t>()) << golden["name"];
        const auto tensors = seeded_weights(golden);
        EXPECT_EQ(tensors.size(), golden["first_weights"].size());
        for (const SeededTensor& tensor : tensors) {
            ASSERT_TRUE(golden["first_weights"].contains(tensor.name)) << tensor.name;
            for (size_t i = 0; i < 2; ++i)
                EXPECT_EQ(tensor.values.at(i), golden["first_weights"][tensor.name][i].get<float>()) << tensor.name;
        }
    }
}

TEST(FormatGoldens, logits_are_those_of_transformers) {
    int compared = 0;
    for (const auto& golden : read_format_goldens())
        if (golden["tokens"].get<int>() < 1000) {
            compare_with_golden(golden);
            ++compared;
        }
    EXPECT_EQ(compared, 4);
}

} // namespace
} // namespace auspex::format_goldens_test
