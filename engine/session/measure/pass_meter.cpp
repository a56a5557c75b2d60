// Records a pass several times, so that the GPU stays busy, and reads its timestamps.
#include "session/measure/pass_meter.h"

#include "kernels/prompt_attention.h"
#include "kernels/rows.h"
#include "kernels/vocab.h"
#include "shared/vocab_args.h"
#include "tensor/upload.h"

#include <algorithm>
#include <cstring>

namespace auspex {

namespace {

constexpr double kSubmissionMs = 100; // about as long may one take

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Regions of a recording whose segments are passes: per name and pass the sum, then the median over the passes.
std::vector<StageTime> stages_of(const Recording& recording) {
    std::vector<StageTime> stages;
    std::vector<std::vector<double>> sums; // (stages, segments)
    for (const Recording::RegionTime& region : recording.region_times()) {
        if (region.ms < 0) return {};
        auto found = std::find_if(stages.begin(), stages.end(), [&](const StageTime& s) { return std::strcmp(s.name, region.name) == 0; });
        const auto at = static_cast<size_t>(found - stages.begin());
        if (found == stages.end()) {
            stages.push_back({region.name, 0, 0});
            sums.emplace_back(recording.n_segments(), 0.0);
        }
        sums[at][region.segment] += region.ms;
        stages[at].count += region.segment == 0 ? 1 : 0;
    }
    for (size_t i = 0; i < stages.size(); ++i) {
        if (sums[i].size() > 1) sums[i].erase(sums[i].begin()); // the first warms up
        stages[i].ms = median(sums[i]);
    }
    return stages;
}

double matrix_elements(const LlamaWeights& weights, const PassRequest& request) {
    auto of = [](const Tensor& t) { return double(t.rows) * t.cols; };
    double sum = request.kind == PassKind::rows ? of(weights.head()) : 0.0;
    for (const LlamaLayer& layer : weights.layers)
        for (const Linear* linear : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down})
            for (const Tensor& part : linear->parts) sum += of(part);
    return sum;
}

} // namespace

PassMeter::~PassMeter() {
    if (fence_) device_->vk.DestroyFence(device_->handle, fence_, nullptr);
}

Status PassMeter::prepare(const PassRequest& request, std::span<const PageChange> pages) {
    const uint32_t vocab = model(request).config().vocab_size, n = request.n_rows;
    const uint64_t bests_bytes = request.kind == PassKind::rows ? n * uint64_t{ceil_div(vocab, 2u)} * sizeof(gpu::BestToken) : 4;
    if (bests_bytes > device_->caps.max_storage_buffer_range)
        return {Code::unsupported, std::to_string(n) + " rows of the vocabulary exceed the device's storage buffer range"};
    auto make = [&](Buffer& buffer, uint64_t bytes, MemoryUse use) -> Status {
        AUSPEX_TRY_ASSIGN(made, memory_.create(bytes, use));
        if (made.mapped()) std::memset(made.mapped(), 0, made.size());
        buffer = std::move(made);
        return ok_status();
    };
    AUSPEX_TRY_ASSIGN(turn, TurnBuffers::create(memory_, {.max_commands = static_cast<uint32_t>(pages.size()) + request.depth + n, .max_list = n}));
    turn_ = std::move(turn);
    AUSPEX_TRY(make(rows_, n * sizeof(gpu::Row), MemoryUse::device));
    AUSPEX_TRY(make(counts_, 12, MemoryUse::device));
    AUSPEX_TRY(make(bests_, bests_bytes, MemoryUse::device));
    AUSPEX_TRY(make(choices_, n * sizeof(gpu::VocabChoice), MemoryUse::device));
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    AUSPEX_VK_MAKE(*device_, fence_, CreateFence(device_->handle, &info, nullptr, &fence_));

    CommandWriter writer(turn_.max_commands);
    writer.pages(request.of, slot_, pages);
    std::vector<uint32_t> tokens(n);
    std::vector<ReplayRow> rows;
    for (uint32_t i = 0; i < n; ++i) {
        tokens[i] = static_cast<uint32_t>((uint64_t{i} * 7919 + 1) % vocab);
        rows.push_back({slot_, request.depth + i});
    }
    writer.history(slot_, request.depth, tokens);
    writer.flush(turn_);
    turn_.write_list(rows, n);
    return ok_status();
}

void PassMeter::record_pass(Recorder& to, const PassRequest& request) {
    const LlamaModel& llama = model(request);
    const uint32_t n = request.n_rows;
    const Pass pass = {.rows = rows_.view(), .counts = counts_.view(), .n_rows = n, .kind = request.kind, .rows_per_slot = n};
    llama.record_embedding(to, pass);
    llama.record_layers(to, pass, 0, llama.config().n_layers);
    if (request.kind == PassKind::prompt) return;
    const uint32_t n_bests = llama.record_best_head(to, {.bests = bests_.view(), .state = buffers_->state.view(), .adds_noise = false},
                                                    {.vocab = llama.config().vocab_size, .n_rows = n, .rows = rows_.view()});
    to.cmd.stage("sampling");
    record_pick_best(to, bests_.view(), choices_.view(), n, n_bests);
    to.cmd.barrier();
}

