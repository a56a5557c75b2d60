// The injector sees what it should: leaks, double destruction, the call that is asked to fail.
#include "vk_injector.h"

#include "device/buffer.h"

#include <gtest/gtest.h>

namespace auspex::test::vk_injector_test {
namespace {

TEST(VkInjector, CountsCallsAndObjects) {
    VkInjector& injector = VkInjector::instance();
    injector.reset({});
    auto made = Device::create({.device = "", .hook = VkInjector::hook()}, Logger{});
    ASSERT_TRUE(made.ok()) << made.status().message();
    std::unique_ptr<Device> device = std::move(made).value();
    EXPECT_EQ(injector.alive(), "1 Device, 1 Instance");
    {
        MemoryPool memory(*device);
        auto buffer = memory.create(100, MemoryUse::upload);
        ASSERT_TRUE(buffer.ok()) << buffer.status().message();
        EXPECT_EQ(injector.alive(), "1 Buffer, 1 Device, 1 Instance, 1 Memory");
        EXPECT_STREQ(injector.calls().back(), "BindBufferMemory");
    }
    // A leak and a double destruction would be seen.
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    VkFence fence = VK_NULL_HANDLE;
    ASSERT_EQ(device->vk.CreateFence(device->handle, &info, nullptr, &fence), VK_SUCCESS);
    EXPECT_EQ(injector.alive(), "1 Device, 1 Fence, 1 Instance");
    device->vk.DestroyFence(device->handle, fence, nullptr);
    EXPECT_TRUE(injector.misuse().empty());
    injector.destroyed("DestroyFence", 0x123);
    EXPECT_EQ(injector.misuse().size(), 1u);
    device.reset();
    EXPECT_EQ(injector.alive(), "");
}

TEST(VkInjector, FailsTheCallThatIsAsked) {
    VkInjector& injector = VkInjector::instance();
    injector.reset({});
    ASSERT_TRUE(Device::create({.device = "", .hook = VkInjector::hook()}, Logger{}).ok());
    const int n = static_cast<int>(injector.calls().size());
    ASSERT_STREQ(injector.calls().back(), "CreateDevice");
    injector.reset({.at = n - 1, .code = VK_ERROR_DEVICE_LOST});
    auto made = Device::create({.device = "", .hook = VkInjector::hook()}, Logger{});
    EXPECT_TRUE(injector.fired());
    EXPECT_EQ(made.status().code(), Code::device_lost);
    EXPECT_NE(made.status().message().find("vkCreateDevice"), std::string::npos) << made.status().message();
    EXPECT_EQ(injector.alive(), "");
    EXPECT_TRUE(injector.misuse().empty());
}

} // namespace
} // namespace auspex::test::vk_injector_test
