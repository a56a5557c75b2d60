// First whether row counts agree, then what is fastest among those that do.
#include "session/tuning/device_tuning.h"

#include "base/platform.h"
#include "kernels/embedded_shaders.h"
#include "model/checkpoint/tensor_roles.h"
#include "session/models/open_models.h"
#include "session/tuning/prompt_check.h"
#include "session/tuning/row_comparison.h"
#include "session/tuning/tuning_store.h"
#include "tensor/device_format.h"

#include <algorithm>
#include <set>

namespace auspex {

namespace {

constexpr uint32_t kTimingKernels = 53; // that a timing pass builds, or a few more
constexpr uint64_t kMostMatrixBytes = 256ull << 20;
constexpr double kMostPromptError = 1e-6; // prompt_kernel_error's; one f16 part of an activation leaves 1e-7

std::vector<std::string> matrix_names(const Checkpoint& model) {
    std::vector<std::string> names = {kEmbeddingRole.huggingface, kHeadRole.huggingface};
    for (uint32_t i = 0; i < model.config().n_layers; ++i)
        for (const TensorRole& role : kLayerRoles)
            if (role.cols != Dim::none) names.push_back(huggingface_name(role, i));
    return names;
}

// Formats of all matrices, ascending.
std::vector<DType> formats_of(const TuningRequest& request) {
    std::set<DType> formats;
    for (const Checkpoint* model : {request.target, request.draft}) {
        if (!model) continue;
        for (const std::string& name : matrix_names(*model))
            if (const TensorInfo* tensor = model->find(name); tensor && tensor->shape.size() == 2) formats.insert(tensor->dtype);
    }
    return {formats.begin(), formats.end()};
}

// Feed-forward matrices of the target, in the format that most of its bytes have, and the draft's in another one if it has: one with
// most outputs, and one with fewest, whose workgroups a wide device has too few of.
std::vector<MatrixShape> timed_matrices(const TuningRequest& request, const DeviceCaps& caps) {
    std::vector<MatrixShape> shapes;
    for (const Checkpoint* model : {request.target, request.draft}) {
        if (!model) continue;
        const LlamaConfig& c = model->config();
        const DType type = summarize_weights(*model).matrix_type;
        const size_t n_before = shapes.size();
        const MatrixShape gate_up = {fitting_type(type, c.hidden_size), 2 * c.ffn_size, c.hidden_size, true};
        const MatrixShape down = {fitting_type(type, c.ffn_size), c.hidden_size, c.ffn_size, false};
        for (MatrixShape shape : {gate_up, down}) {
            const uint64_t row_bytes = device_row_bytes(shape.dtype, shape.cols);
            const uint64_t most = std::max(row_bytes, std::min(kMostMatrixBytes, caps.device_free_bytes / 64));
            shape.rows = static_cast<uint32_t>(std::min<uint64_t>(shape.rows, most / row_bytes));
            if (n_before == 0 || shapes[0].dtype != shape.dtype) shapes.push_back(shape);
        }
    }
    return shapes;
}

// The target's, with an f16 cache.
AttentionShape timed_attention(const Checkpoint& target) {
    const LlamaConfig& c = target.config();
    AttentionShape shape = {};
    shape.n_heads = c.n_heads;
    shape.n_kv_heads = c.n_kv_heads;
    shape.head_dim = c.head_dim;
    shape.cache_dtype = DType::f16;
    return shape;
}

TuningKey key_of(const Device& device, const Tuning& base, const std::vector<DType>& formats, const TuningRequest& request) {
    std::string names, widths;
    for (DType format : formats) names += (names.empty() ? "" : " ") + std::string(dtype_name(format));
    for (const Checkpoint* model : {request.target, request.draft})
        if (model) widths += (widths.empty() ? "" : " ") + std::to_string(model->config().hidden_size) + "x" + std::to_string(model->config().ffn_size);
    return {device.caps.name, device.caps.driver, embedded_shaders_hash(), names, widths, base.numerics_id()};
}

// The largest single row count of each class that agrees with itself, wherever in a tile a row lies. From the smallest on, which has no
// company: tiles of most rows take compilers longest. False: the deadline came first, and larger ones than those found may agree, too.
Result<bool> pad_everything(Device& device, const std::vector<DType>& formats, const TuningRequest& request, Tuning& tuning, uint64_t deadline_ns) {
    bool in_time = true;
    for (const bool quant : {false, true}) {
        std::vector<uint32_t>& rows = quant ? tuning.matvec_quant_rows : tuning.matvec_rows;
        std::vector<DType> compared;
        for (DType format : formats)
            if (is_quantized(format) == quant) compared.push_back(format);
        const std::vector<uint32_t> candidates = rows;
        uint32_t largest = compared.empty() ? candidates.back() : candidates.front();
        for (size_t i = 1; i < candidates.size() && !compared.empty() && in_time; ++i) {
            rows = {candidates[i]};
            AUSPEX_TRY_ASSIGN(kernels, KernelLibrary::create(device, tuning, ""));
            if (request.adjust_kernels) request.adjust_kernels(*kernels);
            AUSPEX_TRY_ASSIGN(found, compare_row_counts(device, *kernels, compared, deadline_ns));
            in_time = found.is_complete;
            if (found.agree) largest = candidates[i];
        }
        rows = {largest};
    }
    return in_time;
}

// At every start, whatever the mode: what is wrong here spoils every prompt. Kernels of another tile were checked when it was chosen.
Status check_matrix_units(Device& device, KernelLibrary& kernels, const TuningRequest& request, Tuning& tuning, const Logger& log) {
    const std::vector<DType> formats = formats_of(request);
    if (formats.empty()) return ok_status();
    AUSPEX_TRY_ASSIGN(error, prompt_kernel_error(device, kernels, formats[0]));
    if (error && *error <= kMostPromptError) return ok_status(); // not NaN either
    log(LogLevel::warning, device.caps.name + ": products on its matrix units are off by " + std::to_string(error.value_or(0)) + " (squared, relative), expected below " +
                               std::to_string(kMostPromptError) + "; prompts do without them");
    tuning = without_matrices(tuning, device.caps);
    return ok_status();
}

} // namespace

Result<DeviceTuning> tune_device(Device& device, const Tuning& by_caps, KernelLibrary& kernels, const TuningRequest& request, const Logger& log) {
    DeviceTuning result;
    Tuning base = by_caps;
    if (base.prompts_use_matrices()) AUSPEX_TRY(check_matrix_units(device, kernels, request, base, log));
    result.tuning = base;
    // A CPU compiles for longer than a start may take, and what it is timed at while a host starts says little of later.
    const bool is_cpu = device.caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const TuningStore store(request.cache_folder);
    if (request.mode == TuningMode::off && store.path().empty()) return result;
    const std::vector<DType> formats = formats_of(request);
    const TuningKey key = key_of(device, base, formats, request);
    const auto tell_rows = [&] {
        if (result.rows == RowCounts::differ)
            log(LogLevel::warning, device.caps.name + ": passes of different row counts do not give the same bits" +
                                       (result.difference.empty() ? "" : " (" + result.difference + ")") + "; every pass runs through tiles of " +
                                       std::to_string(result.tuning.matvec_rows.back()) + " rows, of block formats " +
                                       std::to_string(result.tuning.matvec_quant_rows.back()) + ", so that drafts change no text");
    };
    const auto check_kept = [&](Tuning& tuning) -> Status { // matrix units that were chosen in an earlier run
        AUSPEX_TRY_ASSIGN(chosen, KernelLibrary::create(device, tuning, ""));
        if (request.adjust_kernels) request.adjust_kernels(*chosen);
        return check_matrix_units(device, *chosen, request, tuning, log);
    };
    if (request.mode != TuningMode::full) {
        if (const auto stored = store.load(key, base, device.caps, log)) {
            result.tuning = stored->tuning;
            result.rows = stored->rows_agree ? RowCounts::agree : RowCounts::differ;
            result.is_timed = stored->is_timed;
            result.is_from_store = result.is_kept = true;
            if (result.tuning.prompts_use_matrices() && !base.prompts_use_matrices()) AUSPEX_TRY(check_kept(result.tuning));
            tell_rows();
            return result;
        }
        if (request.mode == TuningMode::off || is_cpu || formats.empty()) return result;
    }

    const bool is_full = request.mode == TuningMode::full;
    const bool may_keep = !store.path().empty();
    if (is_full && !base.prompts_use_matrices()) {
        const auto stored = store.load(key, base, device.caps, log);
        if (stored && stored->tuning.prompts_use_matrices()) {
            result.tuning = with_matrices(base, device.caps);
            AUSPEX_TRY(check_kept(result.tuning));
        }
    }
    const uint64_t begin = now_ns();
    const auto elapsed_ms = [&] { return static_cast<double>(now_ns() - begin) * 1e-6; };
    const double limit_ms = is_full ? request.limits.full_ms : may_keep ? request.limits.once_ms : request.limits.each_time_ms;
    const uint64_t deadline = is_full ? ~0ull : begin + static_cast<uint64_t>(limit_ms * 1e6); // after which no kernel is begun
    double kernel_ms = 0;
    if (!is_full) {
        AUSPEX_TRY_ASSIGN(ms, first_use_ms(device, kernels, formats[0]));
        kernel_ms = ms;
        if (kernel_ms * comparison_kernels(base, formats) > limit_ms) {
            log(LogLevel::info, device.caps.name + ": row counts were not compared, nor sizes timed: that would take longer than a start may; `auspex tune` does it");
            return result;
        }
    }
    if (may_keep) log(LogLevel::info, device.caps.name + ": measuring this device, once for these formats (" + key.formats + ")");
    AUSPEX_TRY_ASSIGN(compared, compare_row_counts(device, kernels, formats, deadline));
    if (!compared.is_complete) {
        log(LogLevel::info, device.caps.name + ": row counts were not compared to the end, nor sizes timed: that takes longer than a start may; `auspex tune` does it");
        return result;
    }
    result.rows = compared.agree ? RowCounts::agree : RowCounts::differ;
    result.difference = compared.difference;
    bool has_largest = true;
    if (!compared.agree) AUSPEX_TRY_SET(has_largest, pad_everything(device, formats, request, result.tuning, deadline));
    tell_rows();
    if (!has_largest) { // sound, but slow: not kept, so that the next start looks further
        log(LogLevel::info, device.caps.name + ": larger tiles were not compared to the end, nor sizes timed: that takes longer than a start may; `auspex tune` does it");
        return result;
    }

    const Tuning sound = result.tuning;
    const bool has_clock = device.caps.timestamp_period_ns > 0 && device.caps.timestamp_valid_bits > 0;
    // What is chosen is compared once more, by kernels that are all compiled anew: that may take somewhat longer. And the last one that
    // is timed may be begun just in time.
    const double comparison_ms = 1.25 * elapsed_ms() + kernel_ms;
    if (has_clock && (is_full || (may_keep && elapsed_ms() + comparison_ms + kernel_ms * kTimingKernels < limit_ms))) {
        TimingRequest timing = {.matrices = timed_matrices(request, device.caps),
                                .vocab = request.target->config().vocab_size,
                                .attention = timed_attention(*request.target),
                                .may_take_matrices = may_keep && times_matrices(device.caps),
                                .may_change_drafts = is_full,
                                .deadline_ns = is_full ? now_ns() + static_cast<uint64_t>(limit_ms * 1e6) : deadline - static_cast<uint64_t>(comparison_ms * 1e6),
                                .kernels = &kernels,
                                .adjust_kernels = request.adjust_kernels,
                                .progress = request.progress};
        AUSPEX_TRY_ASSIGN(timed, time_knobs(device, result.tuning, !compared.agree, timing));
        result.tuning = timed.tuning;
        result.times = std::move(timed.times);
        result.is_complete = timed.complete;
        result.is_timed = std::any_of(result.times.begin(), result.times.end(), [](const KnobTime& t) { return t.ms >= 0; });
    }
    const auto do_without_timing = [&] {
        result.tuning = sound;
        result.is_timed = false;
    };
    if (result.tuning != sound) { // other pipelines: once more
        AUSPEX_TRY_ASSIGN(chosen, KernelLibrary::create(device, result.tuning, ""));
        if (request.adjust_kernels) request.adjust_kernels(*chosen);
        AUSPEX_TRY_ASSIGN(again, compare_row_counts(device, *chosen, formats, deadline));
        if (again.agree && result.tuning.prompts_use_matrices()) {
            AUSPEX_TRY_ASSIGN(error, prompt_kernel_error(device, *chosen, formats[0], deadline));
            if (!error) again = {.agree = false, .difference = "", .is_complete = false};
            else if (!(*error <= kMostPromptError)) again = {.agree = false, .difference = "products on matrix units", .is_complete = true};
        }
        if (!again.is_complete)
            log(LogLevel::info, device.caps.name + ": the fastest sizes were not compared to the end, which takes longer than a start may; they are not used. `auspex tune` does it");
        else if (!again.agree)
            log(LogLevel::warning, device.caps.name + ": with the fastest sizes " + again.difference + " differ; they are not used");
        if (!again.agree) do_without_timing();
    }
    if (may_keep) result.is_kept = store.save(key, {result.tuning, compared.agree, result.is_timed}, log);
    if (!result.is_kept && result.tuning.numerics_id() != sound.numerics_id()) {
        log(LogLevel::warning, device.caps.name + ": that prompts are faster by matrix units could not be kept; they do without, so that the next start says the same");
        do_without_timing();
    }
    log(LogLevel::info, device.caps.name + ": " + result.tuning.sizes() + (compared.agree ? "; row counts agree bit by bit" : ""));
    return result;
}

} // namespace auspex
