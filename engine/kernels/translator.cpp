// Dispatches nothing, and waits for it.
#include "kernels/translator.h"

#include "device/recording.h"

#include <exception>

namespace auspex {

Result<std::unique_ptr<Translator>> Translator::create(const Device& device) {
    std::unique_ptr<Translator> translator(new Translator());
    AUSPEX_TRY_ASSIGN(twin, device.twin());
    translator->device_ = std::move(twin);
    translator->memory_ = std::make_unique<MemoryPool>(*translator->device_);
    AUSPEX_TRY_ASSIGN(any, translator->memory_->create(256, MemoryUse::device));
    translator->any_ = std::move(any);
    return translator;
}

Status Translator::try_to(const KernelDesc& desc) {
    AUSPEX_TRY_ASSIGN(kernel, Kernel::create(*device_, desc, VK_NULL_HANDLE));
    AUSPEX_TRY_ASSIGN(recording, Recording::create(*device_, 0));
    recording->begin_segment("translate");
    recording->dispatch_nothing(kernel, any_.view());
    recording->end_segment();
    AUSPEX_TRY(recording->finish());
    VkFence fence = VK_NULL_HANDLE;
    const VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    AUSPEX_VK_MAKE(*device_, fence, CreateFence(device_->handle, &info, nullptr, &fence));
    const VkCommandBuffer commands = recording->segment(0);
    Status status = device_->submit(&commands, 1, fence);
    if (status.ok()) status = device_->wait_until_done(fence);
    device_->vk.DestroyFence(device_->handle, fence, nullptr);
    return status;
}

void Translator::translate(const KernelDesc& desc) noexcept try {
    static_cast<void>(try_to(desc));
} catch (const std::exception&) { // out of memory
}

} // namespace auspex
