// One knob after the other, each against what was chosen so far. What is compared is measured in turn and several times, because a
// machine's speed changes while it is measured; a challenger must win by more than noise.
#include "session/tuning/knob_timing.h"

#include "base/checked.h"
#include "base/platform.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/normed_matvec.h"
#include "kernels/prenorm.h"
#include "kernels/random_fill.h"
#include "kernels/split_halves.h"
#include "kernels/truncate.h"
#include "session/measure/wake.h"
#include "shared/slot_state.h"
#include "shared/truncate_args.h"
#include "tensor/upload.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

namespace auspex {

namespace {

constexpr uint32_t kRepetitions = 15; // the least counts: what others do meanwhile only adds
constexpr double kWins = 0.97;            // of the time before, at most
constexpr uint32_t kDuels = 5;            // of the best challenger
constexpr size_t kRowRounds = 5, kLeastRounds = 2; // of all row counts
constexpr uint32_t kMostTimed = 16; // rows
constexpr uint32_t kPlainRows = 1, kFewestDrafted = 2, kVerifyRows = 5; // of the smallest and of a usual verify pass
constexpr uint32_t kShorterVerifyRows = 4; // of another usual one: GPUs run it in tiles of 4 rows, the longer one in tiles of 8
constexpr uint32_t kVerifyKeys = 1000; // that lie before it
constexpr uint32_t kKeysPerPage = 16;  // as engines have them
constexpr uint32_t kPromptRows = 256, kPromptRepetitions = 5;
constexpr uint64_t kBeyondCaches = 256ull << 20; // bytes that a GPU reads in turn, of all matrices
constexpr uint32_t kMostCopies = 16;

std::string rows_knob(DType dtype, uint32_t n) {
    return std::string(is_quantized(dtype) ? "block" : "plain") + " tile of " + std::to_string(n);
}

template <typename T> std::vector<T> with(std::vector<T> list, T value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
    return list;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

class KnobTimer {
  public:
    KnobTimer(Device& device, const TimingRequest& request) : device_(device), request_(request), memory_(device) {}

    Status prepare(const Tuning& base);
    Result<TimedKnobs> choose(const Tuning& base, bool keep_rows);

  private:
    struct Matrix {
        std::vector<Tensor> copies; // used in turn, so that caches hold none of them
        Buffer x, y;                // (kMostTimed, padded cols), (kMostTimed, rows) f32
        Buffer norm, normed;        // (padded cols), (kMostTimed, padded cols) f32
        bool is_behind_norm = false;
    };
    struct Attention { // of kVerifyRows rows of one slot
        AttentionShape shape;
        uint32_t max_splits = 0;
        std::vector<std::pair<Buffer, Buffer>> caches; // K and V, used in turn
        Buffer qkv, rows, counts, pages;               // as record_attention has them
        Buffer partials, y, done;
    };
    using Change = std::function<void(Tuning&, uint32_t)>;

    Status zeroed(Buffer& buffer, uint64_t bytes);
    template <typename T> Status upload(Buffer& buffer, std::span<const T> values);
    uint32_t copies_of(uint64_t bytes) const; // to be used in turn
    Status prepare_matrices(const Tuning& base);
    Status prepare_vocab(const Tuning& base);
    Status prepare_attention(const Tuning& base);
    Status random(const Tuning& base, Tensor& tensor, uint64_t seed, float spread);
    bool late() const { return now_ns() > request_.deadline_ns; }
    Result<KernelLibrary*> library(const Tuning& tuning);
    // Infinite when the deadline came before its kernels were there.
    Result<double> least_ms(const Tuning& tuning, const std::function<void(Recorder&)>& record, uint32_t repetitions = kRepetitions);
    std::vector<const Matrix*> all() const;
    std::vector<const Matrix*> blocks() const; // those of them whose weights are
    Result<double> matvec_ms(const Tuning& tuning, std::span<const Matrix* const> matrices, uint32_t n_rows, bool drafts = false); // one after the other
    Result<double> plain_ms(const Tuning& tuning) { return matvec_ms(tuning, all(), kPlainRows); }
    Result<double> draft_ms(const Tuning& tuning) { return matvec_ms(tuning, blocks(), kPlainRows, /*drafts=*/true); }
    Result<double> verify_ms(const Tuning& tuning); // of usual passes
    Result<double> score_ms(const Tuning& tuning); // both
    Result<double> norm_ms(const Tuning& tuning); // both after a norm
    Result<double> vocab_ms(const Tuning& tuning);
    Result<double> attention_ms(const Tuning& tuning); // of a verify pass
    Result<double> prompt_ms(const Tuning& tuning);    // kPromptRows rows by every matrix, on matrix units
    Status choose_one(const std::string& knob, const std::vector<uint32_t>& candidates, uint32_t was, const std::function<std::string(uint32_t)>& name,
                      const Change& change, Result<double> (KnobTimer::*measure)(const Tuning&));
    Status choose_matrix_units(const Tuning& base);
    Status choose_matrix_tile(const Tuning& base);
    Status choose_rows(bool quant);
    void advance() {
        if (request_.progress) request_.progress(std::min(1.0f, static_cast<float>(++knobs_done_) / 16.0f));
    }

    Device& device_;
    const TimingRequest& request_;
    MemoryPool memory_;
    std::unique_ptr<Uploader> uploader_;
    std::map<std::string, std::unique_ptr<KernelLibrary>> libraries_;
    std::vector<Matrix> matrices_;
    Tensor logits_;  // (1, vocab) f32
    Buffer norm_scales_; // (kMostTimed) f32
    Buffer prompt_x_, prompt_y_; // halves and outputs of kPromptRows rows, large enough for each matrix
    Attention attention_;
    Buffer state_, row_, scratch_, cut_; // of one live row
    TimedKnobs result_;
    uint32_t knobs_done_ = 0;
};

Result<KernelLibrary*> KnobTimer::library(const Tuning& tuning) {
    if (request_.kernels && request_.kernels->tuning() == tuning) return request_.kernels;
    auto& library = libraries_[tuning.sizes() + (tuning.wide ? "" : " plain")];
    if (!library) {
        AUSPEX_TRY_SET(library, KernelLibrary::create(device_, tuning, ""));
        if (request_.adjust_kernels) request_.adjust_kernels(*library);
    }
    return library.get();
}

Status KnobTimer::zeroed(Buffer& buffer, uint64_t bytes) {
    AUSPEX_TRY_SET(buffer, memory_.create(bytes, MemoryUse::device));
    return uploader_->zero_and_wait(buffer.view());
}

template <typename T> Status KnobTimer::upload(Buffer& buffer, std::span<const T> values) {
    AUSPEX_TRY(zeroed(buffer, values.size_bytes()));
    return uploader_->write_and_wait(buffer, std::as_bytes(values));
}

Status KnobTimer::random(const Tuning& base, Tensor& tensor, uint64_t seed, float spread) {
    AUSPEX_TRY_ASSIGN(kernels, library(base));
    return uploader_->make_and_wait(tensor.bytes(), [&](Recording& recording) {
        Recorder to = {recording, *kernels};
        record_random_fill(to, tensor, seed, spread);
    });
}

uint32_t KnobTimer::copies_of(uint64_t bytes) const {
    if (device_.caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU) return 1;
    return static_cast<uint32_t>(std::clamp<uint64_t>(std::min(kBeyondCaches, device_.caps.device_free_bytes / 16) / bytes, 1, kMostCopies));
}

Status KnobTimer::prepare(const Tuning& base) {
    AUSPEX_TRY_SET(uploader_, Uploader::create(device_, memory_));
    AUSPEX_TRY(prepare_matrices(base));
    AUSPEX_TRY(prepare_vocab(base));
    return request_.attention.n_heads == 0 ? ok_status() : prepare_attention(base);
}

Status KnobTimer::prepare_matrices(const Tuning& base) {
    uint64_t prompt_x_bytes = 0, prompt_y_bytes = 0;
    for (const MatrixShape& shape : request_.matrices) {
        Matrix matrix;
        matrix.is_behind_norm = shape.is_behind_norm;
        const uint32_t copies = copies_of(shape.rows * device_row_bytes(shape.dtype, shape.cols) * request_.matrices.size());
        for (uint32_t i = 0; i < copies; ++i) {
            AUSPEX_TRY_ASSIGN(tensor, create_tensor(device_, memory_, shape.dtype, shape.rows, shape.cols, base.tiles_weights));
            AUSPEX_TRY(random(base, tensor, i + 1, 0.02f));
            matrix.copies.push_back(std::move(tensor));
        }
        const uint32_t width = matrix.copies[0].padded_cols;
        AUSPEX_TRY(zeroed(matrix.x, uint64_t(kMostTimed) * width * 4));
        AUSPEX_TRY(zeroed(matrix.y, uint64_t(kMostTimed) * shape.rows * 4));
        AUSPEX_TRY(zeroed(matrix.norm, width * 4ull));
        AUSPEX_TRY(zeroed(matrix.normed, matrix.x.size()));
        prompt_x_bytes = std::max({prompt_x_bytes, kPromptRows * halves_bytes(width), uint64_t(kPromptRows) * width * 4}); // halves or f32
        prompt_y_bytes = std::max(prompt_y_bytes, uint64_t(kPromptRows) * shape.rows * 4);
        matrices_.push_back(std::move(matrix));
    }
    if ((request_.may_take_matrices || base.prompts_use_matrices()) && !matrices_.empty()) {
        AUSPEX_TRY(zeroed(prompt_x_, prompt_x_bytes));
        AUSPEX_TRY(zeroed(prompt_y_, prompt_y_bytes));
    }
    return zeroed(norm_scales_, kMostTimed * 4);
}

Status KnobTimer::prepare_vocab(const Tuning& base) {
    AUSPEX_TRY_SET(logits_, create_tensor(device_, memory_, DType::f32, 1, request_.vocab, false));
    AUSPEX_TRY(random(base, logits_, 1, 3.0f));
    gpu::SlotState state = {};
    state.live = 1;
    state.temperature = state.repeat_penalty = state.lenience = 1;
    state.top_k = 40;
    state.top_p = 0.95f;
    state.min_p = 0.05f;
    gpu::Row row = {};
    row.live = 1;
    row.parent = gpu::kNoRow;
    AUSPEX_TRY(upload(state_, std::span<const gpu::SlotState>(&state, 1)));
    AUSPEX_TRY(upload(row_, std::span<const gpu::Row>(&row, 1)));
    AUSPEX_TRY(zeroed(scratch_, truncate_words(request_.vocab) * 4));
    return zeroed(cut_, sizeof(gpu::Cut));
}

Status KnobTimer::prepare_attention(const Tuning& base) {
    Attention& a = attention_;
    a.shape = request_.attention;
    a.shape.page_size = kKeysPerPage;
    a.shape.n_pages = a.shape.pages_per_slot = ceil_div(kVerifyKeys + kVerifyRows, kKeysPerPage);
    a.max_splits = ceil_div(kVerifyKeys + kVerifyRows, base.attention_split);
    const auto pool_bytes = [&](CacheSide side) { return a.shape.n_kv_heads * a.shape.n_pages * cache_page_bytes(a.shape.cache_dtype, side, kKeysPerPage, a.shape.head_dim); };
    a.caches.resize(copies_of(pool_bytes(CacheSide::k) + pool_bytes(CacheSide::v)));
    for (auto& [k, v] : a.caches) {
        AUSPEX_TRY(zeroed(k, pool_bytes(CacheSide::k)));
        AUSPEX_TRY(zeroed(v, pool_bytes(CacheSide::v)));
    }
    std::vector<uint32_t> pages(a.shape.n_pages);
    std::iota(pages.begin(), pages.end(), 0u);
    AUSPEX_TRY(upload(a.pages, std::span<const uint32_t>(pages)));
    std::vector<gpu::Row> rows(kVerifyRows);
    for (uint32_t r = 0; r < kVerifyRows; ++r) {
        rows[r].position = rows[r].kv_index = kVerifyKeys + r;
        rows[r].prefix_len = kVerifyKeys;
        rows[r].live = 1;
        std::iota(std::begin(rows[r].path), std::end(rows[r].path), kVerifyKeys);
    }
    AUSPEX_TRY(upload(a.rows, std::span<const gpu::Row>(rows)));
    const uint64_t head_bytes = a.shape.head_dim * 4ull, y_heads = uint64_t(kVerifyRows) * a.shape.n_heads;
    AUSPEX_TRY(zeroed(a.qkv, (y_heads + 2ull * kVerifyRows * a.shape.n_kv_heads) * head_bytes));
    AUSPEX_TRY(zeroed(a.partials, y_heads * a.max_splits * (head_bytes + 8)));
    AUSPEX_TRY(zeroed(a.y, y_heads * head_bytes));
    AUSPEX_TRY(zeroed(a.done, uint64_t(kVerifyRows) * a.shape.n_kv_heads * 4));
    return zeroed(a.counts, 3 * 4);
}

Result<double> KnobTimer::least_ms(const Tuning& tuning, const std::function<void(Recorder&)>& record, uint32_t repetitions) {
    AUSPEX_TRY_ASSIGN(kernels, library(tuning));
    AUSPEX_TRY_ASSIGN(in_time, build_until(*kernels, record, request_.deadline_ns));
    if (!in_time) return std::numeric_limits<double>::infinity();
    AUSPEX_TRY_ASSIGN(recording, Recording::create(device_, repetitions + 1));
    Recorder to = {*recording, *kernels};
    recording->begin_segment("time");
    for (uint32_t i = 0; i <= repetitions; ++i) { // the first warms up
        recording->begin_region(Region::kernels);
        record(to);
        recording->end_region();
    }
    recording->end_segment();
    AUSPEX_TRY(recording->finish());
    AUSPEX_TRY(uploader_->submit_and_wait(*recording));
    const std::vector<Recording::RegionTime> times = recording->region_times();
    double least = times.size() < 2 ? -1 : times[1].ms;
    for (size_t i = 2; i < times.size(); ++i) least = std::min(least, times[i].ms);
    if (least < 0) return Status(Code::unsupported, device_.caps.name + ": found no timestamps, expected a compute queue that has them");
    return least;
}

Result<double> KnobTimer::matvec_ms(const Tuning& tuning, std::span<const Matrix* const> matrices, uint32_t n_rows, bool drafts) {
    return least_ms(tuning, [&](Recorder& to) {
        to.int8_x = drafts;
        for (const Matrix* matrix : matrices)
            for (const Tensor& copy : matrix->copies) {
                record_matvec(to, copy, matrix->x.view(), matrix->y.view(), n_rows, copy.rows, true);
                to.cmd.barrier();
            }
    });
}

std::vector<const KnobTimer::Matrix*> KnobTimer::all() const {
    std::vector<const Matrix*> all;
    for (const Matrix& matrix : matrices_) all.push_back(&matrix);
    return all;
}

std::vector<const KnobTimer::Matrix*> KnobTimer::blocks() const {
    std::vector<const Matrix*> blocks = all();
    std::erase_if(blocks, [](const Matrix* m) { return !is_quantized(m->copies[0].dtype); });
    return blocks;
}

Result<double> KnobTimer::verify_ms(const Tuning& tuning) {
    AUSPEX_TRY_ASSIGN(fewer, matvec_ms(tuning, all(), kShorterVerifyRows));
    AUSPEX_TRY_ASSIGN(more, matvec_ms(tuning, all(), kVerifyRows));
    return fewer + more;
}

Result<double> KnobTimer::score_ms(const Tuning& tuning) {
    AUSPEX_TRY_ASSIGN(plain, plain_ms(tuning));
    AUSPEX_TRY_ASSIGN(verify, verify_ms(tuning));
    return plain + verify;
}

Result<double> KnobTimer::norm_ms(const Tuning& tuning) {
    double sum = 0;
    for (const Matrix& matrix : matrices_)
        for (uint32_t n_rows : {kPlainRows, kFewestDrafted, kVerifyRows}) {
            if (!matrix.is_behind_norm) continue;
            AUSPEX_TRY_ASSIGN(ms, least_ms(tuning, [&](Recorder& to) {
                for (const Tensor& copy : matrix.copies) {
                    NormedRows rows = {.x = matrix.x.view(), .weight = matrix.norm.view(), .width = copy.cols, .eps = 1e-5f, .n_rows = n_rows};
                    if (tuning.norm_is_stage(n_rows)) {
                        rows = record_prenorm(to, copy, rows, matrix.normed.view(), norm_scales_.view());
                        to.cmd.barrier();
                    }
                    record_normed_matvec(to, copy, rows, matrix.y.view(), copy.rows);
                    to.cmd.barrier();
                }
            }));
            sum += ms;
        }
    return sum;
}

Result<double> KnobTimer::vocab_ms(const Tuning& tuning) {
    return least_ms(tuning, [&](Recorder& to) {
        record_truncate(to, {.logits = logits_.shards[0].buffer.view(), .state = state_.view(), .scratch = scratch_.view(), .cuts = cut_.view()},
                        {.vocab = request_.vocab, .n_rows = 1, .rows = row_.view()}, {true, true, true});
        to.cmd.barrier();
    });
}

Result<double> KnobTimer::attention_ms(const Tuning& tuning) {
    const Attention& a = attention_;
    const uint32_t counts[] = {a.max_splits, a.shape.n_kv_heads, ceil_div(kVerifyRows, attention_tile_rows(tuning, kVerifyRows))};
    AUSPEX_TRY(uploader_->write_and_wait(a.counts, std::as_bytes(std::span(counts))));
    const CombineBuffers combine = {.y = a.y.view(), .done = a.done.view()};
    const AttentionRows rows = {.rows = a.rows.view(), .counts = a.counts.view(), .n_rows = kVerifyRows, .rows_per_slot = kVerifyRows};
    return least_ms(tuning, [&](Recorder& to) {
        for (const auto& [k, v] : a.caches) {
            record_attention(to, a.shape,
                             {.qkv = a.qkv.view(), .pages = a.pages.view(), .k_cache = k.view(), .v_cache = v.view(), .partials = a.partials.view()}, rows,
                             a.max_splits, tuning.attention_combines ? &combine : nullptr);
            to.cmd.barrier();
        }
    });
}

Result<double> KnobTimer::prompt_ms(const Tuning& tuning) {
    return least_ms(
        tuning,
        [&](Recorder& to) {
            for (const Matrix& matrix : matrices_) {
                record_matmul(to, matrix.copies[0], prompt_x_.view(), prompt_y_.view(), kPromptRows, matrix.copies[0].rows, false);
                to.cmd.barrier();
            }
        },
        kPromptRepetitions);
}

// `was` is measured first, then the others; the best of them again and again in turn with it, where the median counts.
Status KnobTimer::choose_one(const std::string& knob, const std::vector<uint32_t>& candidates, uint32_t was,
                             const std::function<std::string(uint32_t)>& name, const Change& change, Result<double> (KnobTimer::*measure)(const Tuning&)) {
    const size_t first = result_.times.size();
    std::optional<uint32_t> best;
    auto tuned = [&](uint32_t candidate) {
        Tuning tuning = result_.tuning;
        change(tuning, candidate);
        return tuning;
    };
    auto ms_of = [&](uint32_t candidate) -> double& { return result_.times[first + static_cast<size_t>(std::find(candidates.begin(), candidates.end(), candidate) - candidates.begin())].ms; };
    for (uint32_t candidate : candidates) result_.times.push_back({knob, name(candidate), -1, candidate == was, candidate == was});
    std::vector<uint32_t> order = {was};
    for (uint32_t candidate : candidates)
        if (candidate != was) order.push_back(candidate);
    for (uint32_t candidate : order) {
        if (late()) {
            result_.complete = false;
            break;
        }
        AUSPEX_TRY_ASSIGN(ms, (this->*measure)(tuned(candidate)));
        if (std::isinf(ms)) {
            result_.complete = false;
            break;
        }
        ms_of(candidate) = ms;
        if (candidate != was && ms < ms_of(was) * kWins && (!best || ms < ms_of(*best))) best = candidate;
    }
    advance();
    if (!best || late()) return ok_status();
    std::vector<double> ratios;
    for (uint32_t duel = 0; duel < kDuels && (duel == 0 || !late()); ++duel) {
        AUSPEX_TRY_ASSIGN(was_ms, (this->*measure)(tuned(was)));
        AUSPEX_TRY_ASSIGN(best_ms, (this->*measure)(tuned(*best)));
        ratios.push_back(best_ms / was_ms);
    }
    if (median(ratios) >= kWins) return ok_status();
    result_.tuning = tuned(*best);
    for (size_t i = first; i < result_.times.size(); ++i) result_.times[i].is_chosen = candidates[i - first] == *best;
    return ok_status();
}

Status KnobTimer::choose_matrix_units(const Tuning& base) {
    if (!request_.may_take_matrices || base.prompts_use_matrices() || matrices_.empty()) return ok_status();
    if (!with_matrices(base, device_.caps).prompts_use_matrices()) return ok_status();
    return choose_one("matrix units", {0, 1}, 0, [](uint32_t on) { return std::string(on ? "yes" : "no"); },
                      [&](Tuning& t, uint32_t on) { if (on) t = with_matrices(t, device_.caps); }, &KnobTimer::prompt_ms);
}

Status KnobTimer::choose_matrix_tile(const Tuning& base) {
    const std::vector<MatrixTile> choices = matrix_tile_choices(base, device_.caps);
    if (choices.empty() || matrices_.empty()) return ok_status();
    const MatrixTile was = {base.matrix_rows, base.matrix_outs, base.matrix_blocks};
    const std::vector<MatrixTile> tiles = with(choices, was);
    std::vector<uint32_t> indices(tiles.size());
    std::iota(indices.begin(), indices.end(), 0u);
    return choose_one("matrix tile", indices, static_cast<uint32_t>(std::find(tiles.begin(), tiles.end(), was) - tiles.begin()),
                      [&](uint32_t i) { return tiles[i].text(); },
                      [&](Tuning& t, uint32_t i) {
                          t.matrix_rows = tiles[i].rows;
                          t.matrix_outs = tiles[i].outs;
                          t.matrix_blocks = tiles[i].blocks;
                      },
                      &KnobTimer::prompt_ms);
}

// From the largest tile down: first while several of the next smaller one do its work sooner, then one whose work the next
// larger one does in no more time, is not built.
Status KnobTimer::choose_rows(bool quant) {
    std::vector<uint32_t>& rows = quant ? result_.tuning.matvec_quant_rows : result_.tuning.matvec_rows;
    std::vector<const Matrix*> measured;
    for (const Matrix& matrix : matrices_)
        if (is_quantized(matrix.copies[0].dtype) == quant) measured.push_back(&matrix);
    if (measured.empty() || rows.size() < 3) return ok_status();
    const Tuning all = result_.tuning;
    std::vector<std::vector<double>> rounds; // ms of all of them, one after the other
    const size_t first = result_.times.size();
    for (uint32_t n : rows) result_.times.push_back({rows_knob(measured[0]->copies[0].dtype, n), "built", -1, true, true});
    while (rounds.size() < kRowRounds) {
        std::vector<double> ms;
        while (ms.size() < rows.size() && !late()) { // larger tiles last
            AUSPEX_TRY_ASSIGN(now, matvec_ms(all, measured, rows[ms.size()]));
            if (std::isinf(now)) break;
            double& least = result_.times[first + ms.size()].ms;
            least = least < 0 ? now : std::min(least, now);
            ms.push_back(now);
        }
        if (ms.size() < rows.size()) break;
        rounds.push_back(std::move(ms));
    }
    if (rounds.size() < kLeastRounds) {
        result_.complete = false;
        return ok_status();
    }
    const auto ratio = [&](size_t a, size_t b) {
        std::vector<double> ratios;
        for (const std::vector<double>& ms : rounds) ratios.push_back(ms[a] / ms[b]);
        return median(std::move(ratios));
    };
    const auto leave_out = [&](size_t i, size_t by) {
        result_.times[first + i].candidate = "by " + std::to_string(rows[by]);
        result_.times[first + i].is_default = false;
    };
    size_t last = rows.size() - 1;
    for (; last > 0 && ratio(last - 1, last) * ceil_div(rows[last], rows[last - 1]) < kWins; --last) leave_out(last, last - 1);
    std::vector<uint32_t> kept = {rows[last]};
    for (size_t i = last, next = last; i-- > 0;) {
        if (i > 0 && ratio(next, i) <= 1) {
            leave_out(i, next);
            continue;
        }
        kept.insert(kept.begin(), rows[i]);
        next = i;
    }
    rows = kept;
    advance();
    return ok_status();
}

Result<TimedKnobs> KnobTimer::choose(const Tuning& base, bool keep_rows) {
    result_.tuning = base;
    if (!matrices_.empty()) AUSPEX_TRY(wake(device_, [&]() -> Status { return plain_ms(base).status(); }));
    const auto number = [](uint32_t n) { return std::to_string(n); };
    if (base.wide)
        AUSPEX_TRY(choose_one("unrolled for this driver", {0, 1}, 1, [](uint32_t on) { return std::string(on ? "yes" : "no"); },
                              [](Tuning& t, uint32_t on) { t.wide = on != 0; }, &KnobTimer::score_ms));
    if (result_.tuning.wide)
        AUSPEX_TRY(choose_one("fetches", {0, 1}, base.texels, [](uint32_t on) { return std::string(on ? "texels" : "elements"); },
                              [](Tuning& t, uint32_t on) { t.texels = on != 0; }, &KnobTimer::score_ms));
    if (!result_.tuning.wide) {
        AUSPEX_TRY(choose_one("outputs per team", with(outs_choices(), base.matvec_outs), base.matvec_outs, number,
                              [](Tuning& t, uint32_t n) { t.matvec_outs = n; }, &KnobTimer::plain_ms));
        AUSPEX_TRY(choose_one("steps at once", with(ahead_choices(), base.matvec_ahead), base.matvec_ahead, number,
                              [](Tuning& t, uint32_t n) { t.matvec_ahead = n; }, &KnobTimer::plain_ms));
        AUSPEX_TRY(choose_one("outputs of several rows", with(many_outs_choices(), base.matvec_many_outs), base.matvec_many_outs, number,
                              [](Tuning& t, uint32_t n) { t.matvec_many_outs = n; }, &KnobTimer::verify_ms));
        AUSPEX_TRY(choose_one("steps of several rows", with(ahead_choices(), base.matvec_many_ahead), base.matvec_many_ahead, number,
                              [](Tuning& t, uint32_t n) { t.matvec_many_ahead = n; }, &KnobTimer::verify_ms));
        if (!blocks().empty())
            AUSPEX_TRY(choose_one("x of blocks", with(staged_choices(device_.caps), base.matvec_staged_bytes), base.matvec_staged_bytes,
                                  [](uint32_t bytes) { return std::string(bytes == 0 ? "fetched" : "shared"); },
                                  [](Tuning& t, uint32_t bytes) { t.matvec_staged_bytes = bytes; }, &KnobTimer::score_ms));
        AUSPEX_TRY(choose_one("teams per workgroup", with(teams_choices(base, device_.caps), base.matvec_teams), base.matvec_teams, number,
                              [](Tuning& t, uint32_t n) { t.matvec_teams = n; }, &KnobTimer::score_ms));
        if (const auto choices = int8_draft_choices(base, device_.caps); request_.may_change_drafts && choices.size() > 1 && !blocks().empty())
            AUSPEX_TRY(choose_one("x of drafts' blocks", choices, base.int8_drafts, [](uint32_t on) { return std::string(on ? "8 bits" : "whole"); },
                                  [](Tuning& t, uint32_t on) { t.int8_drafts = on != 0; }, &KnobTimer::draft_ms));
    }
    AUSPEX_TRY(choose_one("norms", with(norm_stage_choices(), base.norm_stage_rows), base.norm_stage_rows, norms_text,
                          [](Tuning& t, uint32_t rows) { t.norm_stage_rows = rows; }, &KnobTimer::norm_ms));
    if (request_.vocab <= gpu::kMaxTruncateVocab)
        AUSPEX_TRY(choose_one("vocabulary threads", with(vocab_threads_choices(device_.caps), base.vocab_threads), base.vocab_threads, number,
                              [](Tuning& t, uint32_t n) { t.vocab_threads = n; }, &KnobTimer::vocab_ms));
    if (request_.attention.n_heads > 0)
        AUSPEX_TRY(choose_one("attention rows", with(attention_rows_choices(), base.attention_rows), base.attention_rows, number,
                              [](Tuning& t, uint32_t n) { t.attention_rows = n; }, &KnobTimer::attention_ms));
    AUSPEX_TRY(choose_matrix_units(base));
    AUSPEX_TRY(choose_matrix_tile(result_.tuning));
    if (!keep_rows) {
        AUSPEX_TRY(choose_rows(false));
        AUSPEX_TRY(choose_rows(true));
    }
    if (request_.progress) request_.progress(1.0f);
    return std::move(result_);
}

} // namespace

Result<TimedKnobs> time_knobs(Device& device, const Tuning& base, bool keep_rows, const TimingRequest& request) {
    if (device.caps.timestamp_period_ns == 0 || device.caps.timestamp_valid_bits == 0)
        return Status(Code::unsupported, device.caps.name + ": found no timestamps, expected a compute queue that has them");
    KnobTimer timer(device, request);
    AUSPEX_TRY(timer.prepare(base));
    return timer.choose(base, keep_rows);
}

} // namespace auspex
