// Choosing, refusing and adopting devices, and what is probed of them.
#include "device/device.h"

#include "gpu_test.h"
#include "session/engine_fixture.h"
#include "vk_injector.h"

namespace auspex::device_test {
namespace {

using test::VkInjector;

TEST(DeviceList, DescribesEveryDevice) {
    auto listed = Device::list(Logger{});
    ASSERT_TRUE(listed.ok()) << listed.status().message();
    ASSERT_FALSE(listed.value().empty());
    for (const Device::Listed& one : listed.value()) {
        EXPECT_NE(one.caps.name, "");
        EXPECT_NE(one.caps.driver, "");
        if (one.unusable_because.empty()) {
            EXPECT_GE(one.caps.api_version, VK_API_VERSION_1_1);
        }
    }
}

TEST(DeviceCreate, ByIndexAndByPartOfTheName) {
    auto listed = Device::list(Logger{});
    ASSERT_TRUE(listed.ok());
    for (size_t i = 0; i < listed.value().size(); ++i) {
        const Device::Listed& one = listed.value()[i];
        if (!one.unusable_because.empty()) continue;
        std::string part = one.caps.name.substr(0, 6);
        for (char& c : part) c = static_cast<char>(std::toupper(c));
        for (const std::string& wanted : {std::to_string(i), one.caps.name, part}) {
            auto made = Device::create({.device = wanted, .hook = {}}, Logger{});
            ASSERT_TRUE(made.ok()) << made.status().message();
            EXPECT_EQ(made.value()->caps.name.substr(0, 6), one.caps.name.substr(0, 6));
        }
    }
}

TEST(DeviceCreate, UnknownDeviceIsNamedAndTheKnownOnesAreListed) {
    auto listed = Device::list(Logger{});
    ASSERT_TRUE(listed.ok());
    for (const char* wanted : {"7", "no such device", "-1", "0x0", "99999999999999999999", " 0"}) {
        auto made = Device::create({.device = wanted, .hook = {}}, Logger{});
        ASSERT_FALSE(made.ok()) << wanted;
        EXPECT_EQ(made.status().code(), Code::no_device);
        const std::string& message = made.status().message();
        EXPECT_NE(message.find(std::string("\"") + wanted + "\""), std::string::npos) << message;
        EXPECT_NE(message.find("0 \"" + listed.value()[0].caps.name + "\""), std::string::npos) << message;
        EXPECT_EQ(message.find('\n'), std::string::npos);
    }
}

// ---- machines that are not this one: the table answers for them --------------------------------------------------------

Status create_with(const VkHook& hook) {
    return Device::create({.device = "", .hook = hook}, Logger{}).status();
}

TEST(DeviceCreate, NoDeviceAtAll) {
    const Status status = create_with([](VkFunctions& vk) {
        vk.EnumeratePhysicalDevices = [](VkInstance, uint32_t* n, VkPhysicalDevice*) {
            *n = 0;
            return VK_SUCCESS;
        };
    });
    EXPECT_EQ(status.code(), Code::no_device);
    EXPECT_NE(status.message().find("install"), std::string::npos) << status.message();
}

// What drivers without hardware answer, in whichever call: all of it means the same to a user.
TEST(DeviceCreate, DriversThatFindNoHardware) {
    static VkResult answer;
    for (const VkResult one : {VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_INCOMPATIBLE_DRIVER, VK_ERROR_FEATURE_NOT_PRESENT,
                               VK_ERROR_UNKNOWN, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY}) {
        answer = one;
        const Code expected = one == VK_ERROR_OUT_OF_HOST_MEMORY     ? Code::out_of_host_memory
                              : one == VK_ERROR_OUT_OF_DEVICE_MEMORY ? Code::out_of_device_memory
                                                                     : Code::no_device;
        const VkHook hooks[] = {
            [](VkFunctions& vk) { vk.CreateInstance = [](const VkInstanceCreateInfo*, const VkAllocationCallbacks*, VkInstance*) { return answer; }; },
            [](VkFunctions& vk) { vk.EnumeratePhysicalDevices = [](VkInstance, uint32_t*, VkPhysicalDevice*) { return answer; }; }};
        for (const VkHook& hook : hooks) {
            const Status status = create_with(hook);
            EXPECT_EQ(status.code(), expected) << status.message();
            EXPECT_NE(status.message().find(vk_result_name(one)), std::string::npos) << status.message();
            if (expected != Code::no_device) continue;
            for (const char* advice : {"no Vulkan device was found", "mesa-vulkan-drivers", "lavapipe", "group render"})
                EXPECT_NE(status.message().find(advice), std::string::npos) << status.message();
        }
    }
}

TEST(DeviceCreate, NoComputeQueue) {
    const Status status = create_with([](VkFunctions& vk) {
        vk.GetPhysicalDeviceQueueFamilyProperties = [](VkPhysicalDevice, uint32_t* n, VkQueueFamilyProperties*) { *n = 0; };
    });
    EXPECT_EQ(status.code(), Code::no_device);
    EXPECT_NE(status.message().find("has no compute queue"), std::string::npos) << status.message();
}

// Before 1.3.0 it compiled arrays for the defaults of the constants that size them.
TEST(DeviceCreate, MoltenVKOfOld) {
    static PFN_vkGetPhysicalDeviceProperties real;
    static PFN_vkGetPhysicalDeviceProperties2 real2;
    static uint32_t version;
    const VkHook hook = [](VkFunctions& vk) {
        if (!vk.GetPhysicalDeviceProperties || vk.CreateBuffer) return;
        real = vk.GetPhysicalDeviceProperties;
        real2 = vk.GetPhysicalDeviceProperties2;
        vk.GetPhysicalDeviceProperties = [](VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
            real(device, out);
            out->driverVersion = version;
        };
        vk.GetPhysicalDeviceProperties2 = [](VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
            real2(device, out);
            for (auto* next = static_cast<VkBaseOutStructure*>(out->pNext); next; next = next->pNext)
                if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES)
                    reinterpret_cast<VkPhysicalDeviceDriverProperties*>(next)->driverID = VK_DRIVER_ID_MOLTENVK;
        };
    };
    for (uint32_t old : {10106u, 10209u, 10299u}) {
        version = old;
        const Status status = create_with(hook);
        EXPECT_EQ(status.code(), Code::no_device);
        EXPECT_NE(status.message().find("MoltenVK 1." + std::to_string(old / 100 % 100) + "." + std::to_string(old % 100)), std::string::npos) << status.message();
        EXPECT_NE(status.message().find("1.3.0 or later"), std::string::npos) << status.message();
    }
    version = 10300;
    EXPECT_TRUE(create_with(hook).ok());
}

TEST(DeviceCreate, Vulkan10Only) {
    static PFN_vkGetPhysicalDeviceProperties real;
    const Status status = create_with([](VkFunctions& vk) {
        if (!vk.GetPhysicalDeviceProperties || vk.CreateBuffer) return;
        real = vk.GetPhysicalDeviceProperties;
        vk.GetPhysicalDeviceProperties = [](VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
            real(device, out);
            out->apiVersion = VK_MAKE_API_VERSION(0, 1, 0, 3);
        };
    });
    EXPECT_EQ(status.code(), Code::no_device);
    EXPECT_NE(status.message().find("below 1.1"), std::string::npos) << status.message();
}

TEST(DeviceCreate, NoTimestamps) {
    auto made = Device::create({.device = "", .hook = {}, .want_timestamps = false}, Logger{});
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made.value()->caps.timestamp_period_ns, 0.0f);
}

