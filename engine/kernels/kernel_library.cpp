// Builds kernels on demand and keeps the driver's pipeline cache in a file that the host names.
#include "kernels/kernel_library.h"

#include "base/replace_file.h"
#include "base/side_by_side.h"
#include "kernels/embedded_shaders.h"
#include "shared/texels.h"

#include <vector>

namespace auspex {

namespace {
TexelBinding texel_binding(uint32_t binding) {
    const uint32_t of = binding % gpu::kTexelVecs, kind = binding - of;
    return {binding, of, kind == gpu::kTexelVecs ? 16u : 4u};
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

KernelLibrary::Variant KernelLibrary::variant_of(const KernelId& id) const {
    const bool wide = tuning_.wide && !id.wide_variant.empty();
    const bool by_shuffles = wide || (id.has_subgroup_variant && tuning_.subgroup);
    Variant variant;
    variant.shader = wide ? id.wide_variant : id.shader + (by_shuffles ? ".subgroup" : "");
    variant.constants = id.constants;
    if (wide && !id.texels.empty()) {
        for (uint32_t binding : id.texels) variant.texels.push_back(texel_binding(binding));
        variant.constants.resize(gpu::kTexelsConstant); // those between are nobody's
        variant.constants.push_back(tuning_.texels ? 1 : 0);
    }
    variant.subgroup_size = by_shuffles || id.full_subgroups ? tuning_.pinned_subgroup_size : 0;
    variant.key = variant.shader;
    for (uint32_t constant : variant.constants) variant.key += "," + std::to_string(constant);
    return variant;
}

Result<const Kernel*> KernelLibrary::get(const KernelId& id) {
    const std::string key = variant_of(id).key;
    auto found = kernels_.find(key);
    if (found == kernels_.end()) {
        AUSPEX_TRY(build({&id, 1}));
        found = kernels_.find(key);
    }
    return static_cast<const Kernel*>(found->second.get());
}

Status KernelLibrary::build(std::span<const KernelId> ids) {
    struct Missing {
        Variant variant;
        KernelDesc desc; // points into the variant
        std::unique_ptr<Kernel> kernel;
        Kernel::Compiled compiled = {};
    };
    std::map<std::string, Missing> by_key;
    std::vector<Missing*> missing;
    for (const KernelId& id : ids) {
        Variant variant = variant_of(id);
        if (kernels_.contains(variant.key) || by_key.contains(variant.key)) continue;
        Missing& made = by_key[variant.key];
        made.variant = std::move(variant);
        auto replaced = replaced_.find(made.variant.shader);
        made.desc = {.name = made.variant.key,
                     .spirv = replaced != replaced_.end() ? replaced->second : embedded_shader(made.variant.shader),
                     .n_bindings = id.n_bindings,
                     .args_bytes = id.args_bytes,
                     .constants = made.variant.constants,
                     .subgroup_size = made.variant.subgroup_size,
                     .texels = made.variant.texels};
        AUSPEX_TRY_ASSIGN(kernel, Kernel::create_uncompiled(*device_, made.desc));
        made.kernel = std::make_unique<Kernel>(std::move(kernel));
        missing.push_back(&made);
    }
    side_by_side(missing.size(), n_threads_, [&](size_t i) { missing[i]->compiled = missing[i]->kernel->compile(missing[i]->desc, cache_); });
    for (Missing* made : missing) {
        AUSPEX_TRY(made->kernel->check(made->compiled));
        kernels_.emplace(made->variant.key, std::move(made->kernel));
    }
    return ok_status();
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
    if (names) {
        names->push_back(id);
        return nullptr;
    }
    if (!cmd.ok()) return nullptr;
    auto kernel = kernels.get(id);
    if (kernel.ok()) return kernel.value();
    cmd.fail(kernel.status());
    return nullptr;
}

void name_kernels(KernelLibrary& kernels, const std::function<void(Recorder&)>& record, std::vector<KernelId>& names) {
    const std::unique_ptr<Recording> nowhere = Recording::nowhere(kernels.device());
    Recorder rehearsal = {*nowhere, kernels, &names};
    record(rehearsal);
}

void record_with_kernels(Recording& cmd, KernelLibrary& kernels, const std::function<void(Recorder&)>& record) {
    if (kernels.n_threads() > 1) {
        std::vector<KernelId> names;
        name_kernels(kernels, record, names);
        cmd.fail(kernels.build(names));
    }
    Recorder to = {cmd, kernels};
    record(to);
}

} // namespace auspex
