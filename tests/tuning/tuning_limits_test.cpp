// What is measured unasked ends in time at every stage, and what it changes of the bits is used only where the next start knows it.
// Most kernels are empty here, so that compiling them takes the time that a test gives them.
#include "base/replace_file.h"
#include "kernels/embedded_shaders.h"
#include "session/tuning/prompt_check.h"
#include "session/tuning/row_comparison.h"
#include "test_shaders.h"
#include "tuning/tuning_fixture.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

namespace auspex::tuning_limits_test {
namespace {

using namespace test;

// void main() {}
constexpr uint32_t kNothing[] = {0x07230203, 0x00010000, 0, 5, 0,
                                 0x00020011, 1,                             // OpCapability Shader
                                 0x0003000e, 0, 1,                          // OpMemoryModel Logical GLSL450
                                 0x0005000f, 5, 1, 0x6e69616d, 0,           // OpEntryPoint GLCompute %1 "main"
                                 0x00060010, 1, 17, 1, 1, 1,                // OpExecutionMode %1 LocalSize 1 1 1
                                 0x00020013, 2, 0x00030021, 3, 2,           // void; void()
                                 0x00050036, 2, 1, 0, 3, 0x000200f8, 4,     // %1
                                 0x000100fd, 0x00010038};                   // OpReturn, OpFunctionEnd

// All but those whose names begin so.
void empty_kernels(KernelLibrary& kernels, std::initializer_list<std::string_view> except = {}) {
    for (std::string_view name : embedded_shader_names())
        if (std::none_of(except.begin(), except.end(), [&](std::string_view prefix) { return name.starts_with(prefix); })) kernels.replace(std::string(name), kNothing);
}

void slow_matvecs(KernelLibrary& kernels) {
    for (std::string_view name : embedded_shader_names())
        if (name.starts_with("matvec")) kernels.replace(std::string(name), test_shader("slow"));
}

// Between the engine and vkCreateComputePipelines: notes when each is begun, and lets it take some time. And vkDestroyPipeline: what is
// timed goes before what was chosen is compared.
struct Pipelines {
    static inline PFN_vkCreateComputePipelines real = nullptr;
    static inline PFN_vkDestroyPipeline real_destroy = nullptr;
    static inline bool has_destroyed = false;
    static inline uint32_t each_ms = 0, n_quick = 0; // the first ones take no time
    static inline std::vector<uint64_t> begun_ns;
    static inline std::set<std::pair<uint32_t, uint32_t>> rows_and_steps; // ROWS and AHEAD of the mat-vec family's (dots.glsl)