TEST(DeviceCreate, NoUsableMemoryType) {
    auto made = Device::create({}, Logger{});
    ASSERT_TRUE(made.ok());
    made.value()->caps.memory.memoryTypeCount = 0;
    MemoryPool memory(*made.value());
    EXPECT_EQ(memory.create(16, MemoryUse::device).status().code(), Code::unsupported);
}

// ---- what is probed -------------------------------------------------------------------------------------------------------

class DeviceCapsTest : public GpuTest {};

TEST_F(DeviceCapsTest, LimitsMeetTheSpecification) {
    const DeviceCaps& caps = device().caps;
    EXPECT_GE(caps.max_storage_buffer_range, 1ull << 27);
    EXPECT_GE(caps.max_allocation_bytes, 1ull << 30);
    EXPECT_GE(caps.max_allocations, 4096u);
    EXPECT_GE(caps.max_shared_memory_bytes, 16384u);
    EXPECT_GE(caps.max_workgroup_invocations, 128u);
    EXPECT_GE(caps.max_workgroup_size_x, 128u);
    for (uint32_t limit : caps.max_groups) EXPECT_EQ(limit, 65535u); // also where the device allows more
    EXPECT_GE(caps.max_bound_storage_buffers, 4u);
    EXPECT_EQ(caps.storage_buffer_alignment & (caps.storage_buffer_alignment - 1), 0u);
    EXPECT_GE(caps.subgroup_size, 1u);
    EXPECT_LE(caps.subgroup_size_min, caps.subgroup_size);
    EXPECT_GE(caps.subgroup_size_max, caps.subgroup_size);
    EXPECT_GT(caps.device_local_bytes, 0u);
    EXPECT_GT(caps.memory.memoryTypeCount, 0u);
}

