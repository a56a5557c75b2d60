// Commits one named fault against Vulkan, or runs the same work correctly; validation_test.cpp watches what the layer says.
// Usage: planted_fault FAULT, and exits with 0 when the work ran; or planted_fault layer, which prints the version of the
// validation layer, "1.3" or "1.4…", as the settings files are named, and then its full number.
#include "device/buffer.h"
#include "kernels/swiglu.h"
#include "shared/swiglu_args.h"
#include "test_shaders.h"

#include <cstdio>
#include <cstring>
#include <string>

using namespace auspex;

namespace {

constexpr uint32_t kWidth = 256;
constexpr uint64_t kBytes = 4 * kWidth; // of one row

struct Stage {
    std::unique_ptr<Device> device;
    std::unique_ptr<MemoryPool> memory;
    std::unique_ptr<KernelLibrary> kernels;
    Buffer a, b, c; // (2, kWidth) f32 each: swiglu reads two rows and writes one
    Buffer counts;  // 3 uint, all bits of 0.0 but the last word: no workgroups
    VkFence fence = VK_NULL_HANDLE;
    PFN_vkCmdPipelineBarrier real_barrier = nullptr;
    std::vector<std::unique_ptr<Recording>> recordings;

    Status open();
    ~Stage();
    // The table's own barrier goes missing until the next call with true.
    void barriers(bool on);
    Status submit(const std::function<void(Recorder&)>& record, bool opening_barrier = true);
    Status wait();
    void in_place(Recorder& to);
};

VKAPI_ATTR void VKAPI_CALL no_barrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags, VkDependencyFlags, uint32_t,
                                      const VkMemoryBarrier*, uint32_t, const VkBufferMemoryBarrier*, uint32_t,
                                      const VkImageMemoryBarrier*) {}

Status Stage::open() {
    AUSPEX_TRY_SET(device, Device::create({}, Logger{}));
    real_barrier = device->vk.CmdPipelineBarrier;
    memory = std::make_unique<MemoryPool>(*device);
    AUSPEX_TRY_SET(kernels, KernelLibrary::create(*device, choose_tuning(device->caps), ""));
    for (Buffer* buffer : {&a, &b, &c, &counts}) {
        AUSPEX_TRY_SET(*buffer, memory->create(2 * kBytes, MemoryUse::upload));
        std::memset(buffer->mapped(), 0, buffer->size());
    }
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    return device->check(device->vk.CreateFence(device->handle, &info, nullptr, &fence), "vkCreateFence");
}

Stage::~Stage() {
    if (fence) device->vk.DestroyFence(device->handle, fence, nullptr);
}

void Stage::barriers(bool on) {
    device->vk.CmdPipelineBarrier = on ? real_barrier : no_barrier;
}

Status Stage::submit(const std::function<void(Recorder&)>& record, bool opening_barrier) {
    AUSPEX_TRY_ASSIGN(made, Recording::create(*device, 0));
    barriers(opening_barrier);
    made->begin_segment("planted");
    barriers(true);
    Recorder to = {*made, *kernels};
    record(to);
    made->end_segment();
    AUSPEX_TRY(made->finish());
    recordings.push_back(std::move(made));
    VkCommandBuffer buffer = recordings.back()->segment(0);
    return device->submit(&buffer, 1, VK_NULL_HANDLE);
}

Status Stage::wait() {
    AUSPEX_TRY(device->submit(nullptr, 0, fence));
    return device->wait_until_done(fence);
}

void Stage::in_place(Recorder& to) {
    kernels->replace("in_place", test_shader("in_place"));
    if (const auto kernel = to.kernel<ops::InPlace>())
        to.cmd.dispatch(kernel, {kWidth / 64, 1, 1}, {.n_rows = 1, .width = kWidth, .y_stride = kWidth, .step = 1, .up_offset = kWidth}, {.values = a.view()});
}

