// Records a pass several times, so that the GPU stays busy, and reads its timestamps.
#include "session/measure/pass_meter.h"

#include "base/platform.h"
#include "kernels/vocab.h"
#include "session/measure/wake.h"
#include "shared/vocab_args.h"

#include <algorithm>

namespace auspex {

namespace {

constexpr double kSubmissionMs = 100; // about as long may one take

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Regions of a recording whose segments are passes: of each in a pass the sum, then the median over the passes.
std::vector<StageTime> stages_of(const Recording& recording) {
    std::vector<StageTime> stages;
    std::vector<std::vector<double>> sums; // (stages, segments)
    for (const Recording::RegionTime& region : recording.region_times()) {
        if (region.ms < 0) return {};
        auto found = std::find_if(stages.begin(), stages.end(), [&](const StageTime& s) { return s.stage == region.region; });
        const auto at = static_cast<size_t>(found - stages.begin());
        if (found == stages.end()) {
            stages.push_back({region.region, 0, 0});
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

Status PassMeter::prepare(const PassRequest& request, std::span<const PageChange> pages) {
    const uint32_t vocab = errand_->model(request.of).config().vocab_size, n = request.n_rows;
    const uint64_t bests_bytes = request.kind == PassKind::rows ? n * uint64_t{ceil_div(vocab, 2u)} * sizeof(gpu::BestToken) : 4;
    if (bests_bytes > errand_->device().caps.max_storage_buffer_range)
        return {Code::unsupported, std::to_string(n) + " rows of the vocabulary exceed the device's storage buffer range"};
    AUSPEX_TRY(errand_->prepare(n, pages.size()));
    AUSPEX_TRY_SET(bests_, errand_->memory().create(bests_bytes, MemoryUse::device));
    AUSPEX_TRY_SET(choices_, errand_->memory().create(n * sizeof(gpu::VocabChoice), MemoryUse::device));
    std::vector<uint32_t> tokens(n);
    for (uint32_t i = 0; i < n; ++i) tokens[i] = static_cast<uint32_t>((uint64_t{i} * 7919 + 1) % vocab);
    errand_->tell(request.of, tokens, request.depth, pages);
    return ok_status();
}

void PassMeter::record_pass(Recorder& to, const PassRequest& request, const Pass& pass) {
    const LlamaModel& llama = errand_->model(request.of);
    const uint32_t n = request.n_rows;
    llama.record_embedding(to, pass);
    llama.record_layers(to, pass, 0, llama.config().n_layers);
    if (request.kind == PassKind::prompt) return;
    const uint32_t n_bests = llama.record_best_head(to, {.bests = bests_.view(), .state = errand_->buffers().state.view(), .adds_noise = false},
                                                    {.vocab = llama.config().vocab_size, .n_rows = n, .rows = pass.rows});
    to.cmd.stage(Region::sampling);
    record_pick_best(to, bests_.view(), choices_.view(), n, n_bests);
    to.cmd.barrier();
}

Result<std::unique_ptr<Recording>> PassMeter::record(const PassRequest& request, uint32_t n, bool stages) {
    constexpr uint32_t stages_per_layer = 16, other_stages = 8; // at most
    const uint32_t regions = stages ? stages_per_layer * errand_->model(request.of).config().n_layers + other_stages : 1;
    AUSPEX_TRY_ASSIGN(made, Recording::create(errand_->device(), n * regions));
    Recorder to = {*made, errand_->kernels()};
    to.int8_x = request.of == ModelRole::draft && request.kind == PassKind::rows && errand_->model(request.of).rounds_x(); // as when it drafts
    Pass pass = {};
    for (uint32_t i = 0; i < n; ++i) {
        made->begin_segment("measure");
        if (i == 0) pass = errand_->record_rows(to, request.of, request.kind, request.n_rows);
        made->time_stages(stages);
        if (!stages) made->begin_region(Region::pass);
        record_pass(to, request, pass);
        if (!stages) made->end_region();
        made->end_stages();
        made->end_segment();
    }
    AUSPEX_TRY(made->finish());
    return made;
}

Result<PassTimes> PassMeter::measure(const PassRequest& request, std::span<const PageChange> pages) {
    AUSPEX_TRY(prepare(request, pages));
    const LlamaModel& llama = errand_->model(request.of);
    const LlamaWeights& weights = llama.weights();
    PassTimes times;
    times.weights_bytes = weights.bytes_per_pass() - (request.kind == PassKind::rows ? 0 : weights.head().bytes());
    times.cache_bytes = KvCache::bytes_per_token(llama.cache().shape()) * (request.depth + request.n_rows);
    times.flops = 2.0 * matrix_elements(weights, request) * request.n_rows;

    AUSPEX_TRY_ASSIGN(one, record(request, 1, false)); // counts without what only the first segment has
    AUSPEX_TRY_ASSIGN(passes, record(request, request.repetitions + 1, false));
    times.n_dispatches = (passes->n_dispatches() - one->n_dispatches()) / request.repetitions;
    times.n_barriers = (passes->n_barriers() - one->n_barriers()) / request.repetitions;
    AUSPEX_TRY(wake(errand_->device(), [&] { return errand_->run(*passes, 0, 1, 1); }));
    const uint64_t warm_up = now_ns();
    AUSPEX_TRY(errand_->run(*passes, 0, 1, 1));
    const uint64_t begin = now_ns();
    const double warm_up_ms = static_cast<double>(begin - warm_up) * 1e-6; // at least as long as a pass
    const auto at_once = static_cast<uint32_t>(std::clamp(kSubmissionMs / warm_up_ms, 1.0, 1.0 + request.repetitions));
    AUSPEX_TRY(errand_->run(*passes, 1, request.repetitions, at_once));
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
    AUSPEX_TRY(errand_->run(*staged, 0, request.repetitions + 1, at_once));
    times.stages = stages_of(*staged);
    return times;
}

} // namespace auspex
