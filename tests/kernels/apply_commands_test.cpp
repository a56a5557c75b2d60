// The host's commands: each changes one word, and commands beyond the count are not there.
#include "gpu_test.h"
#include "kernels/apply_commands.h"
#include "shared/slot_state.h"

namespace auspex::apply_commands_test {
namespace {

class ApplyCommands : public GpuTest {
  protected:
    static constexpr uint32_t kSlots = 11, kHistory = 33, kPages = 7, kDraftPages = 5;

    // Applies the first `count` of `commands` and returns state, history, target pages, draft pages, biases as words.
    std::vector<std::vector<uint32_t>> apply(const std::vector<gpu::SlotCommand>& commands, uint32_t count,
                                             uint32_t max_commands) {
        const Buffer n = upload(std::vector<uint32_t>{count}), list = upload(commands);
        const std::vector<uint32_t> words{kSlots * gpu::kSlotStateWords, kSlots * kHistory, kSlots * kPages,
                                          kSlots * kDraftPages, kSlots * 2 * gpu::kMaxBiases};
        std::vector<Buffer> targets;
        for (uint32_t w : words)
            targets.push_back(output<uint32_t>(w));
        run([&](Recorder& to) {
            record_apply_commands(
                to, {.n_commands = n.view(), .commands = list.view(), .state = targets[0].view(), .history = targets[1].view(),
                     .target_pages = targets[2].view(), .draft_pages = targets[3].view(), .biases = targets[4].view()},
                max_commands, kHistory, kPages, kDraftPages);
        });
        std::vector<std::vector<uint32_t>> out;
        for (size_t i = 0; i < words.size(); ++i)
            out.push_back(read<uint32_t>(targets[i], words[i]));
        return out;
    }
};

TEST_F(ApplyCommands, change_the_words_they_name_and_no_other) {
    const std::vector<uint32_t> width{gpu::kSlotStateWords, kHistory, kPages, kDraftPages, 2 * gpu::kMaxBiases};
    std::vector<gpu::SlotCommand> commands;
    std::vector<std::vector<uint32_t>> expected;
    for (uint32_t op = 0; op < 5; ++op) {
        expected.emplace_back(kSlots * width[op], kPoison);
        for (uint32_t at = op; at < kSlots * width[op]; at += 3)
            commands.push_back({op, at / width[op], at % width[op], 100 * op + at});
    }
    ASSERT_GT(commands.size(), 128u); // more than one turn of the workgroup
    const auto all = static_cast<uint32_t>(commands.size());
    for (const uint32_t count : {0u, 1u, 70u, all - 1}) {
        std::vector<std::vector<uint32_t>> now = expected;
        for (uint32_t i = 0; i < count; ++i)
            now[commands[i].op][commands[i].slot * width[commands[i].op] + commands[i].index] = commands[i].value;
        EXPECT_EQ(apply(commands, count, all), now) << count << " commands";
    }
    EXPECT_EQ(apply(commands, 0xffffffffu, 70), apply(commands, 70, all)) << "a count beyond the buffer is cut to it";
}

TEST_F(ApplyCommands, know_the_layout_of_a_slot) {
    EXPECT_EQ(sizeof(gpu::SlotState), gpu::kSlotStateWords * 4);
    const auto after = apply({{gpu::kCommandState, 2, offsetof(gpu::SlotState, temperature) / 4, 0x3f800000u}}, 1, 1);
    gpu::SlotState slot;
    std::memcpy(&slot, &after[0][2 * gpu::kSlotStateWords], sizeof slot);
    EXPECT_EQ(slot.temperature, 1.0f);
}

} // namespace
} // namespace auspex::apply_commands_test
