// Buffers and the blocks behind them.
#include "gpu_test.h"
#include "vk_injector.h"

#include <algorithm>

namespace auspex::memory_test {
namespace {

// A device of its own, whose allocations are written down and whose limits may be lowered.
class MemoryTest : public ::testing::Test {
  protected:
    void SetUp() override {
        allocations().clear();
        auto made = Device::create({.device = "",
                                    .hook =
                                        [](VkFunctions& vk) {
                                            if (!vk.AllocateMemory || vk.AllocateMemory == &note_allocation) return;
                                            real_allocate() = vk.AllocateMemory;
                                            vk.AllocateMemory = &note_allocation;
                                        }},
                                   Logger{});
        ASSERT_TRUE(made.ok()) << made.status().message();
        device_ = std::move(made).value();
    }
    static std::vector<uint64_t>& allocations() {
        static std::vector<uint64_t> sizes;
        return sizes;
    }
    static PFN_vkAllocateMemory& real_allocate() {
        static PFN_vkAllocateMemory function;
        return function;
    }
    static VKAPI_ATTR VkResult VKAPI_CALL note_allocation(VkDevice device, const VkMemoryAllocateInfo* info,
                                                          const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
        allocations().push_back(info->allocationSize);
        return real_allocate()(device, info, callbacks, memory);
    }
    std::unique_ptr<Device> device_;
};

TEST_F(MemoryTest, SmallBuffersShareABlockWithoutOverlap) {
    MemoryPool memory(*device_);
    std::vector<Buffer> buffers;
    for (uint32_t i = 0; i < 50; ++i) {
        auto made = memory.create(1 + 37 * i, MemoryUse::upload);
        ASSERT_TRUE(made.ok()) << made.status().message();
        buffers.push_back(std::move(made).value());
        EXPECT_GE(buffers.back().size(), 1 + 37 * i);
        EXPECT_EQ(buffers.back().size() % 16, 0u);
        std::fill_n(buffers.back().mapped(), buffers.back().size(), std::byte(i));
    }
    EXPECT_EQ(allocations().size(), 1u);
    for (uint32_t i = 0; i < 50; ++i)
        EXPECT_TRUE(std::all_of(buffers[i].mapped(), buffers[i].mapped() + buffers[i].size(), [&](std::byte b) { return b == std::byte(i); }));
}

TEST_F(MemoryTest, LargeBuffersReserveNothingInVain) {
    MemoryPool memory(*device_);
    auto made = memory.create(40u << 20, MemoryUse::device);
    ASSERT_TRUE(made.ok());
    EXPECT_LT(memory.reserved_bytes(), (40u << 20) + 65536u);
    EXPECT_EQ(made.value().mapped(), nullptr);
}

TEST_F(MemoryTest, ReleasedBlocksGoBackAndAreUsedAgain) {
    MemoryPool memory(*device_);
    EXPECT_EQ(memory.reserved_bytes(), 0u);
    for (int round = 0; round < 3; ++round) {
        auto a = memory.create(1000, MemoryUse::device), b = memory.create(30u << 20, MemoryUse::device), c = memory.create(1000, MemoryUse::readback);
        ASSERT_TRUE(a.ok() && b.ok() && c.ok());
        EXPECT_GT(memory.reserved_bytes(), 30u << 20);
        Buffer moved = std::move(b).value();
        Buffer other;
        other = std::move(moved);
        EXPECT_FALSE(moved); // NOLINT: moved from is empty by contract
        EXPECT_EQ(other.size(), 30u << 20);
    }
    EXPECT_EQ(memory.reserved_bytes(), 0u);
}

TEST_F(MemoryTest, AllocationsKeepTheDevicesLimit) {
    for (uint64_t limit : {uint64_t{100'000}, uint64_t{1} << 20, uint64_t{5'000'000}}) {
        allocations().clear();
        device_->caps.max_allocation_bytes = limit;
        MemoryPool memory(*device_);
        std::vector<Buffer> buffers;
        for (uint64_t bytes : {uint64_t{10}, limit / 8, limit / 4, limit / 4 + 1, limit / 2, limit - 64, limit / 16 * 16, uint64_t{77}}) {
            for (MemoryUse use : {MemoryUse::device, MemoryUse::upload, MemoryUse::readback}) {
                auto made = memory.create(bytes, use);
                if (made.ok()) buffers.push_back(std::move(made).value());
                else EXPECT_EQ(made.status().code(), Code::unsupported) << bytes << " of " << limit << ": " << made.status().message();
                if (bytes + 64 <= limit) {
                    EXPECT_TRUE(made.ok()) << bytes << " of " << limit << ": " << made.status().message();
                }
            }
        }
        EXPECT_LE(*std::max_element(allocations().begin(), allocations().end()), limit);
        auto beyond = memory.create(limit + 1, MemoryUse::device);
        EXPECT_EQ(beyond.status().code(), Code::unsupported);
        EXPECT_NE(beyond.status().message().find(std::to_string(limit)), std::string::npos) << beyond.status().message();
    }
}

TEST_F(MemoryTest, NoBytesAndLostDevicesAreRefused) {
    MemoryPool memory(*device_);
    EXPECT_EQ(memory.create(0, MemoryUse::device).status().code(), Code::internal);
    EXPECT_EQ(device_->check(VK_ERROR_DEVICE_LOST, "vkQueueSubmit").code(), Code::device_lost);
    EXPECT_EQ(memory.create(16, MemoryUse::device).status().code(), Code::device_lost);
    EXPECT_EQ(device_->submit(nullptr, 0, VK_NULL_HANDLE).code(), Code::device_lost);
    EXPECT_NE(device_->lost_status().message().find("vkQueueSubmit"), std::string::npos);
}

} // namespace
} // namespace auspex::memory_test
