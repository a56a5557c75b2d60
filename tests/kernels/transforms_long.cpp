// What the transforms add to a round: a table for people, no assertion about time.
//   build/dev/tests/bin/test_kernels_long --gtest_filter='TransformTimes.*'   (the least of 15: a machine may be shared)
#include "gpu_test.h"
#include "kernels/transforms.h"

#include "base/platform.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace auspex::transforms_long {
namespace {

class TransformTimes : public GpuTest {
  protected:
    static constexpr uint32_t kVocab = 128256, kRuns = 15, kPasses = 4, kStride = 8192;

    struct Batch {
        Buffer logits, state, history, biases, target_rows, scratch, cuts, partials, choices;
        VocabShape shape;
    };
    // One slot with n_rows - 1 drafts, as a target pass has them; a context of n_context tokens.
    Batch batch(uint32_t n_rows, uint32_t n_context, const gpu::SlotState& settings) {
        gpu::SlotState slot = settings;
        slot.live = 1;
        slot.temperature = 0.8f;
        std::vector<float> z = random_floats(size_t{n_rows} * kVocab, 1, 3.0f);
        std::vector<uint32_t> history(kStride, kPoison);
        for (uint32_t i = 0; i < n_context; ++i) history[i] = i * 2654435761u % kVocab;
        std::vector<gpu::TokenBias> biases(gpu::kMaxBiases);
        for (uint32_t i = 0; i < gpu::kMaxBiases; ++i) biases[i] = {i * 125, 0.5f};
        std::vector<uint32_t> tokens(n_rows);
        std::iota(tokens.begin(), tokens.end(), 0u);
        const std::vector<gpu::RoundSlot> entries = {{0, n_rows - 1, n_context - 1, 1, 0}};
        Batch b = {.logits = upload(z),
                   .state = upload(std::vector<gpu::SlotState>{slot}),
                   .history = upload(history),
                   .biases = upload(biases),
                   .target_rows = upload(chain_rows(entries, n_rows - 1, tokens)),
                   .scratch = output<uint32_t>(n_rows * truncate_words(kVocab)),
                   .cuts = output<gpu::Cut>(n_rows),
                   .partials = output<gpu::VocabChoice>(size_t{n_rows} * vocab_chunks(kVocab)),
                   .choices = output<gpu::VocabChoice>(n_rows),
                   .shape = {}};
        b.shape = {.vocab = kVocab, .n_rows = n_rows, .rows = b.target_rows.view()};
        return b;
    }
    double milliseconds(const std::function<void(Recorder&)>& record) {
        auto made = Recording::create(device(), 0);
        EXPECT_TRUE(made.ok());
        Recording& recording = *made.value();
        recording.begin_segment("times");
        Recorder to{recording, kernels()};
        for (uint32_t pass = 0; pass < kPasses; ++pass) {
            record(to);
            to.cmd.barrier();
        }
        recording.end_segment();
        EXPECT_TRUE(recording.finish().ok());
        std::vector<double> times;
        for (uint32_t i = 0; i <= kRuns; ++i) {
            const uint64_t begin = now_ns();
            submit_and_wait(recording);
            if (i > 0) times.push_back(static_cast<double>(now_ns() - begin) * 1e-6 / kPasses); // the first compiles
        }
        return *std::min_element(times.begin(), times.end());
    }
    double transforms_ms(const Batch& b, bool edits, Truncation what) {
        const TransformBuffers buffers = {.state = b.state.view(), .history = b.history.view(), .target_rows = b.target_rows.view(),
                                          .biases = b.biases.view(), .scratch = b.scratch.view(), .cuts = b.cuts.view()};
        return milliseconds([&](Recorder& to) { record_transforms(to, b.logits.view(), buffers, b.shape, {edits, what, kStride}); });
    }
};

TEST_F(TransformTimes, of_every_stage) {
    std::printf("%u tokens, %s; milliseconds\n| rows | 1 | 6 |\n|---|---:|---:|\n", kVocab, device().caps.driver.c_str());
    auto line = [&](const char* name, const std::function<double(uint32_t)>& of_rows) {
        std::printf("| %s | %.3f | %.3f |\n", name, of_rows(1), of_rows(6));
        std::fflush(stdout);
    };
    auto slot = [](uint32_t top_k, float top_p, float min_p) {
        gpu::SlotState s = neutral_state();
        s.top_k = top_k, s.top_p = top_p, s.min_p = min_p;
        return s;
    };
    line("vocab_partials and pick", [&](uint32_t n) {
        const Batch b = batch(n, 100, neutral_state());
        return milliseconds([&](Recorder& to) {
            record_vocab_partials(to, b.logits.view(), b.state.view(), b.partials.view(), b.shape);
            to.cmd.barrier();
            record_pick(to, b.partials.view(), b.choices.view(), n, kVocab);
        });
    });
    for (uint32_t context : {100u, 1000u, 8000u}) {
        gpu::SlotState s = neutral_state();
        s.repeat_penalty = 1.1f;
        line(("penalties, context of " + std::to_string(context)).c_str(), [&](uint32_t n) { return transforms_ms(batch(n, context, s), true, {}); });
    }
    gpu::SlotState biased = neutral_state();
    biased.n_biases = 10;
    line("10 biases", [&](uint32_t n) { return transforms_ms(batch(n, 100, biased), true, {}); });
    biased.n_biases = gpu::kMaxBiases;
    line("1024 biases", [&](uint32_t n) { return transforms_ms(batch(n, 100, biased), true, {}); });
    line("min_p 0.05", [&](uint32_t n) { return transforms_ms(batch(n, 100, slot(0, 1, 0.05f)), false, {false, false, true}); });
    line("top_k 40", [&](uint32_t n) { return transforms_ms(batch(n, 100, slot(40, 1, 0)), false, {true, false, false}); });
    line("top_p 0.95", [&](uint32_t n) { return transforms_ms(batch(n, 100, slot(0, 0.95f, 0)), false, {false, true, false}); });
    line("top_k 40, top_p 0.95, min_p 0.05", [&](uint32_t n) { return transforms_ms(batch(n, 100, slot(40, 0.95f, 0.05f)), false, {true, true, true}); });
    line("slots that ask for nothing, all stages", [&](uint32_t n) { return transforms_ms(batch(n, 100, neutral_state()), true, {true, true, true}); });
    line("one empty dispatch", [&](uint32_t n) { return transforms_ms(batch(n, 100, neutral_state()), true, {}); });
}

} // namespace
} // namespace auspex::transforms_long
