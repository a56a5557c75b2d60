// A compute pipeline with its layout: storage buffers at bindings 0…n-1 of set 0, some of them at further bindings as texel
// buffers, too, and one push-constant struct.
#pragma once

#include "device/device.h"

#include <span>
#include <string>
#include <vector>

namespace auspex {

// A storage texel buffer that shows a storage buffer's bytes as unsigned integers.
struct TexelBinding {
    uint32_t binding;     // n_bindings or higher
    uint32_t of;          // the storage buffer's
    uint32_t texel_bytes; // 4 or 16: R32, R32G32B32A32
};

constexpr size_t kMostConstants = 16;

// What a pipeline's layout is made for; device/op.h knows it of an op.
struct KernelLayout {
    uint32_t n_bindings = 0; // storage buffers
    uint32_t args_bytes = 0; // push constants, ≤ 128
};

struct KernelDesc {
    std::string name;                   // for messages and labels
    std::span<const uint32_t> spirv;
    KernelLayout layout = {};
    std::span<const uint32_t> constants; // specialization constants 0…n-1, at most kMostConstants
    uint32_t subgroup_size = 0;         // pinned; 0: whatever the device does
    bool full_subgroups = false;        // required
    std::span<const TexelBinding> texels = {};
};

class Kernel {
  public:
    static Result<Kernel> create(Device& device, const KernelDesc& desc, VkPipelineCache cache);
    // The same in two steps. The second takes the time; it changes nothing of the device's, so that several kernels may be
    // compiled at once, and throws nothing.
    static Result<Kernel> create_uncompiled(Device& device, const KernelDesc& desc);
    struct Compiled {
        VkResult result = VK_SUCCESS;
        const char* call = ""; // that answered it
    };
    Compiled compile(const KernelDesc& desc, VkPipelineCache cache) noexcept;
    Status check(const Compiled& compiled) const; // on the thread that asks the device for all else

    Kernel(Kernel&& other) noexcept { *this = std::move(other); }
    Kernel& operator=(Kernel&& other) noexcept;
    ~Kernel() { release(); }

    VkPipeline pipeline() const { return pipeline_; }
    VkPipelineLayout layout() const { return layout_; }
    VkDescriptorSetLayout set_layout() const { return set_layout_; }
    const KernelLayout& takes() const { return takes_; }
    const std::vector<TexelBinding>& texels() const { return texels_; }
    const std::string& name() const { return name_; }

  private:
    Kernel() = default;
    void release();
    Device* device_ = nullptr;
    std::string name_;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    KernelLayout takes_;
    std::vector<TexelBinding> texels_;
};

} // namespace auspex
