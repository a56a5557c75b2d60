// Builds one compute pipeline, its layout first.
#include "device/kernel.h"

#include <array>
#include <utility>

namespace auspex {

Kernel& Kernel::operator=(Kernel&& other) noexcept {
    if (this == &other) return *this;
    release();
    device_ = std::exchange(other.device_, nullptr);
    name_ = std::move(other.name_);
    set_layout_ = std::exchange(other.set_layout_, VK_NULL_HANDLE);
    layout_ = std::exchange(other.layout_, VK_NULL_HANDLE);
    pipeline_ = std::exchange(other.pipeline_, VK_NULL_HANDLE);
    takes_ = other.takes_;
    texels_ = std::move(other.texels_);
    return *this;
}

void Kernel::release() {
    if (!device_) return;
    if (pipeline_) device_->vk.DestroyPipeline(device_->handle, pipeline_, nullptr);
    if (layout_) device_->vk.DestroyPipelineLayout(device_->handle, layout_, nullptr);
    if (set_layout_) device_->vk.DestroyDescriptorSetLayout(device_->handle, set_layout_, nullptr);
    device_ = nullptr;
}

Result<Kernel> Kernel::create(Device& device, const KernelDesc& desc, VkPipelineCache cache) {
    AUSPEX_TRY_ASSIGN(kernel, create_uncompiled(device, desc));
    AUSPEX_TRY(kernel.check(kernel.compile(desc, cache)));
    return kernel;
}

Result<Kernel> Kernel::create_uncompiled(Device& device, const KernelDesc& desc) {
    if (desc.constants.size() > kMostConstants) return Status(Code::internal, "kernel " + desc.name + " has too many constants");
    if (desc.spirv.empty()) return Status(Code::internal, "kernel " + desc.name + " was not built into this library");
    Kernel kernel;
    kernel.device_ = &device;
    kernel.name_ = desc.name;
    kernel.takes_ = desc.layout;
    kernel.texels_.assign(desc.texels.begin(), desc.texels.end());

    std::vector<VkDescriptorSetLayoutBinding> bindings(desc.layout.n_bindings);
    for (uint32_t i = 0; i < desc.layout.n_bindings; ++i)
        bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    for (const TexelBinding& texels : desc.texels)
        bindings.push_back({texels.binding, VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    VkDescriptorSetLayoutCreateInfo set_info = {};
    set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set_info.bindingCount = static_cast<uint32_t>(bindings.size());
    set_info.pBindings = bindings.data();
    AUSPEX_VK_MAKE(device, kernel.set_layout_, CreateDescriptorSetLayout(device.handle, &set_info, nullptr, &kernel.set_layout_));

    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, desc.layout.args_bytes};
    VkPipelineLayoutCreateInfo layout_info = {};
    layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &kernel.set_layout_;
    layout_info.pushConstantRangeCount = desc.layout.args_bytes ? 1 : 0;
    layout_info.pPushConstantRanges = &range;
    AUSPEX_VK_MAKE(device, kernel.layout_, CreatePipelineLayout(device.handle, &layout_info, nullptr, &kernel.layout_));
    return kernel;
}

Kernel::Compiled Kernel::compile(const KernelDesc& desc, VkPipelineCache cache) noexcept {
    VkShaderModuleCreateInfo module_info = {};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = desc.spirv.size_bytes();
    module_info.pCode = desc.spirv.data();
    VkShaderModule module = VK_NULL_HANDLE;
    VkResult result = device_->vk.CreateShaderModule(device_->handle, &module_info, nullptr, &module);
    if (result != VK_SUCCESS) return {result, "vkCreateShaderModule"};

    std::array<VkSpecializationMapEntry, kMostConstants> entries;
    for (uint32_t i = 0; i < desc.constants.size(); ++i) entries[i] = {i, i * 4u, 4u};
    VkSpecializationInfo specialization = {static_cast<uint32_t>(desc.constants.size()), entries.data(),
                                           desc.constants.size_bytes(), desc.constants.data()};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo pinned = {};
    pinned.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
    pinned.requiredSubgroupSize = desc.subgroup_size;
    VkComputePipelineCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.pNext = desc.subgroup_size ? &pinned : nullptr;
    if (desc.full_subgroups) info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &specialization;
    info.layout = layout_;
    result = device_->vk.CreateComputePipelines(device_->handle, cache, 1, &info, nullptr, &pipeline_);
    if (result != VK_SUCCESS) pipeline_ = VK_NULL_HANDLE; // undefined after a failure
    device_->vk.DestroyShaderModule(device_->handle, module, nullptr);
    return {result, "vkCreateComputePipelines"};
}

Status Kernel::check(const Compiled& compiled) const {
    const Status status = device_->check(compiled.result, compiled.call);
    return status.ok() ? status : Status(status.code(), status.message() + " for kernel " + name_);
}

} // namespace auspex
