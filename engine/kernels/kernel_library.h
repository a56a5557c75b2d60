// Kernels by name and constants, built at first use and kept. Knows which variant of a shader fits the device.
#pragma once

#include "base/background.h"
#include "device/kernel.h"
#include "device/recording.h"
#include "kernels/translator.h"
#include "kernels/tuning.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace auspex {

struct KernelId {
    std::vector<uint32_t> constants = {}; // specialization constants 0…n-1
    std::string variant = {};             // what is built of the op's shader, after its name (".quant"); empty: the plain one
    bool has_subgroup_variant = false;    // "<shader><variant>.subgroup" exists: reductions by shuffles
    std::string wide_variant = {};        // the one for devices that are tuned to wide ones, after its name, too; empty: none
    std::vector<uint32_t> texels = {};    // bindings where that one can read texels instead: kTexel… of shared/texels.h + binding
    bool full_subgroups = false;          // needs subgroups of tuning's size, though it reduces nothing by shuffles
    std::string_view shader = {};         // the op's, as its layout
    KernelLayout layout = {};
};
// Of the op.
template <typename Op> KernelId kernel_id(KernelId id = {}) {
    id.shader = Op::kShader;
    id.layout = layout_of<Op>();
    return id;
}

class KernelLibrary {
  public:
    // cache_folder: where compiled pipelines are kept between runs; empty: nowhere.
    static Result<std::unique_ptr<KernelLibrary>> create(Device& device, const Tuning& tuning, const std::string& cache_folder);
    ~KernelLibrary();
    KernelLibrary(const KernelLibrary&) = delete;
    KernelLibrary& operator=(const KernelLibrary&) = delete;

    Result<const Kernel*> get(const KernelId& id);
    // Those that are missing, side by side on as many threads as this library may use; get() then finds them. translates: with
    // what would be left to the first dispatch, as background threads do it.
    Status build(std::span<const KernelId> ids, bool translates = false);

    // Lets background threads build those that are missing, the first ones first; without such threads it does nothing. What they
    // cannot build is logged once and not tried again there; get() and build() try. An error only where the device is lost.
    Status build_later(std::span<const KernelId> ids);
    // Takes over what background threads have built. An error only where the device is lost.
    Status adopt();
    bool has(const KernelId& id) const { return kernels_.contains(variant_of(id).key); }
    bool is_building() const { return !pending_.empty(); } // in the background
    void use_background_threads(uint32_t n_threads) { background_.use_threads(n_threads); }
    // Begins nothing more and waits for what is under construction, as the destructor does; nothing is built afterwards.
    void end_background();
    uint32_t n_background_threads() const { return background_.n_threads(); }

    size_t n_kernels() const { return kernels_.size(); } // built so far
    // Threads for the time of a build, the caller's among them; 1 unless told otherwise.
    void use_threads(uint32_t n_threads) { n_threads_ = n_threads; }
    uint32_t n_threads() const { return n_threads_; }
    // From now on `shader` (a stem, or a stem with ".subgroup") means this SPIR-V: for tests with planted faults.
    void replace(const std::string& shader, std::span<const uint32_t> spirv) { replaced_[shader] = spirv; }

    Device& device() const { return *device_; }
    const Tuning& tuning() const { return tuning_; }
    void save_cache() const; // best effort

  private:
    // A KernelId as this device has it.
    struct Variant {
        std::string shader, key; // key: with its constants
        std::vector<uint32_t> constants;
        std::vector<TexelBinding> texels;
        uint32_t subgroup_size;
        bool full_subgroups;
    };
    // A kernel on its way: with its layout, not compiled.
    struct Begun {
        Variant variant;
        KernelDesc desc; // points into the variant
        std::unique_ptr<Kernel> kernel;
        Kernel::Compiled compiled = {};
        uint64_t job = 0; // of the background threads
    };
    Variant variant_of(const KernelId& id) const;
    Result<std::unique_ptr<Begun>> begin(const KernelId& id, Variant variant);
    void compile(Begun& begun, bool translates) noexcept; // on any thread
    Status finish(Begun& begun);
    Status give_up(const std::string& key, const Status& status); // in the background
    // Before threads use so many at once.
    void make_translators(uint32_t n);
    KernelLibrary(Device& device, const Tuning& tuning) : device_(&device), tuning_(tuning) {
        tuning_.wide = tuning.wide && tuning.subgroup; // the wide variants exchange by shuffles
    }
    Device* device_;
    Tuning tuning_;
    uint32_t n_threads_ = 1;
    std::string cache_path_;
    VkPipelineCache cache_ = VK_NULL_HANDLE;
    std::map<std::string, std::span<const uint32_t>> replaced_;
    std::map<std::string, std::unique_ptr<Kernel>> kernels_;
    std::map<std::string, std::unique_ptr<Begun>> pending_; // by key: the background threads have them
    std::set<std::string> failed_;                           // there
    std::vector<std::unique_ptr<Translator>> translators_;   // that are idle
    uint32_t n_translators_ = 0;                             // made
    std::mutex translators_mutex_;
    std::atomic<bool> ends_ = false; // what has begun need not be translated any more
    Background background_;                                  // goes first: its threads use the rest
};

// What a record function needs: where to record, and the kernels to record with.
struct Recorder {
    Recording& cmd;
    KernelLibrary& kernels;
    std::vector<KernelId>* names = nullptr; // of a rehearsal: receives the kernels that would be taken
    bool int8_x = false;                    // what is recorded only drafts: x may be rounded to 8 bits, where tuning says so

    const Tuning& tuning() const { return kernels.tuning(); }
    // None after a failure, which the recording remembers, and in a rehearsal.
    template <typename Op> KernelOf<Op> kernel(KernelId id = {}) { return {find(kernel_id<Op>(std::move(id)))}; }
    const Kernel* find(const KernelId& id);
};

// Adds the kernels that record(Recorder&) would take: a rehearsal. Recording functions go on without their kernels, as after a
// failure.
void name_kernels(KernelLibrary& kernels, const std::function<void(Recorder&)>& record, std::vector<KernelId>& names);

// Builds the kernels that record(Recorder&) would take, in its order, one by one; begins none after deadline_ns (of now_ns()). False:
// some are missing then.
Result<bool> build_until(KernelLibrary& kernels, const std::function<void(Recorder&)>& record, uint64_t deadline_ns);

} // namespace auspex
