// Every Vulkan call of an engine's life fails, with every code it may answer, once and for ever, at every pace.
#include "device/fault_injection.h"

#include <filesystem>

namespace auspex::test::fault_injection_long {
namespace {

void every_call(Pace pace, const std::string& cache_folder = "") {
    const Life clean = live({}, pace, cache_folder);
    ASSERT_TRUE(clean.first_error.ok());
    const int n = static_cast<int>(VkInjector::instance().calls().size());
    for (int at = 0; at < n; ++at)
        for (VkResult code : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST})
            for (bool persistent : {false, true}) check_life({at, code, persistent}, pace, clean.tokens, cache_folder);
}

TEST(FaultInjectionLong, EveryCallAtFullSpeed) {
    every_call(Pace::free);
}
TEST(FaultInjectionLong, EveryCallInSlices) {
    every_call(Pace::sliced);
}
TEST(FaultInjectionLong, EveryCallOfADroppedRound) {
    every_call(Pace::dropped);
}
TEST(FaultInjectionLong, EveryCallOfATargetThatDraftsForItself) {
    every_call(Pace::itself);
}

TEST(FaultInjectionLong, EveryCallOfSequencesThatAreParked) {
    every_call(Pace::parked);
}

// With a folder for compiled pipelines there are two calls more, and a failure may not damage what is kept.
TEST(FaultInjectionLong, EveryCallWithAPipelineCache) {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "auspex_fault_injection";
    std::filesystem::create_directories(folder);
    every_call(Pace::free, folder.string());
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace auspex::test::fault_injection_long
