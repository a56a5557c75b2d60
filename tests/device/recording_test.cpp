// Recordings: segments, regions and their times, indirect dispatch, copies, and errors that stick.
#include "gpu_test.h"
#include "kernels/swiglu.h"

#include <cmath>

namespace auspex::recording_test {
namespace {

class RecordingTest : public GpuTest {
  protected:
    static constexpr uint32_t kWidth = 64;
    std::unique_ptr<Recording> new_recording(uint32_t max_regions = 0, const Buffer* times = nullptr) {
        auto made = Recording::create(device(), max_regions, times);
        EXPECT_TRUE(made.ok()) << made.status().message();
        return std::move(made).value();
    }
    KernelOf<ops::Swiglu> swiglu(Recorder& to) { return to.kernel<ops::Swiglu>(); }
    static gpu::SwigluArgs args(uint32_t width = kWidth) { return {.n_rows = 1, .width = width, .y_stride = width, .step = 1, .up_offset = width}; }
    std::vector<float> ones() { return std::vector<float>(2 * kWidth, 1.0f); }
};

TEST_F(RecordingTest, SegmentsSeeEachOthersWritesAndRunAgain) {
    Buffer a = upload(ones()), b = output<float>(2 * kWidth), c = output<float>(kWidth);
    std::unique_ptr<Recording> recording = new_recording();
    Recorder to{*recording, kernels()};
    recording->begin_segment("first");
    record_swiglu(to, a.view(), b.view(), 1, kWidth);
    recording->barrier();
    record_swiglu(to, a.view(), b.view(4 * kWidth, 4 * kWidth), 1, kWidth);
    recording->end_segment();
    recording->begin_segment("second");
    record_swiglu(to, b.view(), c.view(), 1, kWidth);
    recording->end_segment();
    ASSERT_TRUE(recording->finish().ok()) << recording->finish().message();
    EXPECT_EQ(recording->n_segments(), 2u);
    const float once = 1.0f / (1.0f + std::exp(-1.0f));
    for (int run = 0; run < 3; ++run) {
        submit_and_wait(*recording);
        const float twice = once * once / (1.0f + std::exp(-once));
        for (float v : floats(c, kWidth)) EXPECT_NEAR(v, twice, 1e-5f);
        std::fill_n(reinterpret_cast<float*>(c.mapped()), kWidth, 0.0f);
    }
}

TEST_F(RecordingTest, RegionsHaveTimesAndNames) {
    Buffer a = upload(ones()), b = output<float>(kWidth), ticks = output<uint64_t>(6);
    for (const Buffer* in_memory : {static_cast<const Buffer*>(nullptr), static_cast<const Buffer*>(&ticks)}) {
        std::unique_ptr<Recording> recording = new_recording(3, in_memory);
        Recorder to{*recording, kernels()};
        for (Region region : {Region::draft, Region::verify, Region::accept, Region::fork}) { // the last is beyond what was asked for: no time, no error
            recording->begin_segment("segment");
            recording->begin_region(region);
            record_swiglu(to, a.view(), b.view(), 1, kWidth);
            recording->end_region();
            recording->end_segment();
        }
        ASSERT_TRUE(recording->finish().ok());
        uint64_t last_tick = 0;
        for (int run = 0; run < 2; ++run) {
            submit_and_wait(*recording);
            const auto times = recording->region_times();
            ASSERT_EQ(times.size(), 3u);
            for (uint32_t i = 0; i < 3; ++i) {
                EXPECT_EQ(times[i].segment, i);
                EXPECT_GE(times[i].ms, 0.0);
                EXPECT_LT(times[i].ms, 60'000.0);
                EXPECT_GE(times[i].begin_tick, last_tick + (i == 0 ? 1 : 0)) << i; // a clock that did not wrap just now
                EXPECT_GE(times[i].end_tick, times[i].begin_tick) << i;
                last_tick = times[i].end_tick;
            }
            EXPECT_GT(last_tick, 0u);
            EXPECT_EQ(times[1].region, Region::verify);
            EXPECT_STREQ(region_name(times[1].region), "verify");
        }
    }
}

// A cut within a region goes on with it in the next segment; one between regions opens none.
TEST_F(RecordingTest, CutsKeepOrderAndRegions) {
    const std::vector<float> x = random_floats(64, 1);
    const Buffer from = upload(x), middle = output<float>(64), to = output<float>(64);
    std::unique_ptr<Recording> recording = new_recording(8);
    recording->begin_segment("cut");
    recording->begin_region(Region::draft);
    recording->transfer_barrier();
    recording->copy(from.view(), middle.view());
    recording->transfer_barrier();
    recording->cut();
    recording->copy(middle.view(), to.view());
    recording->end_region();
    recording->cut();
    recording->begin_region(Region::verify);
    recording->end_region();
    recording->end_segment();
    ASSERT_TRUE(recording->finish().ok());
    EXPECT_EQ(recording->n_segments(), 3u);
    submit_and_wait(*recording);
    EXPECT_EQ(floats(to, 64), x);
    const auto times = recording->region_times();
    ASSERT_EQ(times.size(), 3u);
    const Region regions[] = {Region::draft, Region::draft, Region::verify};
    for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(times[i].region, regions[i]);
        EXPECT_EQ(times[i].segment, i);
    }
}

// … as asking llvmpipe for them does.
TEST_F(RecordingTest, TimesInMemoryDoNotWaitForWhatIsInFlight) {
    Buffer ticks = output<uint64_t>(2);
    std::unique_ptr<Recording> timed = new_recording(1, &ticks), after = new_recording();
    timed->begin_segment("timed");
    timed->begin_region(Region::pass);
    timed->end_region();
    timed->end_segment();
    constexpr uint64_t kBytes = 64ull << 20;
    auto from = memory().create(kBytes, MemoryUse::device), to = memory().create(kBytes, MemoryUse::device);
    ASSERT_TRUE(from.ok() && to.ok());
    after->begin_segment("some gigabytes");
    after->fill(from.value().view(), 1);
    for (int i = 0; i < 40; ++i) {
        after->transfer_barrier();
        after->copy(from.value().view(), to.value().view());
    }
    after->end_segment();
    ASSERT_TRUE(timed->finish().ok() && after->finish().ok());

    VkFence fences[2];
    for (VkFence& fence : fences) {
        VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
        ASSERT_EQ(device().vk.CreateFence(device().handle, &info, nullptr, &fence), VK_SUCCESS);
    }
    for (int i = 0; i < 2; ++i) {
        const VkCommandBuffer segment = (i == 0 ? *timed : *after).segment(0);
        ASSERT_TRUE(device().submit(&segment, 1, fences[i]).ok());
    }
    ASSERT_TRUE(device().wait_until_done(fences[0]).ok());
    EXPECT_GE(timed->region_times()[0].ms, 0.0);
    EXPECT_GT(timed->region_times()[0].end_tick, 0u);
    EXPECT_EQ(device().vk.GetFenceStatus(device().handle, fences[1]), VK_NOT_READY);
    ASSERT_TRUE(device().wait_until_done(fences[1]).ok());
    for (VkFence fence : fences) device().vk.DestroyFence(device().handle, fence, nullptr);
}

TEST_F(RecordingTest, TimesAreNotAvailableWithoutTimestamps) {
    auto made = Device::create({.device = "", .hook = {}, .want_timestamps = false}, Logger{});
    ASSERT_TRUE(made.ok());
    auto recording = Recording::create(*made.value(), 2);
    ASSERT_TRUE(recording.ok());
    recording.value()->begin_segment("segment");
    recording.value()->begin_region(Region::pass);
    recording.value()->end_region();
    recording.value()->end_segment();
    EXPECT_TRUE(recording.value()->finish().ok());
    EXPECT_TRUE(recording.value()->region_times().empty());
}

TEST_F(RecordingTest, IndirectCountsComeFromTheBuffer) {
    for (uint32_t groups : {0u, 1u, 3u}) {
        Buffer a = upload(std::vector<float>(2 * 256, 1.0f)), b = output<float>(256);
        Buffer counts = upload(std::vector<uint32_t>{7, 7, 7, 7, groups, 1, 1, 7});
        run([&](Recorder& to) {
            to.cmd.dispatch_indirect(swiglu(to), counts.view(16, 12), args(256), {.gate_up = a.view(), .y = b.view()});
        });
        const std::vector<uint32_t> words = read<uint32_t>(b, 256);
        for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(words[i] == kPoison, i >= 64 * groups) << i;
    }
}

TEST_F(RecordingTest, CopiesAndFillsReachExactlyTheirRange) {
    Buffer from = upload(std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8}), to_buffer = poisoned(64);
    run([&](Recorder& to) {
        to.cmd.copy(from.view(8, 12), to_buffer.view(16, 12));
        to.cmd.fill(to_buffer.view(40, 8), 9);
        to.cmd.transfer_barrier();
    });
    EXPECT_EQ(read<uint32_t>(to_buffer, 16), (std::vector<uint32_t>{kPoison, kPoison, kPoison, kPoison, 3, 4, 5, kPoison, kPoison, kPoison, 9, 9,
                                                                  kPoison, kPoison, kPoison, kPoison}));
}

TEST_F(RecordingTest, ManyDispatchesTakeManyDescriptorPools) {
    Buffer a = upload(ones()), b = output<float>(kWidth);
    run([&](Recorder& to) {
        for (int i = 0; i < 1000; ++i) {
            record_swiglu(to, a.view(), b.view(), 1, kWidth);
            to.cmd.barrier();
        }
    });
    EXPECT_NEAR(floats(b, 1)[0], 1.0f / (1.0f + std::exp(-1.0f)), 1e-5f);
}

// Ops that are not what swiglu's kernel takes, as no library hands out, and one without a shader.
struct OneBuffer {
    using Args = gpu::SwigluArgs;
    struct Bindings {
        BufferView only;
    };
};
struct OneWord {
    using Args = uint32_t;
    using Bindings = ops::Swiglu::Bindings;
};
struct Unbuilt {
    static constexpr std::string_view kShader = "no_such_kernel";
    using Args = NoArgs;
    using Bindings = ops::Swiglu::Bindings;
};

// ---- errors ---------------------------------------------------------------------------------------------------------------

TEST_F(RecordingTest, TheFirstErrorSticksAndNothingIsRecordedAfterIt) {
    const Buffer a = upload(ones()), b = output<float>(kWidth);
    const ops::Swiglu::Bindings both = {.gate_up = a.view(), .y = b.view()};
    const uint32_t limit = device().caps.max_groups[0];
    struct Case {
        const char* words;
        std::function<void(Recorder&, KernelOf<ops::Swiglu>)> record;
    };
    const std::vector<Case> cases = {
        {"a grid of ", [&](Recorder& to, KernelOf<ops::Swiglu> k) { to.cmd.dispatch(k, {limit + 1, 1, 1}, args(), both); }},
        {"a grid of ", [&](Recorder& to, KernelOf<ops::Swiglu> k) { to.cmd.dispatch(k, {1, limit + 1, 1}, args(), both); }},
        {"a grid of ", [&](Recorder& to, KernelOf<ops::Swiglu> k) { to.cmd.dispatch(k, {1, 1, limit + 1}, args(), both); }},
        {"takes 2 buffers", [&](Recorder& to, KernelOf<ops::Swiglu> k) { to.cmd.dispatch(KernelOf<OneBuffer>{k.kernel}, {1, 1, 1}, args(), {.only = a.view()}); }},
        {"bytes of arguments", [&](Recorder& to, KernelOf<ops::Swiglu> k) { to.cmd.dispatch(KernelOf<OneWord>{k.kernel}, {1, 1, 1}, 1, both); }},
        {"no buffer at slot 1", [&](Recorder& to, KernelOf<ops::Swiglu> k) { to.cmd.dispatch(k, {1, 1, 1}, args(), {.gate_up = a.view(), .y = {}}); }},
        {"above the device's range",
         [&](Recorder& to, KernelOf<ops::Swiglu> k) {
             BufferView wide = a.view();
             wide.size = device().caps.max_storage_buffer_range + 4;
             to.cmd.dispatch(k, {1, 1, 1}, args(), {.gate_up = wide, .y = b.view()});
         }},
    };
    for (const Case& one : cases) {
        std::unique_ptr<Recording> recording = new_recording(1);
        Recorder to{*recording, kernels()};
        recording->begin_segment("segment");
        one.record(to, swiglu(to));
        EXPECT_FALSE(recording->ok()) << one.words;
        const std::string message = recording->finish().message();
        EXPECT_NE(message.find(one.words), std::string::npos) << message;
        // Everything after it is ignored, in any order.
        recording->fail({Code::io, "a later error"});
        recording->begin_region(Region::pass);
        record_swiglu(to, a.view(), b.view(), 1, kWidth);
        recording->copy(a.view(), b.view());
        recording->fill(b.view(), 0);
        recording->end_region();
        recording->end_segment();
        recording->begin_segment("another");
        recording->end_segment();
        EXPECT_EQ(recording->finish().message(), message);
        EXPECT_EQ(recording->finish().code(), Code::internal);
    }
    // The same grid is fine where the limit allows it.
    EXPECT_EQ(device().caps.max_groups[0], limit);
}

TEST_F(RecordingTest, UnknownKernelsAreNamed) {
    std::unique_ptr<Recording> recording = new_recording();
    Recorder to{*recording, kernels()};
    recording->begin_segment("segment");
    EXPECT_FALSE(to.kernel<Unbuilt>());
    EXPECT_NE(recording->finish().message().find("no_such_kernel"), std::string::npos);
}

TEST_F(RecordingTest, LoweredLimitsAreKept) {
    auto made = Device::create({}, Logger{});
    ASSERT_TRUE(made.ok());
    Device& own = *made.value();
    own.caps.max_groups[0] = 3;
    MemoryPool pool(own);
    auto library = KernelLibrary::create(own, choose_tuning(own.caps), "");
    ASSERT_TRUE(library.ok());
    auto a = pool.create(4096, MemoryUse::device), b = pool.create(4096, MemoryUse::device);
    ASSERT_TRUE(a.ok() && b.ok());
    for (uint32_t width : {64u * 3, 64u * 4}) {
        auto recording = Recording::create(own, 0);
        ASSERT_TRUE(recording.ok());
        recording.value()->begin_segment("segment");
        Recorder to{*recording.value(), *library.value()};
        record_swiglu(to, a.value().view(), b.value().view(), 1, width);
        recording.value()->end_segment();
        EXPECT_EQ(recording.value()->finish().ok(), width == 64u * 3);
    }
}

} // namespace
} // namespace auspex::recording_test
