// The device opens at first use and closes with the process.
#include "gpu_test.h"

#include "profiles/device_profile.h"
#include "tensor/quant_blocks.h"

#include "reference/half.h"

#include <array>
#include <cmath>

namespace auspex {
namespace {

// Members go in reverse: kernels and memory before the device.
struct Gpu {
    std::unique_ptr<Device> device;
    std::unique_ptr<MemoryPool> memory;
    std::array<std::unique_ptr<KernelLibrary>, 11> libraries; // by Variant
    std::string problem;

    Gpu() {
        Logger log{[](LogLevel level, std::string_view text) {
            if (level >= LogLevel::warning) std::fprintf(stderr, "%.*s\n", int(text.size()), text.data());
        }};
        auto made = test::create_device({}, log);
        if (!made.ok()) {
            problem = made.status().message();
            return;
        }
        device = std::move(made).value();
        memory = std::make_unique<MemoryPool>(*device);
    }
};

Gpu& gpu_of_this_process() {
    static Gpu gpu;
    return gpu;
}

Tuning tuning_of(Variant variant, const DeviceCaps& caps) {
    Tuning tuning = test::device_tuning(caps);
    tuning.int8_drafts = false;
    if (variant == Variant::native) return tuning;
    if (variant == Variant::other_fetches) {
        tuning.texels = tuning.wide && !tuning.texels;
        return tuning;
    }
    if (variant >= Variant::tiles && variant != Variant::int8) {
        tuning.prompt_by_rows = false;
        if (variant == Variant::tiles || variant == Variant::halves) tuning.matrix = {};
        if (variant == Variant::halves) tuning.matmul_parts = 1;
        else if (!tuning.matrix) tuning.matmul_parts = 0;
        else if (variant == Variant::matrices) tuning.matmul_parts = 2;
        return tuning;
    }
    tuning.wide = false;
    tuning.matvec_ahead = tuning.matvec_many_ahead = 2;
    tuning.matvec_staged_bytes = staged_choices(caps).back();
    tuning.int8_drafts = variant == Variant::int8 && tuning.subgroup && caps.integer_dots;
    if (variant == Variant::shuffles || variant == Variant::int8) return tuning;
    tuning = without_shuffles(tuning, variant == Variant::lanes_16 ? 16 : variant == Variant::lanes_32 ? 32 : 0);
    tuning.matmul_parts = 0;
    tuning.matrix = {}; // the units want the device's lanes
    if (variant != Variant::shared) {
        const uint32_t most = caps.max_workgroup_invocations;
        tuning.vocab_threads = std::min(variant == Variant::lanes_16 ? 64u : 256u, most);
        tuning.attention_teams = caps.max_shared_memory_bytes < 32768 ? 1 : std::min(variant == Variant::lanes_16 ? 2u : 8u, most / tuning.lanes);
    }
    return tuning;
}

} // namespace

Tuning without_shuffles(Tuning tuning, uint32_t lanes) {
    tuning.subgroup = tuning.wide = tuning.texels = false;
    tuning.pinned_subgroup_size = 0;
    tuning.full_subgroups = false;
    if (lanes > 0) tuning.lanes = lanes;
    tuning.matvec_rows = tuning.matvec_quant_rows = {1, 2, 4, 8, 16};
    tuning.matvec_teams = 4;
    tuning.matvec_outs = 2;
    tuning.matvec_many_outs = 4;
    tuning.matvec_ahead = tuning.matvec_many_ahead = 4;
    tuning.attention_rows = 1;
    tuning.norm_stage_rows = 0;
    return tuning;
}

std::string variant_name(Variant variant) {
    constexpr const char* kNames[] = {"native", "shuffles", "shared", "lanes_16", "lanes_32", "tiles", "matrices", "matrices_1", "halves", "other_fetches", "int8"};
    return kNames[static_cast<int>(variant)];
}

const std::vector<Variant>& all_variants() {
    static const std::vector<Variant> variants{Variant::native, Variant::shuffles, Variant::shared, Variant::lanes_16,
                                               Variant::lanes_32};
    return variants;
}

void GpuTest::SetUp() {
    ASSERT_TRUE(gpu_of_this_process().device) << "no Vulkan device: " << gpu_of_this_process().problem;
}

Device& GpuTest::device() {
    return *gpu_of_this_process().device;
}

MemoryPool& GpuTest::memory() {
    return *gpu_of_this_process().memory;
}

KernelLibrary& GpuTest::kernels(Variant variant) {
    auto& library = gpu_of_this_process().libraries[static_cast<size_t>(variant)];
    if (!library) {
        auto made = KernelLibrary::create(device(), tuning_of(variant, device().caps), "");
        EXPECT_TRUE(made.ok()) << made.status().message();
        library = std::move(made).value();
    }
    return *library;
}

std::unique_ptr<KernelLibrary> GpuTest::new_library() {
    auto made = KernelLibrary::create(device(), test::device_tuning(device().caps), "");
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
}

Buffer GpuTest::poisoned(uint64_t bytes) {
    // readback memory is host-visible, coherent and cached: it serves both ways.
    auto made = memory().create(std::max<uint64_t>(bytes, 16), MemoryUse::readback);
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (!made.ok()) return {};
    Buffer buffer = std::move(made).value();
    for (uint64_t at = 0; at + 4 <= buffer.size(); at += 4)
        std::memcpy(buffer.mapped() + at, &kPoison, 4);
    return buffer;
}

void GpuTest::run(KernelLibrary& library, const std::function<void(Recorder&)>& record) {
    auto made = Recording::create(device(), 0);
    ASSERT_TRUE(made.ok()) << made.status().message();
    Recording& recording = *made.value();
    recording.begin_segment("test");
    Recorder recorder{recording, library, nullptr, /*int8_x=*/true}; // tuning says whether that is heeded
    record(recorder);
    recording.end_segment();
    const Status status = recording.finish();
    ASSERT_TRUE(status.ok()) << status.message();
    submit_and_wait(recording);
}

void submit_and_wait(Device& device, const Recording& recording) {
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    VkFence fence = VK_NULL_HANDLE;
    ASSERT_EQ(device.vk.CreateFence(device.handle, &info, nullptr, &fence), VK_SUCCESS);
    std::vector<VkCommandBuffer> segments;
    for (uint32_t i = 0; i < recording.n_segments(); ++i)
        segments.push_back(recording.segment(i));
    const Status status = device.submit(segments.data(), static_cast<uint32_t>(segments.size()), fence);
    EXPECT_TRUE(status.ok()) << status.message();
    if (status.ok()) { EXPECT_TRUE(device.wait_until_done(fence).ok()); } // however long shaders compile beside other work
    device.vk.DestroyFence(device.handle, fence, nullptr);
}

Tensor GpuTest::tensor(std::vector<float>& values, uint32_t rows, uint32_t cols, DType dtype, uint32_t shard_rows) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.padded_cols = padded_width(cols);
    if (shard_rows == 0) shard_rows = rows;
    for (uint32_t first = 0; first < rows; first += shard_rows) {
        const uint32_t count = std::min(shard_rows, rows - first);
        std::vector<uint32_t> wide(dtype == DType::f32 ? size_t{count} * tensor.padded_cols : 0);
        std::vector<uint16_t> narrow(dtype == DType::f32 ? 0 : size_t{count} * tensor.padded_cols);
        for (uint32_t r = 0; r < count; ++r) {
            for (uint32_t c = 0; c < cols; ++c) {
                float& value = values[size_t{first + r} * cols + c];
                const size_t at = size_t{r} * tensor.padded_cols + c;
                if (dtype == DType::f32) {
                    std::memcpy(&wide[at], &value, 4);
                } else if (dtype == DType::f16) {
                    narrow[at] = reference::float_to_half(value);
                    value = reference::half_to_float(narrow[at]);
                } else {
                    narrow[at] = reference::float_to_bfloat(value);
                    value = reference::bfloat_to_float(narrow[at]);
                }
            }
        }
        Buffer buffer = dtype == DType::f32 ? upload(wide) : upload(narrow);
        tensor.shards.push_back({std::move(buffer), first, count});
    }
    return tensor;
}