// ---- a host's device ------------------------------------------------------------------------------------------------------

class AdoptTest : public GpuTest {
  protected:
    BorrowedDevice lend() {
        BorrowedDevice borrowed;
        borrowed.get_instance_proc_addr = device().vk.GetInstanceProcAddr;
        borrowed.instance = device().instance;
        borrowed.physical_device = device().physical_device;
        borrowed.device = device().handle;
        borrowed.queue = device().queue;
        borrowed.queue_family = device().queue_family;
        borrowed.subgroup_size_control = device().caps.subgroup_size_control;
        borrowed.full_subgroups = device().caps.full_subgroups;
        borrowed.shader_int64 = device().caps.shader_int64;
        borrowed.integer_dots = device().caps.integer_dots;
        borrowed.cooperative_matrix = bool(device().caps.matrix);
        return borrowed;
    }
    static EngineDesc desc() {
        EngineDesc desc;
        desc.target_path = std::string(AUSPEX_PAIR_DIR) + "/target";
        desc.draft_path = std::string(AUSPEX_PAIR_DIR) + "/draft";
        desc.max_context = 128;
        return desc;
    }
    // Tokens of one sequence; `between` is called around every call that may submit.
    static std::vector<uint32_t> generate(Engine& engine, float temperature, const std::function<void(bool)>& allowed = {}) {
        auto allow = [&](bool on) {
            if (allowed) allowed(on);
        };
        SequenceRequest request;
        auto prompt = engine.tokenize("The little dog", true);
        EXPECT_TRUE(prompt.ok());
        request.prompt = prompt.value();
        request.max_tokens = 40;
        request.sampling = {temperature, 11};
        request.draft_len = 3;
        request.ignore_eos = true;
        auto id = engine.create_sequence(request);
        EXPECT_TRUE(id.ok()) << id.status().message();
        for (;;) {
            allow(true);
            auto stepped = test::step(engine, -1);
            allow(false);
            if (!stepped.ok() || !stepped.value().pending) break;
            EXPECT_TRUE(engine.turns().wait(10'000'000'000).ok());
        }
        const LiveSequence* sequence = test::find_sequence(engine, id.value());
        std::vector<uint32_t> tokens(sequence->tokens.begin() + sequence->prompt_n, sequence->tokens.end());
        EXPECT_TRUE(test::destroy_sequence(engine, id.value()).ok());
        return tokens;
    }
};

TEST_F(AdoptTest, GivesWhatACreatedDeviceGivesAndLocksOnlyToSubmit) {
    auto own = Engine::create(desc(), Logger{});
    ASSERT_TRUE(own.ok()) << own.status().message();
    const std::vector<uint32_t> greedy = generate(*own.value(), 0), sampled = generate(*own.value(), 0.9f);
    ASSERT_EQ(greedy.size(), 40u);

    int depth = 0, n_locks = 0, outside = 0;
    bool allowed = true;
    EngineDesc lent = desc();
    lent.borrowed = lend();
    lent.borrowed->lock_queue = [&] {
        ++n_locks;
        EXPECT_EQ(++depth, 1) << "locked twice";
        if (!allowed) ++outside;
    };
    lent.borrowed->unlock_queue = [&] { EXPECT_EQ(--depth, 0) << "unlocked, but not locked"; };
    VkInjector::instance().reset({});
    lent.borrowed->hook = VkInjector::hook();
    auto adopted = Engine::create(lent, Logger{});
    ASSERT_TRUE(adopted.ok()) << adopted.status().message();
    EXPECT_GT(n_locks, 0);
    auto allow = [&](bool on) { allowed = on; };
    allow(false);
    const int locks_of_create = n_locks;
    EXPECT_EQ(generate(*adopted.value(), 0, allow), greedy);
    EXPECT_EQ(generate(*adopted.value(), 0.9f, allow), sampled);
    EXPECT_GT(n_locks, locks_of_create);
    EXPECT_EQ(outside, 0);
    allow(true);
    size_t submits = 0;
    for (const char* call : VkInjector::instance().calls()) submits += std::string_view(call) == "QueueSubmit";
    EXPECT_EQ(submits, static_cast<size_t>(n_locks));
    std::move(adopted).value().reset();
    EXPECT_EQ(VkInjector::instance().alive(), "") << "left with the host";
    EXPECT_TRUE(VkInjector::instance().misuse().empty()) << VkInjector::instance().misuse().front();
    // The host's device is still a device.
    run([&](Recorder& to) { to.cmd.barrier(); });
}

TEST_F(AdoptTest, UsesNoFeatureThatIsNotNamed) {
    BorrowedDevice plain = lend();
    plain.subgroup_size_control = plain.full_subgroups = plain.shader_int64 = plain.integer_dots = plain.cooperative_matrix = false;
    auto adopted = Device::adopt(plain, Logger{});
    ASSERT_TRUE(adopted.ok());
    EXPECT_FALSE(adopted.value()->caps.subgroup_size_control);
    EXPECT_FALSE(adopted.value()->caps.full_subgroups);
    EXPECT_FALSE(adopted.value()->caps.shader_int64);
    EXPECT_FALSE(adopted.value()->caps.integer_dots);
    EXPECT_FALSE(adopted.value()->caps.matrix);
    EXPECT_EQ(adopted.value()->caps.name, device().caps.name);
}

TEST_F(AdoptTest, WrongDescriptionsAreRefused) {
    using Change = std::function<void(BorrowedDevice&)>;
    for (const auto& [code, change] : std::vector<std::pair<Code, Change>>{
             {Code::invalid_argument, [](BorrowedDevice& b) { b.get_instance_proc_addr = nullptr; }},
             {Code::invalid_argument, [](BorrowedDevice& b) { b.instance = VK_NULL_HANDLE; }},
             {Code::invalid_argument, [](BorrowedDevice& b) { b.physical_device = VK_NULL_HANDLE; }},
             {Code::invalid_argument, [](BorrowedDevice& b) { b.device = VK_NULL_HANDLE; }},
             {Code::invalid_argument, [](BorrowedDevice& b) { b.queue = VK_NULL_HANDLE; }},
             {Code::invalid_argument, [](BorrowedDevice& b) { b.lock_queue = [] {}; }},
             {Code::invalid_argument, [](BorrowedDevice& b) { b.unlock_queue = [] {}; }},
             {Code::no_device, [](BorrowedDevice& b) { b.api_version = VK_API_VERSION_1_0; }},
             {Code::no_device, [](BorrowedDevice& b) { b.queue_family = 77; }}}) {
        BorrowedDevice borrowed = lend();
        change(borrowed);
        auto adopted = Device::adopt(borrowed, Logger{});
        EXPECT_EQ(adopted.status().code(), code) << adopted.status().message();
        EXPECT_NE(adopted.status().message().find("auspex_vulkan_device"), std::string::npos) << adopted.status().message();
    }
}

// A loader or driver that lacks a function is told by the function's name.
TEST_F(AdoptTest, MissingEntryPointsAreNamed) {
    static PFN_vkGetInstanceProcAddr real;
    static std::string missing;
    real = device().vk.GetInstanceProcAddr;
    BorrowedDevice borrowed = lend();
    borrowed.get_instance_proc_addr = [](VkInstance instance, const char* name) -> PFN_vkVoidFunction {
        return missing == name ? nullptr : real(instance, name);
    };
    for (const char* name : {"vkCreateInstance", "vkGetPhysicalDeviceProperties2", "vkGetDeviceProcAddr"}) {
        missing = name;
        auto adopted = Device::adopt(borrowed, Logger{});
        EXPECT_EQ(adopted.status().code(), Code::no_device);
        EXPECT_NE(adopted.status().message().find(std::string("lacks ") + name + ";"), std::string::npos) << adopted.status().message();
    }
}

} // namespace
} // namespace auspex::device_test
