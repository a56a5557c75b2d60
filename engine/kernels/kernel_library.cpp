// Builds kernels on demand and keeps the driver's pipeline cache in a file that the host names.
#include "kernels/kernel_library.h"

#include "base/replace_file.h"
#include "kernels/embedded_shaders.h"
#include "shared/texels.h"

#include <vector>

namespace auspex {

namespace {
TexelBinding texel_binding(uint32_t binding) {
    const uint32_t of = binding % gpu::kTexelVecs, kind = binding - of;
    return {binding, of, kind == gpu::kTexelVecs ? 16u : kind == gpu::kTexelPairs ? 8u : 4u};
}
} // namespace

Result<std::unique_ptr<KernelLibrary>> KernelLibrary::create(Device& device, const Tuning& tuning, const std::string& cache_folder) {
    std::unique_ptr<KernelLibrary> library(new KernelLibrary(device, tuning));
    std::string stored;
    if (!cache_folder.empty()) {
        library->cache_path_ = cache_folder + "/pipelines-" + std::to_string(device.caps.vendor_id) + "-" +
                               std::to_string(device.caps.driver_id) + ".bin";
        auto file = read_text_file(library->cache_path_, 256u << 20);
        if (file.ok()) stored = std::move(file).value();
    }
    VkPipelineCacheCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    info.initialDataSize = stored.size();
    info.pInitialData = stored.data();
    VkResult result = device.vk.CreatePipelineCache(device.handle, &info, nullptr, &library->cache_);
    if (result != VK_SUCCESS && !stored.empty()) { // a damaged file is no reason to fail
        info.initialDataSize = 0;
        result = device.vk.CreatePipelineCache(device.handle, &info, nullptr, &library->cache_);
    }
    if (result != VK_SUCCESS) library->cache_ = VK_NULL_HANDLE; // undefined after a failure
    AUSPEX_TRY(device.check(result, "vkCreatePipelineCache"));
    return library;
}

KernelLibrary::~KernelLibrary() {
    kernels_.clear();
    if (cache_) device_->vk.DestroyPipelineCache(device_->handle, cache_, nullptr);
}

Result<const Kernel*> KernelLibrary::get(const KernelId& id) {
    bool wide = tuning_.wide && !id.wide_variant.empty();
    bool by_shuffles = wide || (id.has_subgroup_variant && tuning_.subgroup);
    std::string shader = wide ? id.wide_variant : id.shader + (by_shuffles ? ".subgroup" : "");
    std::string key = shader;
    std::vector<uint32_t> constants = id.constants;
    std::vector<TexelBinding> texels;
    if (wide && !id.texels.empty()) {
        for (uint32_t binding : id.texels) texels.push_back(texel_binding(binding));
        constants.resize(gpu::kTexelsConstant); // those between are nobody's
        constants.push_back(tuning_.texels ? 1 : 0);
    }
    for (uint32_t constant : constants) key += "," + std::to_string(constant);
    auto found = kernels_.find(key);
    if (found != kernels_.end()) return static_cast<const Kernel*>(found->second.get());
    auto replaced = replaced_.find(shader);
    KernelDesc desc;
    desc.name = key;
    desc.spirv = replaced != replaced_.end() ? replaced->second : embedded_shader(shader);
    desc.n_bindings = id.n_bindings;
    desc.args_bytes = id.args_bytes;
    desc.constants = constants;
    desc.texels = texels;
    desc.subgroup_size = by_shuffles || id.full_subgroups ? tuning_.pinned_subgroup_size : 0;
    AUSPEX_TRY_ASSIGN(kernel, Kernel::create(*device_, desc, cache_));
    auto [at, inserted] = kernels_.emplace(key, std::make_unique<Kernel>(std::move(kernel)));
    return static_cast<const Kernel*>(at->second.get());
}

void KernelLibrary::save_cache() const {
    if (cache_path_.empty() || device_->lost()) return;
    size_t size = 0;
    if (device_->vk.GetPipelineCacheData(device_->handle, cache_, &size, nullptr) != VK_SUCCESS || size == 0) return;
    std::vector<char> data(size);
    if (device_->vk.GetPipelineCacheData(device_->handle, cache_, &size, data.data()) != VK_SUCCESS) return;
    static_cast<void>(replace_file(cache_path_, {data.data(), size})); // without it, the next run compiles again
}

const Kernel* Recorder::kernel(const KernelId& id) {
    if (!cmd.ok()) return nullptr;
    auto kernel = kernels.get(id);
    if (kernel.ok()) return kernel.value();
    cmd.fail(kernel.status());
    return nullptr;
}

} // namespace auspex