Result<std::unique_ptr<Recording>> PassMeter::record(const PassRequest& request, uint32_t n, bool stages) {
    const LlamaModel& llama = model(request);
    constexpr uint32_t stages_per_layer = 16, other_stages = 8; // at most
    const uint32_t regions = stages ? stages_per_layer * llama.config().n_layers + other_stages : 1;
    AUSPEX_TRY_ASSIGN(made, Recording::create(*device_, n * regions));
    Recorder to = {*made, *kernels_};
    for (uint32_t i = 0; i < n; ++i) {
        made->begin_segment("measure");
        if (i == 0) {
            record_commands(to, models_, *buffers_, turn_);
            const uint32_t tile = request.kind == PassKind::prompt ? prompt_tile_rows(to.tuning(), llama.cache().attention_shape(), request.n_rows)
                                                                    : attention_tile_rows(to.tuning(), request.n_rows);
            record_replay_rows(to,
                               {.list = turn_.list.view(), .history = buffers_->history.view(), .rows = rows_.view(), .counts = counts_.view()},
                               request.n_rows, buffers_->history_stride, llama.config().n_kv_heads, tile);
            made->barrier();
        }
        made->time_stages(stages);
        if (!stages) made->begin_region("pass");
        record_pass(to, request);
        if (!stages) made->end_region();
        made->end_stages();
        made->end_segment();
    }
    AUSPEX_TRY(made->finish());
    return made;
}

Status PassMeter::run(const Recording& recording, uint32_t first, uint32_t count, uint32_t at_once) {
    std::vector<VkCommandBuffer> segments;
    for (uint32_t i = first; i < first + count; ++i) segments.push_back(recording.segment(i));
    for (uint32_t i = 0; i < count; i += at_once) {
        const uint32_t n = std::min(at_once, count - i);
        AUSPEX_TRY(device_->submit(segments.data() + i, n, i + n == count ? fence_ : VK_NULL_HANDLE));
    }
    AUSPEX_TRY(device_->wait_until_done(fence_));
    return device_->check(device_->vk.ResetFences(device_->handle, 1, &fence_), "vkResetFences");
}

Result<PassTimes> PassMeter::measure(const PassRequest& request, std::span<const PageChange> pages) {
    AUSPEX_TRY(prepare(request, pages));
    const LlamaModel& llama = model(request);
    const LlamaWeights& weights = llama.weights();
    PassTimes times;
    times.weights_bytes = weights.bytes_per_pass() - (request.kind == PassKind::rows ? 0 : weights.head().bytes());
    times.cache_bytes = KvCache::bytes_per_token(llama.cache().shape()) * (request.depth + request.n_rows);
    times.flops = 2.0 * matrix_elements(weights, request) * request.n_rows;

    AUSPEX_TRY_ASSIGN(one, record(request, 1, false)); // counts without what only the first segment has
    AUSPEX_TRY_ASSIGN(passes, record(request, request.repetitions + 1, false));
    times.n_dispatches = (passes->n_dispatches() - one->n_dispatches()) / request.repetitions;
    times.n_barriers = (passes->n_barriers() - one->n_barriers()) / request.repetitions;
    const uint64_t warm_up = now_ns();
    AUSPEX_TRY(run(*passes, 0, 1, 1));
    const uint64_t begin = now_ns();
    const double warm_up_ms = static_cast<double>(begin - warm_up) * 1e-6; // at least as long as a pass
    const auto at_once = static_cast<uint32_t>(std::clamp(kSubmissionMs / warm_up_ms, 1.0, 1.0 + request.repetitions));
    AUSPEX_TRY(run(*passes, 1, request.repetitions, at_once));
    times.wall_ms = static_cast<double>(now_ns() - begin) * 1e-6 / request.repetitions;
    std::vector<double> ms;
    for (const Recording::RegionTime& region : passes->region_times())
        if (region.segment > 0 && region.ms >= 0) ms.push_back(region.ms);
    if (!ms.empty()) {
        times.gpu_ms = median(ms);
        times.least_ms = *std::min_element(ms.begin(), ms.end());
        times.most_ms = *std::max_element(ms.begin(), ms.end());
    }
    if (!request.stages || ms.empty()) return times;
    AUSPEX_TRY_ASSIGN(staged, record(request, request.repetitions + 1, true));
    AUSPEX_TRY(run(*staged, 0, request.repetitions + 1, at_once));
    times.stages = stages_of(*staged);
    return times;
}

} // namespace auspex
