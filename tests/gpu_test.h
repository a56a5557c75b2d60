// What tests of GPU code share: one device per process, kernels in several variants, buffers from and to vectors,
// recording and running. Without a usable device every such test fails.
#pragma once

#include "device/recording.h"
#include "kernels/attention_shape.h"
#include "kernels/kernel_library.h"
#include "reference/random.h"
#include "shared/round_rows.h"
#include "shared/slot_state.h"
#include "tensor/tensor.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

namespace auspex {

// NaN as f32, as two f16 and as two bf16; an index far out of range as uint.
constexpr uint32_t kPoison = 0xffc1ffc1u;

// Ways to run the same kernels.
enum class Variant {
    native,   // as choose_tuning says, of the profile that tests run under (profiles/device_profile.h)
    shuffles, // by shuffles where the device can, without the variants made for one driver, x of blocks by shared memory: the same bits
    shared,   // reductions through shared memory, lanes as native: the same bits
    lanes_16, // through shared memory: other bits, still right
    lanes_32,
    tiles,    // prompts through the tiled kernels, as on a GPU without matrix units
    matrices, // prompts through matrix units; as tiles where the device has none
    matrices_1, // … with activations rounded to f16
    halves,   // as on a GPU without matrix units that is quick at halves
    other_fetches, // as native, but from texel buffers if that does not, and the other way round: the same bits
    int8,     // as shuffles, of a pass that only drafts: x is rounded to 8 bits where weights are blocks
};
std::string variant_name(Variant variant);
// `tuning` as on a GPU whose lanes are not known to be together: reductions through shared memory, over `lanes` of them (0: as
// many as before, the same bits). The sizes are a GPU's too: llvmpipe compiles a barrier as a place to resume at, and takes
// minutes over the hundreds that a CPU's sizes would bring.
Tuning without_shuffles(Tuning tuning, uint32_t lanes = 0);
// For INSTANTIATE_TEST_SUITE_P: the variants whose lanes differ, and the native one.
const std::vector<Variant>& all_variants();

// Every segment of a finished recording, complete after everything under way.
void submit_and_wait(Device& device, const Recording& recording);

class GpuTest : public ::testing::Test {
  protected:
    void SetUp() override; // fails without a device

    Device& device();
    MemoryPool& memory();
    KernelLibrary& kernels(Variant variant = Variant::native);
    // An empty library, for replaced shaders.
    std::unique_ptr<KernelLibrary> new_library();

    // Host-visible buffer with these words; an empty span gives 16 bytes of poison.
    template <typename T> Buffer upload(std::span<const T> data) {
        Buffer buffer = poisoned(data.size_bytes());
        if (buffer && !data.empty()) std::memcpy(buffer.mapped(), data.data(), data.size_bytes());
        return buffer;
    }
    template <typename T> Buffer upload(const std::vector<T>& data) { return upload(std::span<const T>(data)); }
    // Host-visible buffer of poison.
    Buffer poisoned(uint64_t bytes);
    template <typename T> Buffer output(uint64_t count) { return poisoned(count * sizeof(T)); }
    template <typename T> std::vector<T> read(const Buffer& buffer, uint64_t count, uint64_t first = 0) {
        std::vector<T> out(count);
        if (buffer) std::memcpy(out.data(), buffer.mapped() + first * sizeof(T), count * sizeof(T));
        return out;
    }
    std::vector<float> floats(const Buffer& buffer, uint64_t count) { return read<float>(buffer, count); }

    // Records one segment and runs it to its end; a failure anywhere fails the test.
    void run(KernelLibrary& library, const std::function<void(Recorder&)>& record);
    void run(const std::function<void(Recorder&)>& record) { run(kernels(), record); }
    void submit_and_wait(const Recording& recording) { auspex::submit_and_wait(device(), recording); }

    // A matrix (rows, cols) rounded to dtype, in shards of shard_rows rows (0: one shard). `values` receives what the
    // device sees.
    Tensor tensor(std::vector<float>& values, uint32_t rows, uint32_t cols, DType dtype, uint32_t shard_rows = 0);
    // The same in tiles; its shards must be whole ones.
    Tensor in_tiles(const Tensor& rows);
    // As above in a quantised type: random blocks, every code and scale equally likely, of the size of 1 or so; `values`
    // receives what they decode to.
    Tensor quantized_tensor(std::vector<float>& values, uint32_t rows, uint32_t cols, DType dtype, uint32_t seed,
                            uint32_t shard_rows = 0);
};

template <typename T> class GpuTestWith : public GpuTest, public ::testing::WithParamInterface<T> {};

// Values of a range.
std::vector<float> random_floats(uint64_t count, uint32_t seed, float scale = 1.0f);
// A live row of a chain whose keys below `position` are all committed.
gpu::Row plain_row(uint32_t token, uint32_t slot, uint32_t position);
// The rows of a round's entries as rows.comp makes them: in the target's pass, (entries, draft_len + 1), with these tokens or zeros; and in
// the draft's pass that evaluates `node`, (entries) without what catches up, with tokens of the target's rows.
std::vector<gpu::Row> chain_rows(std::span<const gpu::RoundSlot> entries, uint32_t draft_len, std::span<const uint32_t> tokens = {});
std::vector<gpu::Row> draft_pass_rows(std::span<const gpu::RoundSlot> entries, uint32_t draft_len, uint32_t node, std::span<const gpu::Row> target_rows);

// A slot whose logits are taken as they are and whose drafts are the model's.
inline gpu::SlotState neutral_state() {
    gpu::SlotState state = {};
    state.repeat_penalty = state.top_p = state.lenience = 1;
    state.drafter = gpu::kDrafterModel;
    return state;
}

// f32 error analysis (Higham 2002, section 3.1): n roundings change a term by at most rounding(n), relatively.
constexpr double kUnit = 0x1p-24;
inline double rounding(double n) {
    return n * kUnit / (1.0 - n * kUnit);
}
// Vulkan promises more for some functions: exp(x) has 3 + 2·|x| ULP, a division 2.5; one ULP is at most 2 units.
inline double exp_error(double x) {
    return (3.0 + 2.0 * std::abs(x)) * 2.0 * kUnit;
}
constexpr double kDivisionError = 2.5 * 2.0 * kUnit;
constexpr double kTiny = 0x1p-126; // subnormal numbers may be flushed

// Bitwise equality of floats, NaN included; says where the first difference is.
::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b);
// Σ (found - expected)² / Σ expected²; worst-case bounds are wide, so tests hold this to what rounding errors of random
// sign leave.
double normalised_error(std::span<const float> found, std::span<const double> expected);
constexpr double kNormalisedError = 1e-11;
// |found - expected| ≤ bound everywhere; NaN is never near.
::testing::AssertionResult all_near(std::span<const float> found, std::span<const double> expected,
                                    std::span<const double> bound);

} // namespace auspex