    static void note_sizes(const VkSpecializationInfo* info) {
        const auto constant = [&](uint32_t id) {
            uint32_t value = 0;
            for (uint32_t i = 0; info && i < info->mapEntryCount; ++i)
                if (info->pMapEntries[i].constantID == id) std::memcpy(&value, static_cast<const char*>(info->pData) + info->pMapEntries[i].offset, sizeof value);
            return value;
        };
        rows_and_steps.insert({constant(4), constant(6)});
    }
    static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice device, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo* infos,
                                                 const VkAllocationCallbacks* callbacks, VkPipeline* pipelines) {
        begun_ns.push_back(now_ns());
        note_sizes(infos[0].stage.pSpecializationInfo);
        if (begun_ns.size() > n_quick) std::this_thread::sleep_for(std::chrono::milliseconds(each_ms));
        return real(device, cache, count, infos, callbacks, pipelines);
    }
    static VKAPI_ATTR void VKAPI_CALL destroy(VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks* callbacks) {
        has_destroyed = true;
        real_destroy(device, pipeline, callbacks);
    }
    static VkHook hook(uint32_t ms, uint32_t quick = 0) {
        each_ms = ms;
        n_quick = quick;
        begun_ns.clear();
        rows_and_steps.clear();
        has_destroyed = false;
        return [](VkFunctions& vk) {
            if (!vk.CreateComputePipelines || vk.CreateComputePipelines == create) return;
            real = vk.CreateComputePipelines;
            real_destroy = vk.DestroyPipeline;
            vk.CreateComputePipelines = create;
            vk.DestroyPipeline = destroy;
        };
    }
    static uint64_t end_ns(double limit_ms) { return begun_ns.at(0) + static_cast<uint64_t>(limit_ms * 1e6); }
    // One may have been begun just when time was up.
    static void expect_none_after(double limit_ms) {
        ASSERT_FALSE(begun_ns.empty());
        EXPECT_LE(std::count_if(begun_ns.begin(), begun_ns.end(), [&](uint64_t ns) { return ns > end_ns(limit_ms); }), 1) << limit_ms << " ms, " << begun_ns.size() << " in all";
    }
    static void wait_until_after(double limit_ms) {
        while (now_ns() <= end_ns(limit_ms)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
};

DeviceTuning tuned(const EngineDesc& desc, Lines& lines) {
    auto result = Engine::tune(desc, lines.log());
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(result).value() : DeviceTuning{};
}

TEST(TuningLimits, no_kernel_is_begun_after_the_time_is_up) {
    for (const auto& [each_ms, limit_ms] : {std::pair{60u, 300.0}, {60u, 500.0}, {30u, 1500.0}}) {
        Folder folder("limits");
        EngineDesc desc = as_gpu(folder.path.string(), TuningMode::automatic);
        desc.device.hook = Pipelines::hook(each_ms, 3); // by which it is reckoned how long the others will take
        desc.adjust_kernels = [](KernelLibrary& kernels) { empty_kernels(kernels); };
        desc.tuning_limits.once_ms = limit_ms;
        Lines lines;
        tuned(desc, lines);
        Pipelines::expect_none_after(limit_ms);
        EXPECT_EQ(lines.text, "");
    }
}

// What was chosen is compared once more, in what is left of the time; where nothing is left it is not used.
TEST(TuningLimits, what_cannot_be_compared_again_in_time_is_not_used) {
    bool has_clock = true, has_chosen = false;
    // Where other work leaves a start no time to choose anything, it gets more.
    for (double limit_ms = 3000; limit_ms <= 100'000 && has_clock && !has_chosen; limit_ms *= 3) {
        Folder folder("again");
        EngineDesc desc = as_gpu(folder.path.string(), TuningMode::automatic);
        desc.device.hook = Pipelines::hook(0);
        std::optional<Tuning> base;
        desc.adjust_kernels = [&](KernelLibrary& kernels) { // whatever else is tried is faster, from the first
            if (!base) base = kernels.tuning();
            has_clock = kernels.device().caps.timestamp_period_ns > 0;
            empty_kernels(kernels);
            if (kernels.tuning() == *base) slow_matvecs(kernels);
            if (!Pipelines::has_destroyed || has_chosen) return;
            has_chosen = true;
            Pipelines::wait_until_after(limit_ms);
        };
        desc.tuning_limits.once_ms = limit_ms;
        Lines lines;
        const DeviceTuning result = tuned(desc, lines);
        EXPECT_EQ(lines.text, "");
        if (!has_chosen) continue;
        Pipelines::expect_none_after(limit_ms);
        EXPECT_FALSE(result.times.empty());
        EXPECT_FALSE(result.is_timed);
        EXPECT_EQ(result.tuning, *base);
        EXPECT_EQ(result.rows, RowCounts::agree);
    }
    EXPECT_EQ(has_chosen, has_clock);
}

// Timing, which would go on for longer than it may, leaves time for that: what it found by then is used and kept.
TEST(TuningLimits, timing_ends_early_enough_to_compare_what_it_chose) {
    std::optional<DeviceTuning> result;
    std::optional<Tuning> base;
    bool has_clock = true;
    const auto was_cut_short = [&] { return result && !result->times.empty() && !result->is_complete; };
    // Where compiling takes much longer than what the hook adds, it is reckoned that there is no time for timing: longer then.
    for (uint32_t each_ms = 60; each_ms <= 240 && has_clock && !was_cut_short(); each_ms *= 2) {
        Folder folder("reserve");
        EngineDesc desc = as_gpu(folder.path.string(), TuningMode::automatic);
        desc.device.hook = Pipelines::hook(each_ms);
        base.reset();
        desc.adjust_kernels = [&](KernelLibrary& kernels) { // whatever else is tried is faster, from the first
            if (!base) base = kernels.tuning();
            has_clock = kernels.device().caps.timestamp_period_ns > 0;
            empty_kernels(kernels);
            if (kernels.tuning() != *base) return;
            slow_matvecs(kernels);
        };
        desc.tuning_limits.once_ms = 108.0 * each_ms; // that many pipelines; timing makes about 116, the comparison before it 13
        Lines lines;
        result = tuned(desc, lines);
        EXPECT_EQ(lines.text, "");
    }
    if (!has_clock) return;
    ASSERT_TRUE(was_cut_short()) << "nothing is shown";
    EXPECT_TRUE(result->tuning != *base);
    EXPECT_TRUE(result->is_timed);
    EXPECT_TRUE(result->is_kept);
}

// Three drafts and four are as usual, and GPUs run the pass of one more in tiles of twice as many rows, which registers hold less well.
TEST(TuningLimits, steps_of_several_rows_are_timed_in_tiles_of_4_and_of_8) {
    Folder folder("tiles");
    EngineDesc desc = as_gpu(folder.path.string(), TuningMode::full);
    desc.device.hook = Pipelines::hook(0);
    bool has_clock = true;
    std::optional<Tuning> base;
    desc.adjust_kernels = [&](KernelLibrary& kernels) {
        if (!base) base = kernels.tuning();
        has_clock = kernels.device().caps.timestamp_period_ns > 0;
        empty_kernels(kernels);
        if (kernels.tuning().matvec_many_outs != base->matvec_many_outs) slow_matvecs(kernels); // by chance they would win, and leave fewer steps
    };
    desc.tuning_limits.full_ms = 300'000;
    Lines lines;
    tuned(desc, lines);
    for (uint32_t rows : {4u, 8u})
        for (uint32_t steps : ahead_choices()) EXPECT_TRUE(!has_clock || Pipelines::rows_and_steps.contains({rows, steps})) << rows << " rows, " << steps << " steps";
}

// Where row counts differ and there is no time to look for the largest that agrees with itself, a row in a tile of its own does.
TEST(TuningLimits, tiles_of_one_row_are_left_when_no_larger_one_was_compared) {
    double limit_ms = 200'000;
    for (const bool is_late : {false, true}) {
        Folder folder("pad");
        EngineDesc desc = as_gpu(folder.path.string(), TuningMode::automatic);
        desc.device.hook = Pipelines::hook(0);
        bool is_padding = false;
        double until_then_ms = 0;
        desc.adjust_kernels = [&](KernelLibrary& kernels) {
            empty_kernels(kernels, {"matvec", "random_fill"});
            for (const char* shader : {"matvec", "matvec.subgroup"}) kernels.replace(shader, test_shader(shader + std::string(".fault1"))); // tiles of 4 rows round otherwise
            if (kernels.tuning().matvec_rows.size() > 1 || is_padding) return;
            is_padding = true;
            if (!is_late) until_then_ms = static_cast<double>(now_ns() - Pipelines::begun_ns.at(0)) * 1e-6;
            if (is_late) Pipelines::wait_until_after(limit_ms);
        };
        desc.tuning_limits.once_ms = limit_ms;
        Lines lines;
        const DeviceTuning result = tuned(desc, lines);
        EXPECT_TRUE(is_padding);
        EXPECT_EQ(result.rows, RowCounts::differ);
        EXPECT_NE(lines.text.find("do not give the same bits"), std::string::npos) << lines.text;
        ASSERT_EQ(result.tuning.matvec_rows.size(), 1u);
        EXPECT_EQ(result.tuning.matvec_rows[0] == 1, is_late) << result.tuning.matvec_rows[0];
        EXPECT_EQ(result.is_kept, !is_late) << "the next start looks further";
        if (is_late) Pipelines::expect_none_after(limit_ms);
        limit_ms = 4 * until_then_ms + 2000;
    }
}

TEST(TuningLimits, the_checks_themselves_begin_nothing_late) {
    auto device = Device::create({.device = "", .hook = Pipelines::hook(0)}, warnings_to_stderr());
    ASSERT_TRUE(device.ok()) << device.status().message();
    auto kernels = KernelLibrary::create(*device.value(), choose_tuning(device.value()->caps), "");
    ASSERT_TRUE(kernels.ok()) << kernels.status().message();
    empty_kernels(*kernels.value());
    const DType formats[] = {DType::f32, DType::q4_0};
    auto rows = compare_row_counts(*device.value(), *kernels.value(), formats, now_ns() - 1);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_FALSE(rows.value().is_complete);
    auto prompts = prompt_kernel_error(*device.value(), *kernels.value(), DType::f32, now_ns() - 1);
    ASSERT_TRUE(prompts.ok()) << prompts.status().message();
    EXPECT_FALSE(prompts.value());
    EXPECT_EQ(Pipelines::begun_ns.size(), 0u);
    // Time is up while the first one is compiled.
    Pipelines::each_ms = 60;
    auto cut = prompt_kernel_error(*device.value(), *kernels.value(), DType::f32, now_ns() + 50'000'000);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    EXPECT_FALSE(cut.value());
    EXPECT_EQ(Pipelines::begun_ns.size(), 1u);
}

// ---- the choice that changes bits -------------------------------------------------------------------------------------------

// matmul.halves as the kernel for matrix units is given its constants: one place on.
std::span<const uint32_t> halves_for_matrices() {
    static const std::vector<uint32_t> words = [] {
        const auto halves = embedded_shader("matmul.halves");
        std::vector<uint32_t> moved(halves.begin(), halves.end());
        for (size_t at = 5; at < moved.size() && moved[at] >> 16 != 0; at += moved[at] >> 16)
            if ((moved[at] & 0xffff) == 71 && moved[at + 2] == 1) moved[at + 3] += 1; // OpDecorate … SpecId
        return moved;
    }();
    return words;
}

// A device of Intel's that claims matrix units: prompts by them are faster when they are timed, and right when they are checked.
struct ClaimsUnits {
    bool is_timed = false; // what follows are checks
    EngineDesc desc(const std::string& folder, TuningMode mode) {
        EngineDesc desc = as_gpu(folder, mode);
        desc.adjust_caps = [](DeviceCaps& caps) {
            caps.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
            caps.vendor_id = 0x8086;
            caps.shader_float16 = true;
            caps.matrix = {8, 8, 16};
        };
        desc.adjust_kernels = [this](KernelLibrary& kernels) {
            const Tuning& tuning = kernels.tuning();
            if (!tuning.prompts_use_matrices()) return empty_kernels(kernels, {"matmul"});
            is_timed = is_timed || Pipelines::has_destroyed;
            if (!is_timed) return empty_kernels(kernels);
            empty_kernels(kernels, {"matvec", "random_fill", "split_halves"});
            kernels.replace("matmul_matrix", halves_for_matrices());
        };
        desc.device.hook = Pipelines::hook(0);
        desc.tuning_limits.once_ms = 300'000;
        return desc;
    }
};

bool can_claim_units() {
    ClaimsUnits device;
    Lines lines;
    auto engine = make_engine([&] {
        EngineDesc desc = device.desc("", TuningMode::off);
        desc.adjust_kernels = nullptr;
        return desc;
    }());
    return engine && with_matrices(engine->tuning(), engine->device().caps).prompts_use_matrices() && engine->device().caps.timestamp_period_ns > 0;
}

TEST(TuningLimits, matrix_units_are_not_used_where_that_cannot_be_kept) {
    if (!can_claim_units()) return;
    for (const bool may_write : {true, false}) {
        Folder folder("keep");
        if (!may_write) std::filesystem::create_directories(folder.path / "tuning.json" / "in the way");
        ClaimsUnits device;
        Lines lines;
        const DeviceTuning first = tuned(device.desc(folder.path.string(), TuningMode::automatic), lines);
        EXPECT_EQ(first.is_kept, may_write) << lines.text;
        EXPECT_EQ(first.tuning.prompts_use_matrices(), may_write) << lines.text;
        EXPECT_EQ(lines.text.find("could not be kept; they do without") == std::string::npos, may_write) << lines.text;
        const DeviceTuning second = tuned(device.desc(folder.path.string(), TuningMode::off), lines);
        EXPECT_EQ(second.is_from_store, may_write);
        EXPECT_EQ(second.tuning.numerics_id(), first.tuning.numerics_id()) << "the next start says something else";
    }
}

// `auspex tune` measures anew what changes no bit.
TEST(TuningLimits, matrix_units_that_were_chosen_stay_chosen) {
    if (!can_claim_units()) return;
    Folder folder("stay");
    ClaimsUnits device;
    Lines lines;
    const DeviceTuning first = tuned(device.desc(folder.path.string(), TuningMode::automatic), lines);
    ASSERT_TRUE(first.tuning.prompts_use_matrices()) << lines.text;
    EngineDesc desc = device.desc(folder.path.string(), TuningMode::full);
    desc.tuning_limits.full_ms = 0; // nothing is timed: whatever is found to be faster now
    const DeviceTuning again = tuned(desc, lines);
    EXPECT_TRUE(again.is_kept);
    EXPECT_EQ(again.tuning.numerics_id(), first.tuning.numerics_id());
    const DeviceTuning next = tuned(device.desc(folder.path.string(), TuningMode::automatic), lines);
    EXPECT_TRUE(next.is_from_store);
    EXPECT_EQ(next.tuning.numerics_id(), first.tuning.numerics_id());
    EXPECT_EQ(lines.text, "");
}

} // namespace
} // namespace auspex::tuning_limits_test
