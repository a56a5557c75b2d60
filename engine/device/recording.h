// Command buffers recorded once and submitted often: a list of segments, each safe to submit after any earlier work on the
// queue, with the descriptor sets and timestamps they use. Recording functions keep the first error and go on doing
// nothing, so that a forward pass reads like the paper; finish() tells.
#pragma once

#include "device/buffer.h"
#include "device/op.h"
#include "device/region.h"

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace auspex {

struct Groups {
    uint32_t x = 1, y = 1, z = 1;
};

class Recording {
  public:
    // max_regions: timestamped regions; 0 for none. With `times` (readback; (max_regions, 2) uint64: begin and
    // end tick) every segment puts its timestamps there, for drivers that wait for all in flight when they are asked for them.
    static Result<std::unique_ptr<Recording>> create(Device& device, uint32_t max_regions, const Buffer* times = nullptr);
    static uint64_t times_bytes(uint32_t max_regions) { return uint64_t(max_regions) * 16; }
    // One that does nothing, as after a failure.
    static std::unique_ptr<Recording> nowhere(Device& device);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // A segment opens with a barrier from all earlier compute, transfer and host writes on this queue, and closes with
    // one to the host. Everything is recorded between the two.
    void begin_segment(const char* label);
    void end_segment();
    // Ends the segment here and goes on in another of the same label, within the same region if one is open.
    void cut();

    // Makes writes of earlier dispatches visible to later dispatches. dispatch_indirect sees to its counts by itself, where a dispatch may
    // have written them: a stage that waits for indirect arguments, too, takes NVIDIA's devices longer.
    void barrier();

    // Every member of bindings names a buffer. What a form of an op does not use is bound to another one that the dispatch uses in the
    // same way: validation layers know only what the shader's text does.
    template <typename Op>
    void dispatch(const KernelOf<Op>& kernel, Groups groups, const typename Op::Args& args, const typename Op::Bindings& bindings) {
        record_dispatch(*kernel.kernel, &args, layout_of<Op>().args_bytes, buffers_of<Op>(bindings));
        dispatch_groups(groups);
    }
    // group counts: three uints at `counts`
    template <typename Op>
    void dispatch_indirect(const KernelOf<Op>& kernel, BufferView counts, const typename Op::Args& args, const typename Op::Bindings& bindings) {
        record_dispatch(*kernel.kernel, &args, layout_of<Op>().args_bytes, buffers_of<Op>(bindings));
        dispatch_counts(counts);
    }
    // An empty grid, with `any` at every binding.
    void dispatch_nothing(const Kernel& kernel, BufferView any);
    void copy(BufferView from, BufferView to); // from.size bytes; transfer stage: put transfer_barrier() around
    void fill(BufferView view, uint32_t value);
    void transfer_barrier();                   // compute and transfer, both ways

    // The time between here and end_region() is this region's. Regions do not nest.
    void begin_region(Region region);
    void end_region();

    // While on, what follows a stage() up to the next one, or to end_stages(), is that region; else these do nothing.
    // For tools that look into a pass: the timestamps between stages cost time themselves.
    void time_stages(bool on) { times_stages_ = on; }
    void stage(Region region) {
        end_stages();
        if (times_stages_) begin_region(region);
        stage_open_ = times_stages_;
    }
    void end_stages() {
        if (stage_open_) end_region();
        stage_open_ = false;
    }

    // Remembers a failure that happened while recording (a kernel that could not be built).
    void fail(Status status) {
        if (status_.ok()) status_ = std::move(status);
    }
    bool ok() const { return status_.ok(); }
    // The first error, if any. Afterwards the recording is fixed.
    Status finish();

    Device& device() const { return *device_; }
    uint32_t n_segments() const { return static_cast<uint32_t>(segments_.size()); }
    VkCommandBuffer segment(uint32_t index) const { return segments_[index]; }
    uint32_t n_dispatches() const { return n_dispatches_; } // so far
    uint32_t n_barriers() const { return n_barriers_; }     // … of barrier()

    struct RegionTime {
        Region region;
        uint32_t segment; // in which it lies
        double ms;        // < 0: not available
        uint64_t begin_tick, end_tick; // of the device's clock, as many bits as are valid; 0 when not available
    };
    // Times of the last execution, which must be complete.
    std::vector<RegionTime> region_times() const;

  private:
    explicit Recording(Device& device) : device_(&device) {}
    void record_dispatch(const Kernel& kernel, const void* args, size_t args_bytes, std::span<const BufferView> bindings);
    void dispatch_groups(Groups groups);
    void dispatch_counts(BufferView counts);
    Result<VkDescriptorSet> allocate_set(const Kernel& kernel);
    Result<VkBufferView> texel_view(const BufferView& buffer, uint32_t texel_bytes);
    void copy_times();
    void memory_barrier(VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to, VkAccessFlags reads);

    Device* device_;
    Status status_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    std::vector<VkCommandBuffer> segments_;
    VkCommandBuffer current_ = VK_NULL_HANDLE;
    const char* label_ = ""; // of the current segment
    std::vector<BufferView> bound_; // by dispatches since indirect arguments were last made visible
    std::vector<VkDescriptorPool> descriptor_pools_;
    std::vector<VkBufferView> views_;
    VkQueryPool queries_ = VK_NULL_HANDLE;
    uint32_t max_regions_ = 0;
    const Buffer* times_ = nullptr; // begin and end tick of each region, if not null
    struct TimedRegion {
        Region region;
        uint32_t segment;
    };
    std::vector<TimedRegion> regions_;
    std::optional<Region> region_; // that is open
    bool region_open_ = false;     // … and timed
    bool times_stages_ = false, stage_open_ = false;
    uint32_t n_dispatches_ = 0, n_barriers_ = 0;
};

} // namespace auspex
