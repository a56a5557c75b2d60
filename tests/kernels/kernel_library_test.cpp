// Kernels are built once, one by one or side by side, and what could not be built is named.
#include "gpu_test.h"
#include "kernels/rmsnorm.h"
#include "kernels/swiglu.h"
#include "shared/swiglu_args.h"

namespace auspex {
namespace {

class KernelLibraryTest : public GpuTest {
  protected:
    static constexpr uint32_t kWidth = 96;
    // A norm behind a SwiGLU, with what both leave.
    std::vector<float> record_and_run(KernelLibrary& library) {
        const Buffer x = upload(random_floats(2 * kWidth, 1)), scale = upload(random_floats(kWidth, 2)), between = output<float>(kWidth),
                     y = output<float>(kWidth);
        auto made = Recording::create(device(), 0);
        EXPECT_TRUE(made.ok());
        Recording& recording = *made.value();
        record_with_kernels(recording, library, [&](Recorder& to) {
            ++n_times_;
            to.cmd.begin_segment("test");
            record_swiglu(to, x.view(), between.view(), 1, kWidth);
            to.cmd.barrier();
            record_rmsnorm(to, between.view(), scale.view(), y.view(), {kWidth, 1, 1e-5f, 0, 1});
            to.cmd.end_segment();
        });
        EXPECT_TRUE(recording.finish().ok()) << recording.finish().message();
        EXPECT_EQ(recording.n_dispatches(), 2u);
        EXPECT_EQ(recording.n_segments(), 1u);
        submit_and_wait(recording);
        return floats(y, kWidth);
    }
    static KernelId swiglu() { return {"swiglu", 2, sizeof(gpu::SwigluArgs), false, {}}; }
    int n_times_ = 0;
};

TEST_F(KernelLibraryTest, builds_the_same_side_by_side) {
    const std::vector<float> one_by_one = record_and_run(*new_library());
    EXPECT_EQ(n_times_, 1);
    auto library = new_library();
    library->use_threads(4);
    EXPECT_TRUE(same_bits(record_and_run(*library), one_by_one));
    EXPECT_EQ(n_times_, 3) << "no rehearsal";
}

TEST_F(KernelLibraryTest, builds_each_kernel_once) {
    auto library = new_library();
    library->use_threads(4);
    const std::vector<KernelId> twice = {swiglu(), swiglu()};
    ASSERT_TRUE(library->build(twice).ok());
    library->replace("swiglu", {}); // nothing to build it from any more
    EXPECT_TRUE(library->build(twice).ok());
    EXPECT_TRUE(library->get(swiglu()).ok());
}

TEST_F(KernelLibraryTest, names_what_it_could_not_build) {
    for (uint32_t n_threads : {1u, 4u}) {
        auto library = new_library();
        library->use_threads(n_threads);
        KernelId unknown = swiglu();
        unknown.shader = "no such shader";
        const Status status = library->build(std::vector<KernelId>{swiglu(), unknown});
        EXPECT_EQ(status.code(), Code::internal);
        EXPECT_NE(status.message().find("no such shader"), std::string::npos) << status.message();
        EXPECT_TRUE(library->get(swiglu()).ok());
    }
}

} // namespace
} // namespace auspex
