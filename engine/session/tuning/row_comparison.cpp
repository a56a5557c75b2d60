// A small odd-sized matrix of random weights, one recording for all of it, compared on the host.
#include "session/tuning/row_comparison.h"

#include "base/platform.h"
#include "kernels/gate_up.h"
#include "kernels/normed_matvec.h"
#include "kernels/prenorm.h"
#include "kernels/random_fill.h"
#include "tensor/upload.h"

#include <cstring>

namespace auspex {

namespace {

constexpr uint32_t kOuts = 70, kCols = 512; // outputs odd as pairs, too; columns are whole blocks of every format
constexpr uint32_t kTiledOuts = 64;         // where weights lie in tiles; those after them stay 0
constexpr uint32_t kMostRows = 16;
constexpr uint32_t kStride = 128;           // floats between rows of y
constexpr uint64_t kXRow = kCols * 4, kYRow = kStride * 4, kYBlock = kMostRows * kYRow; // bytes

struct Member {
    const char* name;
    uint32_t width; // of an output row
};
constexpr Member kMembers[] = {{"matvec", kOuts}, {"matvec after a norm", kOuts}, {"gate_up", kOuts / 2}};
constexpr uint64_t kMemberBytes = (kMostRows + 1) * kYBlock; // block 0: each row alone; block n: n rows together

class Bench {
  public:
    Bench(Device& device, KernelLibrary& kernels) : device_(device), kernels_(kernels), memory_(device) {}

    Status prepare(DType format) {
        AUSPEX_TRY_SET(uploader_, Uploader::create(device_, memory_));
        const bool tiles = kernels_.tuning().tiles_weights;
        AUSPEX_TRY_SET(weight_, create_tensor(device_, memory_, format, tiles ? kTiledOuts : kOuts, kCols, tiles));
        AUSPEX_TRY(uploader_->make_and_wait(weight_.bytes(), [&](Recording& recording) {
            Recorder to = {recording, kernels_};
            record_random_fill(to, weight_, 1, 0.1f);
        }));
        AUSPEX_TRY_SET(x_, memory_.create(kMostRows * kXRow, MemoryUse::upload));
        AUSPEX_TRY_SET(norm_, memory_.create(kXRow, MemoryUse::upload));
        AUSPEX_TRY_SET(normed_, memory_.create(kMostRows * kXRow, MemoryUse::device));
        AUSPEX_TRY_SET(norm_scales_, memory_.create(kMostRows * 4, MemoryUse::device));
        AUSPEX_TRY_SET(y_, memory_.create(std::size(kMembers) * kMemberBytes, MemoryUse::readback));
        fill(x_, -1.0f);
        fill(norm_, 0.5f);
        std::memset(y_.mapped(), 0, y_.size()); // matvec adds to it
        return ok_status();
    }

    // n rows from `first` on, to row `to_row` of the block.
    void record(Recorder& to, size_t member, uint32_t block, uint32_t to_row, uint32_t first, uint32_t n) {
        const BufferView x = x_.view(first * kXRow, n * kXRow);
        const BufferView y = y_.view(member * kMemberBytes + block * kYBlock + to_row * kYRow, n * kYRow);
        NormedRows normed = {.x = x, .weight = norm_.view(), .width = kCols, .eps = 1e-5f, .n_rows = n};
        if (member == 0) return record_matvec(to, weight_, x, y, n, kStride, true);
        if (to.tuning().norm_is_stage(n)) {
            to.cmd.barrier(); // who read the last ones is done
            normed = record_prenorm(to, weight_, normed, normed_.view(), norm_scales_.view());
            to.cmd.barrier();
        }
        if (member == 1) record_normed_matvec(to, weight_, normed, y, kStride);
        else record_gate_up(to, weight_, normed, y, kStride);
    }

    Status run(const std::function<void(Recorder&)>& record) {
        return uploader_->run_and_wait("compare rows", [&](Recording& recording) {
            Recorder to = {recording, kernels_};
            record(to);
        });
    }

    bool same(size_t member, uint32_t n) const {
        const std::byte* alone = y_.mapped() + member * kMemberBytes;
        for (uint32_t r = 0; r < n; ++r)
            if (std::memcmp(alone + n * kYBlock + r * kYRow, alone + r * kYRow, kMembers[member].width * 4ull) != 0) return false;
        return true;
    }

  private:
    // Numbers of [offset, offset + 2) from a small generator.
    static void fill(Buffer& buffer, float offset) {
        auto* at = reinterpret_cast<float*>(buffer.mapped());
        uint32_t state = 12345;
        for (uint64_t i = 0; i < buffer.size() / 4; ++i) {
            state = state * 1664525u + 1013904223u;
            at[i] = offset + static_cast<float>(state >> 8) * 0x1p-23f;
        }
    }

    Device& device_;
    KernelLibrary& kernels_;
    MemoryPool memory_;
    std::unique_ptr<Uploader> uploader_;
    Tensor weight_; // (kOuts or kTiledOuts, kCols)
    Buffer x_;      // (kMostRows, kCols) f32
    Buffer norm_;   // (kCols) f32
    Buffer normed_, norm_scales_; // (kMostRows, kCols), (kMostRows) f32
    Buffer y_;      // (members, 1 + kMostRows, kMostRows, kStride) f32
};

} // namespace

Result<RowComparison> compare_row_counts(Device& device, KernelLibrary& kernels, std::span<const DType> formats, uint64_t deadline_ns) {
    for (DType format : formats) {
        if (now_ns() > deadline_ns) return RowComparison{.agree = false, .difference = "", .is_complete = false}; // weights are made by a kernel, too
        Bench bench(device, kernels);
        AUSPEX_TRY(bench.prepare(format));
        const auto record = [&](Recorder& to) {
            for (uint32_t r = 0; r < kMostRows; ++r)
                for (size_t member = 0; member < std::size(kMembers); ++member) bench.record(to, member, 0, r, r, 1);
            for (uint32_t n = 1; n <= kMostRows; ++n)
                for (size_t member = 0; member < std::size(kMembers); ++member) bench.record(to, member, n, 0, 0, n);
        };
        AUSPEX_TRY_ASSIGN(in_time, build_until(kernels, record, deadline_ns));
        if (!in_time) return RowComparison{.agree = false, .difference = "", .is_complete = false};
        AUSPEX_TRY(bench.run(record));
        for (size_t member = 0; member < std::size(kMembers); ++member)
            for (uint32_t n = 1; n <= kMostRows; ++n)
                if (!bench.same(member, n))
                    return RowComparison{.agree = false,
                                         .difference = std::string(kMembers[member].name) + " of " + std::string(dtype_name(format)) + ", " +
                                                       std::to_string(n) + " rows together against each alone",
                                         .is_complete = true};
    }
    return RowComparison{};
}

uint32_t comparison_kernels(const Tuning& tuning, std::span<const DType> formats) {
    size_t n = 0;
    for (DType format : formats) n += (is_quantized(format) ? tuning.matvec_quant_rows : tuning.matvec_rows).size();
    return static_cast<uint32_t>(n * std::size(kMembers));
}

Result<double> first_use_ms(Device& device, KernelLibrary& kernels, DType format) {
    Bench bench(device, kernels);
    AUSPEX_TRY(bench.prepare(format));
    const uint64_t begin = now_ns();
    AUSPEX_TRY(bench.run([&](Recorder& to) { bench.record(to, 0, 0, 0, 0, 1); }));
    return static_cast<double>(now_ns() - begin) * 1e-6;
}

} // namespace auspex
