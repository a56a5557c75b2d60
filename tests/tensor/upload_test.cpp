// Weights on the device: sharding by the device's limits, padding, and staged upload of any width.
#include "tensor/upload.h"

#include "gpu_test.h"

#include <cmath>

namespace auspex::upload_test {
namespace {

class UploadTest : public ::testing::Test {
  protected:
    void SetUp() override {
        auto made = Device::create({}, Logger{});
        ASSERT_TRUE(made.ok()) << made.status().message();
        device_ = std::move(made).value();
        memory_ = std::make_unique<MemoryPool>(*device_);
        auto uploader = Uploader::create(*device_, *memory_);
        ASSERT_TRUE(uploader.ok()) << uploader.status().message();
        uploader_ = std::move(uploader).value();
    }
    // What the device holds, through a host-visible copy.
    std::vector<std::byte> read_back(BufferView view) {
        auto made = memory_->create(view.size, MemoryUse::readback);
        EXPECT_TRUE(made.ok()) << made.status().message();
        Buffer& copy = made.value();
        auto recording = Recording::create(*device_, 0);
        recording.value()->begin_segment("read back");
        recording.value()->copy(view, copy.view(0, view.size));
        recording.value()->end_segment();
        EXPECT_TRUE(recording.value()->finish().ok());
        VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
        VkFence fence = VK_NULL_HANDLE;
        EXPECT_EQ(device_->vk.CreateFence(device_->handle, &info, nullptr, &fence), VK_SUCCESS);
        VkCommandBuffer buffer = recording.value()->segment(0);
        EXPECT_TRUE(device_->submit(&buffer, 1, fence).ok());
        EXPECT_TRUE(device_->wait_until_done(fence).ok());
        device_->vk.DestroyFence(device_->handle, fence, nullptr);
        return {copy.mapped(), copy.mapped() + view.size};
    }
    void poison(BufferView view) {
        EXPECT_TRUE(uploader_->write_and_wait(view, [](uint64_t, std::span<std::byte> out) {
            std::fill(out.begin(), out.end(), std::byte{0xa5});
            return ok_status();
        }).ok());
    }
    // Byte `i` of the source matrix.
    static std::byte source(uint64_t i) { return std::byte(i * 2654435761u >> 13); }
    static Status fill_source(uint64_t offset, std::span<std::byte> out) {
        for (size_t i = 0; i < out.size(); ++i) out[i] = source(offset + i);
        return ok_status();
    }
    // Where byte i of a row lies in a shard.
    static uint64_t place(const Tensor& tensor, uint64_t row, uint64_t i) {
        const uint64_t padded = tensor.padded_cols * dtype_bytes(tensor.dtype);
        if (!tensor.tiled) return row * padded + i;
        const uint64_t piece = 64 * dtype_bytes(tensor.dtype); // what a row has of a tile of 16
        return row / 16 * 16 * padded + i / piece * piece * 16 + row % 16 * piece + i % piece;
    }
    // Every row of the tensor is the source's row, followed by zeros.
    void expect_source(Tensor& tensor) {
        const uint64_t row = tensor.cols * dtype_bytes(tensor.dtype), padded = tensor.padded_cols * dtype_bytes(tensor.dtype);
        for (Shard& shard : tensor.shards) {
            const std::vector<std::byte> bytes = read_back(shard.buffer.view(0, shard.n_rows * padded));
            uint64_t wrong = 0;
            for (uint64_t r = 0; r < shard.n_rows; ++r)
                for (uint64_t i = 0; i < padded; ++i)
                    wrong += bytes[place(tensor, r, i)] != (i < row ? source((shard.first_row + r) * row + i) : std::byte{0});
            EXPECT_EQ(wrong, 0u) << "of rows " << shard.first_row << " + " << shard.n_rows << ", width " << tensor.cols;
        }
    }
    std::unique_ptr<Device> device_;
    std::unique_ptr<MemoryPool> memory_;
    std::unique_ptr<Uploader> uploader_;
};

TEST_F(UploadTest, ShardsCoverEveryRowOnceWithinTheLimits) {
    struct Case {
        uint64_t range, allocation;
        uint32_t rows, cols;
        DType dtype;
    };
    for (const Case& c : {Case{4096, 1 << 20, 100, 100, DType::f32}, Case{4096, 1 << 20, 1, 1000, DType::f32}, Case{1 << 20, 10'000, 333, 77, DType::bf16},
                          Case{64, 1 << 20, 9, 8, DType::f16}, Case{1 << 20, 1 << 20, 5, 33, DType::f16}}) {
        device_->caps.max_storage_buffer_range = c.range;
        device_->caps.max_allocation_bytes = c.allocation;
        auto made = create_tensor(*device_, *memory_, c.dtype, c.rows, c.cols, false);
        ASSERT_TRUE(made.ok()) << made.status().message();
        const Tensor& tensor = made.value();
        EXPECT_EQ(tensor.padded_cols, (c.cols + 7) / 8 * 8);
        EXPECT_EQ(tensor.bytes(), uint64_t{c.rows} * tensor.padded_cols * dtype_bytes(c.dtype));
        uint32_t next = 0;
        for (const Shard& shard : tensor.shards) {
            EXPECT_EQ(shard.first_row, next);
            EXPECT_GT(shard.n_rows, 0u);
            next += shard.n_rows;
            EXPECT_LE(uint64_t{shard.n_rows} * tensor.padded_cols * dtype_bytes(c.dtype), std::min(c.range, c.allocation));
        }
        EXPECT_EQ(next, c.rows);
        const uint64_t total = tensor.bytes(), limit = std::min(c.range, c.allocation);
        EXPECT_EQ(tensor.shards.size() == 1, total <= limit);
    }
}

TEST_F(UploadTest, ARowWiderThanABindingIsRefusedWithBothNumbers) {
    device_->caps.max_storage_buffer_range = 4096;
    auto made = create_tensor(*device_, *memory_, DType::f32, 3, 1025, false);
    EXPECT_EQ(made.status().code(), Code::unsupported);
    EXPECT_NE(made.status().message().find(std::to_string(4 * 1032)), std::string::npos) << made.status().message();
    EXPECT_NE(made.status().message().find("4096"), std::string::npos) << made.status().message();
}

TEST_F(UploadTest, OddWidthsArePaddedWithZeros) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (uint32_t cols : {1u, 7u, 8u, 9u, 33u, 1234u}) {
            auto made = create_tensor(*device_, *memory_, dtype, 37, cols, false);
            ASSERT_TRUE(made.ok());
            for (Shard& shard : made.value().shards) poison(shard.buffer.view());
            ASSERT_TRUE(upload_tensor(*uploader_, made.value(), fill_source).ok());
            expect_source(made.value());
        }
}

TEST_F(UploadTest, ShardsBeginWithPairsOfRowsOrTiles) {
    device_->caps.max_storage_buffer_range = 20'000; // 19 rows of 256 f32
    for (bool tile : {false, true}) {
        auto made = create_tensor(*device_, *memory_, DType::f32, 48, 256, tile);
        ASSERT_TRUE(made.ok());
        EXPECT_EQ(made.value().tiled, tile);
        ASSERT_EQ(made.value().shards.size(), 3u);
        EXPECT_EQ(made.value().shards[0].n_rows, tile ? 16u : 18u);
        for (Shard& shard : made.value().shards) poison(shard.buffer.view());
        ASSERT_TRUE(upload_tensor(*uploader_, made.value(), fill_source).ok());
        expect_source(made.value());
    }
}

TEST_F(UploadTest, TilesNeedWholeOnes) {
    device_->caps.max_storage_buffer_range = 16 * 1024 * 4;
    for (const auto& [dtype, rows, cols, tiled] : {std::tuple{DType::bf16, 32u, 64u, true}, {DType::bf16, 24u, 64u, false}, {DType::bf16, 32u, 72u, false},
                                                   {DType::q4_0, 32u, 64u, false}, {DType::f32, 16u, 1024u, true}, {DType::f32, 16u, 1088u, false}}) {
        auto made = create_tensor(*device_, *memory_, dtype, rows, cols, true);
        ASSERT_TRUE(made.ok());
        EXPECT_EQ(made.value().tiled, tiled) << dtype_name(dtype) << ", " << rows << " x " << cols;
    }
}

// The staging buffer holds 8 MiB: many rows at once, whole tiles of them, then one row in pieces.
TEST_F(UploadTest, TensorsAndRowsLargerThanTheStagingBuffer) {
    for (const auto& [rows, cols, tile] : {std::tuple{3000u, 1001u, false}, {3008u, 1216u, true}, {2u, 2'200'000u, false}}) {
        auto made = create_tensor(*device_, *memory_, DType::f32, rows, cols, tile);
        ASSERT_TRUE(made.ok()) << made.status().message();
        EXPECT_EQ(made.value().tiled, tile);
        ASSERT_EQ(made.value().shards.size(), 1u);
        poison(made.value().shards[0].buffer.view());
        uint64_t before = uploader_->uploaded_bytes(), last = 0;
        int reports = 0;
        uploader_->progress = [&](uint64_t bytes) {
            EXPECT_GT(bytes, last);
            last = bytes;
            ++reports;
        };
        ASSERT_TRUE(upload_tensor(*uploader_, made.value(), fill_source).ok());
        uploader_->progress = {};
        expect_source(made.value());
        EXPECT_GE(reports, 2);
        EXPECT_EQ(last - before, made.value().bytes());
    }
}

// Rows that lie otherwise on the device are packed whole; configs end far below such widths.
TEST_F(UploadTest, APaddedRowLargerThanTheStagingBufferIsRefused) {
    auto made = create_tensor(*device_, *memory_, DType::f32, 2, 2'200'003, false);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(upload_tensor(*uploader_, made.value(), fill_source).code(), Code::unsupported);
}

TEST_F(UploadTest, AReaderThatFailsStopsTheUpload) {
    auto made = create_tensor(*device_, *memory_, DType::f32, 5000, 1001, false); // three pieces
    ASSERT_TRUE(made.ok());
    int calls = 0;
    const Status status = upload_tensor(*uploader_, made.value(), [&](uint64_t, std::span<std::byte>) -> Status {
        return ++calls == 3 ? Status{Code::io, "the file went away"} : ok_status();
    });
    EXPECT_EQ(status.code(), Code::io);
    EXPECT_EQ(calls, 3);
}

TEST_F(UploadTest, ZeroClearsExactlyItsRange) {
    auto made = memory_->create(64, MemoryUse::device);
    ASSERT_TRUE(made.ok());
    poison(made.value().view());
    ASSERT_TRUE(uploader_->zero_and_wait(made.value().view(16, 32)).ok());
    const std::vector<std::byte> bytes = read_back(made.value().view());
    for (size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], i >= 16 && i < 48 ? std::byte{0} : std::byte{0xa5}) << i;
}

TEST(TensorTest, WidthsAndNames) {
    EXPECT_EQ(padded_width(1), 8u);
    EXPECT_EQ(padded_width(8), 8u);
    EXPECT_EQ(padded_width(2049), 2056u);
    EXPECT_EQ(dtype_bytes(DType::f32), 4u);
    EXPECT_EQ(dtype_bytes(DType::bf16), 2u);
    EXPECT_EQ(dtype_name(DType::f16), "f16");
}

} // namespace
} // namespace auspex::upload_test