Tensor GpuTest::in_tiles(const Tensor& rows) {
    Tensor tiles;
    tiles.dtype = rows.dtype;
    tiles.rows = rows.rows;
    tiles.cols = rows.cols;
    tiles.padded_cols = rows.padded_cols;
    tiles.tiled = true;
    for (const Shard& shard : rows.shards) {
        EXPECT_TRUE(fits_tiles(rows.dtype, shard.n_rows, rows.cols));
        const uint64_t bytes = shard.n_rows * rows.row_bytes();
        std::vector<std::byte> packed(bytes);
        pack_rows(rows.dtype, rows.cols, /*tiled=*/true, read<std::byte>(shard.buffer, bytes), packed);
        tiles.shards.push_back({upload(packed), shard.first_row, shard.n_rows});
    }
    return tiles;
}

namespace {

// Where a block keeps its f16 scales.
std::vector<uint32_t> half_offsets(DType dtype) {
    switch (dtype) {
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k: return {0, 2};
    case DType::q2_k: return {80, 82};
    case DType::q3_k: return {108};
    case DType::q6_k: return {208};
    default: return {0};
    }
}

} // namespace

Tensor GpuTest::quantized_tensor(std::vector<float>& values, uint32_t rows, uint32_t cols, DType dtype, uint32_t seed,
                                 uint32_t shard_rows) {
    const DTypeInfo& info = dtype_info(dtype);
    const uint64_t row_bytes = file_row_bytes(dtype, cols);
    std::vector<std::byte> blocks(rows * row_bytes);
    reference::DataStream data(seed);
    for (std::byte& b : blocks) b = static_cast<std::byte>(data.bits() & 0xff);
    // Both signs, normal and subnormal.
    for (size_t at = 0; at < blocks.size(); at += info.block_bytes)
        for (uint32_t offset : half_offsets(dtype)) {
            const float size = data.bits() % 8 == 0 ? 1e-6f : info.block_elements == 256 ? 1e-3f : 0.1f;
            const uint16_t half = reference::float_to_half(size * static_cast<float>(data.normal()));
            std::memcpy(&blocks[at + offset], &half, 2);
        }
    values.resize(size_t{rows} * cols);
    dequantize_blocks(dtype, blocks, values);

    Tensor tensor;
    tensor.dtype = dtype;
    tensor.rows = rows;
    tensor.cols = tensor.padded_cols = cols;
    if (shard_rows == 0) shard_rows = rows;
    for (uint32_t first = 0; first < rows; first += shard_rows) {
        const uint32_t count = std::min(shard_rows, rows - first);
        std::vector<std::byte> packed(count * tensor.row_bytes());
        pack_rows(dtype, cols, /*tiled=*/false, std::span(blocks).subspan(first * row_bytes, count * row_bytes), packed);
        tensor.shards.push_back({upload(packed), first, count});
    }
    return tensor;
}

