// The copy that measures memory really copies, all of it and nothing else.
#include "kernels/copy.h"
#include "gpu_test.h"

#include <numeric>

namespace auspex::copy_test {
namespace {

using Copy = GpuTest;

TEST_F(Copy, copies_every_vector_and_nothing_behind) {
    for (const uint32_t n_vectors : {1u, 255u, 256u, 1025u, 70001u}) {
        std::vector<uint32_t> words(n_vectors * 4);
        std::iota(words.begin(), words.end(), 1u);
        const Buffer from = upload(words), to_buffer = output<uint32_t>(words.size() + 16);
        run([&](Recorder& to) { record_kernel_copy(to, from.view(0, words.size() * 4), to_buffer.view()); });
        std::vector<uint32_t> expected = words;
        expected.insert(expected.end(), 16, kPoison);
        EXPECT_EQ(read<uint32_t>(to_buffer, expected.size()), expected) << n_vectors;
    }
}

} // namespace
} // namespace auspex::copy_test
