// A compute pipeline with its layout: storage buffers at bindings 0…n-1 of set 0, and one push-constant struct.
#pragma once

#include "device/device.h"

#include <span>
#include <string>

namespace auspex {

struct KernelDesc {
    std::string name;                   // for messages and labels
    std::span<const uint32_t> spirv;
    uint32_t n_bindings = 0;            // storage buffers
    uint32_t args_bytes = 0;            // push constants, ≤ 128
    std::span<const uint32_t> constants; // specialization constants 0…n-1
    uint32_t subgroup_size = 0;         // pinned and full; 0: whatever the device does
};

class Kernel {
  public:
    static Result<Kernel> create(Device& device, const KernelDesc& desc, VkPipelineCache cache);
    Kernel(Kernel&& other) noexcept { *this = std::move(other); }
    Kernel& operator=(Kernel&& other) noexcept;
    ~Kernel() { release(); }

    VkPipeline pipeline() const { return pipeline_; }
    VkPipelineLayout layout() const { return layout_; }
    VkDescriptorSetLayout set_layout() const { return set_layout_; }
    uint32_t n_bindings() const { return n_bindings_; }
    uint32_t args_bytes() const { return args_bytes_; }
    const std::string& name() const { return name_; }

  private:
    Kernel() = default;
    void release();
    Device* device_ = nullptr;
    std::string name_;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    uint32_t n_bindings_ = 0;
    uint32_t args_bytes_ = 0;
};

} // namespace auspex