std::vector<float> random_floats(uint64_t count, uint32_t seed, float scale) {
    reference::DataStream data(seed);
    std::vector<float> out(count);
    for (float& v : out)
        v = scale * data.normal();
    return out;
}

gpu::Row plain_row(uint32_t token, uint32_t slot, uint32_t position) {
    gpu::Row row = {};
    row.token = token;
    row.slot = slot;
    row.position = position;
    row.kv_index = position;
    row.prefix_len = position;
    row.live = 1;
    for (uint32_t i = 0; i < gpu::kMaxPath; ++i)
        row.path[i] = position + i;
    row.parent = gpu::kNoRow;
    return row;
}

namespace {
gpu::Row row_of_node(const gpu::RoundSlot& entry, uint32_t draft_len, uint32_t b, uint32_t node, uint32_t token) {
    gpu::Row row = plain_row(token, entry.slot == gpu::kNoSlot ? 0 : entry.slot, gpu::position_of(entry.start, node));
    row.prefix_len = entry.start;
    for (uint32_t i = 0; i < gpu::kMaxPath; ++i) row.path[i] = entry.start + i;
    if (node > 0) row.parent = gpu::row_of(draft_len, b, gpu::parent_of(node));
    return row;
}
} // namespace

std::vector<gpu::Row> chain_rows(std::span<const gpu::RoundSlot> entries, uint32_t draft_len, std::span<const uint32_t> tokens) {
    std::vector<gpu::Row> rows;
    for (uint32_t b = 0; b < entries.size(); ++b)
        for (uint32_t node = 0; node < gpu::nodes_of(draft_len); ++node) {
            gpu::Row row = row_of_node(entries[b], draft_len, b, node, tokens.empty() ? 0 : tokens[gpu::row_of(draft_len, b, node)]);
            row.live = entries[b].live != 0 && node <= entries[b].draft_len;
            rows.push_back(row);
        }
    return rows;
}

std::vector<gpu::Row> draft_pass_rows(std::span<const gpu::RoundSlot> entries, uint32_t draft_len, uint32_t node, std::span<const gpu::Row> target_rows) {
    std::vector<gpu::Row> rows;
    for (uint32_t b = 0; b < entries.size(); ++b) {
        gpu::Row row = row_of_node(entries[b], draft_len, b, node, target_rows[gpu::row_of(draft_len, b, node)].token);
        row.live = entries[b].live != 0 && entries[b].one_hot == 0 && node < entries[b].draft_len;
        rows.push_back(row);
    }
    return rows;
}

::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " values against " << b.size();
    for (size_t i = 0; i < a.size(); ++i)
        if (std::memcmp(&a[i], &b[i], 4) != 0)
            return ::testing::AssertionFailure()
                   << "at " << i << " of " << a.size() << ": " << a[i] << " against " << b[i];
    return ::testing::AssertionSuccess();
}

double normalised_error(std::span<const float> found, std::span<const double> expected) {
    double error = 0.0, size = 0.0;
    for (size_t i = 0; i < found.size(); ++i) {
        error += (found[i] - expected[i]) * (found[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    return error / size;
}

::testing::AssertionResult all_near(std::span<const float> found, std::span<const double> expected,
                                    std::span<const double> bound) {
    if (found.size() != expected.size() || found.size() != bound.size())
        return ::testing::AssertionFailure() << found.size() << " values, " << expected.size() << " expected";
    for (size_t i = 0; i < found.size(); ++i)
        if (!(std::abs(double(found[i]) - expected[i]) <= bound[i]))
            return ::testing::AssertionFailure() << "at " << i << " of " << found.size() << ": " << found[i]
                                                 << ", expected " << expected[i] << " within " << bound[i];
    return ::testing::AssertionSuccess();
}

} // namespace auspex
