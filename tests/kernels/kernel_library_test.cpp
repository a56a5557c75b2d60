// Kernels are built once, one by one or side by side, and what could not be built is named.
#include "gpu_test.h"
#include "kernels/rmsnorm.h"
#include "kernels/swiglu.h"

namespace auspex::kernel_library_test {
namespace {

class KernelLibraryTest : public GpuTest {
  protected:
    static constexpr uint32_t kWidth = 96;
    // A norm after a SwiGLU, with what both leave.
    // how: what builds the kernels; none: recording itself.
    using How = std::function<void(KernelLibrary&, std::span<const KernelId>)>;
    std::vector<float> record_and_run(KernelLibrary& library, const How& how = {}) {
        const Buffer x = upload(random_floats(2 * kWidth, 1)), scale = upload(random_floats(kWidth, 2)), between = output<float>(kWidth),
                     y = output<float>(kWidth);
        auto made = Recording::create(device(), 0);
        EXPECT_TRUE(made.ok());
        Recording& recording = *made.value();
        const auto record = [&](Recorder& to) {
            to.cmd.begin_segment("test");
            record_swiglu(to, x.view(), between.view(), 1, kWidth);
            to.cmd.barrier();
            record_rmsnorm(to, {.x = between.view(), .weight = scale.view(), .y = y.view()}, {kWidth, 1, 1e-5f, 0, 1});
            to.cmd.end_segment();
        };
        if (how) {
            std::vector<KernelId> names;
            name_kernels(library, record, names);
            EXPECT_EQ(names.size(), 2u);
            how(library, names);
            for (const KernelId& name : names) EXPECT_TRUE(library.has(name));
        }
        Recorder to = {recording, library};
        record(to);
        EXPECT_TRUE(recording.finish().ok()) << recording.finish().message();
        EXPECT_EQ(recording.n_dispatches(), 2u);
        EXPECT_EQ(recording.n_segments(), 1u);
        submit_and_wait(recording);
        return floats(y, kWidth);
    }
    static KernelId swiglu() { return kernel_id<ops::Swiglu>(); }
};

TEST_F(KernelLibraryTest, builds_the_same_side_by_side_and_in_the_background) {
    const std::vector<float> one_by_one = record_and_run(*new_library());
    auto library = new_library();
    library->use_threads(4);
    EXPECT_TRUE(same_bits(record_and_run(*library, [](KernelLibrary& of, std::span<const KernelId> ids) { EXPECT_TRUE(of.build(ids).ok()); }), one_by_one));
    for (const bool is_asked_meanwhile : {false, true}) {
        library = new_library();
        library->use_background_threads(2);
        EXPECT_TRUE(same_bits(record_and_run(*library, [&](KernelLibrary& of, std::span<const KernelId> ids) {
            ASSERT_TRUE(of.build_later(ids).ok());
            EXPECT_FALSE(of.has(ids[0]));
            if (is_asked_meanwhile) { EXPECT_TRUE(of.build(ids, true).ok()); }
            while (of.is_building()) ASSERT_TRUE(of.adopt().ok());
        }), one_by_one));
        EXPECT_EQ(library->n_kernels(), 2u);
        EXPECT_FALSE(library->is_building());
    }
}

TEST_F(KernelLibraryTest, without_background_threads_nothing_is_built_later) {
    auto library = new_library();
    ASSERT_TRUE(library->build_later(std::vector<KernelId>{swiglu()}).ok());
    EXPECT_FALSE(library->is_building());
    EXPECT_FALSE(library->has(swiglu()));
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
} // namespace auspex::kernel_library_test