Status commit(const std::string& fault) {
    Stage stage;
    AUSPEX_TRY(stage.open());
    auto swiglu = [](Recorder& to, const Buffer& from, const Buffer& into) { record_swiglu(to, from.view(), into.view(), 1, kWidth); };
    const bool right = fault == "none";
    if (right || fault == "read_after_write")
        AUSPEX_TRY(stage.submit([&](Recorder& to) {
            swiglu(to, stage.a, stage.b);
            if (right) to.cmd.barrier();
            swiglu(to, stage.b, stage.c);
        }));
    if (right || fault == "write_after_write")
        AUSPEX_TRY(stage.submit([&](Recorder& to) {
            swiglu(to, stage.a, stage.c);
            if (right) to.cmd.barrier();
            swiglu(to, stage.b, stage.c);
        }));
    if (right || fault == "indirect_counts")
        AUSPEX_TRY(stage.submit([&](Recorder& to) {
            swiglu(to, stage.a, stage.counts);
            if (right) to.cmd.barrier();
            const auto kernel = to.kernel<ops::Swiglu>();
            if (!kernel) return;
            const gpu::SwigluArgs args = {.n_rows = 1, .width = kWidth, .y_stride = kWidth, .step = 1, .up_offset = kWidth};
            const ops::Swiglu::Bindings buffers = {.gate_up = stage.a.view(), .y = stage.b.view()};
            if (right) return to.cmd.dispatch_indirect(kernel, stage.counts.view(), args, buffers);
            to.cmd.dispatch(kernel, {0, 1, 1}, args, buffers); // binds all, and makes no barrier for the counts
            to.cmd.device().vk.CmdDispatchIndirect(to.cmd.segment(to.cmd.n_segments() - 1), stage.counts.view().buffer, stage.counts.view().offset);
        }));
    if (right || fault == "copy_after_dispatch")
        AUSPEX_TRY(stage.submit([&](Recorder& to) {
            swiglu(to, stage.a, stage.b);
            if (right) to.cmd.transfer_barrier();
            to.cmd.copy(stage.b.view(0, kBytes), stage.c.view(0, kBytes));
        }));
    if (right || fault == "in_place")
        AUSPEX_TRY(stage.submit([&](Recorder& to) {
            stage.in_place(to);
            if (right) to.cmd.barrier();
            stage.in_place(to);
        }));
    if (right || fault == "across_submissions") {
        AUSPEX_TRY(stage.submit([&](Recorder& to) { swiglu(to, stage.a, stage.b); }));
        AUSPEX_TRY(stage.submit([&](Recorder& to) { swiglu(to, stage.b, stage.c); }, right));
    }
    if (right || fault == "in_place_across_submissions") {
        AUSPEX_TRY(stage.submit([&](Recorder& to) { stage.in_place(to); }));
        AUSPEX_TRY(stage.submit([&](Recorder& to) { stage.in_place(to); }, right));
    }
    if (fault == "binding_beyond_buffer")
        AUSPEX_TRY(stage.submit([&](Recorder& to) { record_swiglu(to, {stage.a.view().buffer, kBytes, 2 * kBytes}, stage.b.view(), 1, kWidth); }));
    return stage.wait();
}

int print_layer_version() {
    auto loader = SharedLibrary::open_vulkan_loader();
    if (!loader.ok()) return 1;
    const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(loader.value()->symbol("vkGetInstanceProcAddr"));
    const auto layers = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(get(VK_NULL_HANDLE, "vkEnumerateInstanceLayerProperties"));
    uint32_t n = 0;
    layers(&n, nullptr);
    std::vector<VkLayerProperties> found(n);
    layers(&n, found.data());
    for (const VkLayerProperties& layer : found) {
        if (std::strcmp(layer.layerName, "VK_LAYER_KHRONOS_validation") != 0) continue;
        const uint32_t version = layer.specVersion;
        std::printf("%s %u.%u.%u\n", version < VK_MAKE_API_VERSION(0, 1, 4, 0) ? "1.3" : "1.4", VK_API_VERSION_MAJOR(version),
                    VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
        return 0;
    }
    std::fprintf(stderr, "VK_LAYER_KHRONOS_validation is not installed (Debian: vulkan-validationlayers)\n");
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    if (std::strcmp(argv[1], "layer") == 0) return print_layer_version();
    const Status status = commit(argv[1]);
    if (status.ok()) return 0;
    std::fprintf(stderr, "planted_fault %s: %s\n", argv[1], status.message().c_str());
    return 1;
}
