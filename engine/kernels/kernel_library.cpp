// Builds kernels on demand and keeps the driver's pipeline cache in a file that the host names.
#include "kernels/kernel_library.h"

#include "base/platform.h"
#include "base/replace_file.h"
#include "base/side_by_side.h"
#include "kernels/embedded_shaders.h"
#include "shared/texels.h"

#include <utility>
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

void KernelLibrary::end_background() {
    ends_ = true;
    background_.end();
}

KernelLibrary::~KernelLibrary() {
    end_background();
    translators_.clear();
    pending_.clear();
    kernels_.clear();
    if (cache_) device_->vk.DestroyPipelineCache(device_->handle, cache_, nullptr);
}

KernelLibrary::Variant KernelLibrary::variant_of(const KernelId& id) const {
    const bool wide = tuning_.wide && !id.wide_variant.empty();
    const bool by_shuffles = wide || (id.has_subgroup_variant && tuning_.subgroup);
    Variant variant;
    variant.shader = id.shader;
    variant.shader += wide ? id.wide_variant : id.variant;
    if (by_shuffles && !wide) variant.shader += ".subgroup";
    variant.constants = id.constants;
    if (wide && !id.texels.empty()) {
        for (uint32_t binding : id.texels) variant.texels.push_back(texel_binding(binding));
        variant.constants.resize(gpu::kTexelsConstant); // those between are nobody's
        variant.constants.push_back(tuning_.texels ? 1 : 0);
    }
    const bool by_subgroups = by_shuffles || id.full_subgroups;
    variant.subgroup_size = by_subgroups ? tuning_.pinned_subgroup_size : 0;
    variant.full_subgroups = by_subgroups && tuning_.full_subgroups;
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

Result<std::unique_ptr<KernelLibrary::Begun>> KernelLibrary::begin(const KernelId& id, Variant variant) {
    auto begun = std::make_unique<Begun>();
    begun->variant = std::move(variant);
    const auto replaced = replaced_.find(begun->variant.shader);
    begun->desc = {.name = begun->variant.key,
                   .spirv = replaced != replaced_.end() ? replaced->second : embedded_shader(begun->variant.shader),
                   .layout = id.layout,
                   .constants = begun->variant.constants,
                   .subgroup_size = begun->variant.subgroup_size,
                   .full_subgroups = begun->variant.full_subgroups,
                   .texels = begun->variant.texels};
    AUSPEX_TRY_ASSIGN(kernel, Kernel::create_uncompiled(*device_, begun->desc));
    begun->kernel = std::make_unique<Kernel>(std::move(kernel));
    return begun;
}

void KernelLibrary::make_translators(uint32_t n) {
    if (!tuning_.translates_at_dispatch || background_.n_threads() == 0) return;
    for (; n_translators_ < n; ++n_translators_) {
        auto made = Translator::create(*device_);
        if (!made.ok()) return; // a host's device
        const std::lock_guard lock(translators_mutex_);
        translators_.push_back(std::move(made).value());
    }
}

void KernelLibrary::compile(Begun& begun, bool translates) noexcept {
    begun.compiled = begun.kernel->compile(begun.desc, cache_);
    if (!translates || ends_ || begun.compiled.result != VK_SUCCESS) return;
    std::unique_ptr<Translator> translator;
    {
        const std::lock_guard lock(translators_mutex_);
        if (translators_.empty()) return;
        translator = std::move(translators_.back());
        translators_.pop_back();
    }
    translator->translate(begun.desc);
    const std::lock_guard lock(translators_mutex_);
    translators_.push_back(std::move(translator));
}

Status KernelLibrary::finish(Begun& begun) {
    AUSPEX_TRY(begun.kernel->check(begun.compiled));
    kernels_.emplace(begun.variant.key, std::move(begun.kernel));
    return ok_status();
}

Status KernelLibrary::build(std::span<const KernelId> ids, bool translates) {
    std::vector<std::unique_ptr<Begun>> here, there; // compiled by this call; in the background
    std::set<std::string> keys, pending;
    for (const KernelId& id : ids) {
        Variant variant = variant_of(id);
        if (kernels_.contains(variant.key) || !keys.insert(variant.key).second) continue;
        if (pending_.contains(variant.key)) {
            pending.insert(variant.key);
            continue;
        }
        AUSPEX_TRY_ASSIGN(begun, begin(id, std::move(variant)));
        here.push_back(std::move(begun));
    }
    for (const std::string& key : pending) {
        std::unique_ptr<Begun> begun = std::move(pending_.extract(key).mapped());
        (background_.try_take_back(begun->job) ? here : there).push_back(std::move(begun));
    }
    if (translates && !here.empty()) make_translators(n_threads_ + background_.n_threads());
    side_by_side(here.size(), n_threads_, [&](size_t i) { compile(*here[i], translates); });
    for (const auto& begun : there) background_.wait_for(begun->job);
    Status first = ok_status();
    for (const auto* list : {&here, &there})
        for (const auto& begun : *list)
            if (Status finished = finish(*begun); !finished.ok() && first.ok()) first = std::move(finished);
    return first;
}

Status KernelLibrary::build_later(std::span<const KernelId> ids) {
    if (background_.n_threads() == 0) return ok_status();
    make_translators(background_.n_threads());
    for (const KernelId& id : ids) {
        Variant variant = variant_of(id);
        if (kernels_.contains(variant.key) || pending_.contains(variant.key) || failed_.contains(variant.key)) continue;
        const std::string key = variant.key;
        auto begun = begin(id, std::move(variant));
        if (!begun.ok()) {
            AUSPEX_TRY(give_up(key, begun.status()));
            continue;
        }
        Begun* const compiled = begun.value().get();
        compiled->job = background_.add([this, compiled] { compile(*compiled, true); });
        if (compiled->job == 0) return ok_status(); // no thread could be had
        pending_.emplace(key, std::move(begun).value());
    }
    return ok_status();
}

Status KernelLibrary::give_up(const std::string& key, const Status& status) {
    if (device_->lost()) return status;
    failed_.insert(key);
    device_->log(LogLevel::warning, status.message() + "; rounds that need it are not chosen");
    return ok_status();
}

Status KernelLibrary::adopt() {
    for (auto next = pending_.begin(); next != pending_.end();) {
        const auto one = next++;
        if (!background_.is_done(one->second->job)) continue;
        const std::unique_ptr<Begun> begun = std::move(one->second);
        pending_.erase(one);
        if (const Status finished = finish(*begun); !finished.ok()) AUSPEX_TRY(give_up(begun->variant.key, finished));
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

const Kernel* Recorder::find(const KernelId& id) {
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

Result<bool> build_until(KernelLibrary& kernels, const std::function<void(Recorder&)>& record, uint64_t deadline_ns) {
    std::vector<KernelId> names;
    name_kernels(kernels, record, names);
    for (const KernelId& name : names) {
        if (kernels.has(name)) continue;
        if (now_ns() > deadline_ns) return false;
        AUSPEX_TRY(kernels.get(name).status());
    }
    return true;
}

} // namespace auspex
