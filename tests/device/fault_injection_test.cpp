// Every Vulkan call may fail. Here: each kind of call at its first, second and last use and a sample of the others;
// fault_injection_long.cpp leaves none out.
#include "device/fault_injection.h"

#include <set>

namespace auspex::test::fault_injection_test {
namespace {

TEST(FaultInjection, NothingLeaksWithoutFaults) {
    for (Pace pace : {Pace::free, Pace::sliced, Pace::dropped, Pace::itself, Pace::parked}) {
        const Life life = live({}, pace);
        EXPECT_TRUE(life.first_error.ok()) << life.first_error.message();
        EXPECT_EQ(life.finished, pace != Pace::dropped);
        EXPECT_EQ(life.was_parked, pace == Pace::parked);
        EXPECT_EQ(life.has_evicted, pace == Pace::parked);
        EXPECT_EQ(VkInjector::instance().alive(), "");
        std::printf("pace %d: %zu calls\n", static_cast<int>(pace), VkInjector::instance().calls().size());
    }
}

TEST(FaultInjection, SampledCallsFail) {
    for (Pace pace : {Pace::free, Pace::sliced, Pace::dropped, Pace::itself, Pace::parked}) {
        const Life clean = live({}, pace);
        const std::vector<const char*> calls = VkInjector::instance().calls();
        std::map<std::string, std::vector<int>> uses;
        for (size_t i = 0; i < calls.size(); ++i) uses[calls[i]].push_back(static_cast<int>(i));
        std::set<int> chosen;
        for (const auto& [name, at] : uses) {
            chosen.insert({at.front(), at.back()});
            if (pace == Pace::free) chosen.insert({at[at.size() / 2], at[(at.size() - 1) / 3]});
        }
        int turn = static_cast<int>(pace);
        for (int at : chosen) {
            // Codes and modes take turns; every kind of call meets most of them.
            constexpr VkResult kCodes[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY};
            const bool persistent = turn / 2 % 2 == 1;
            check_life({at, kCodes[turn % 2], persistent}, pace, clean.tokens);
            const std::string name = calls[static_cast<size_t>(at)];
            if (name == "QueueSubmit" || name == "WaitForFences" || name == "GetFenceStatus" || name == "GetQueryPoolResults" || name == "CreateDevice")
                for (bool for_ever : {false, true}) check_life({at, VK_ERROR_DEVICE_LOST, for_ever}, pace, clean.tokens);
            ++turn;
        }
        std::printf("pace %d: %zu of %zu calls\n", static_cast<int>(pace), chosen.size(), calls.size());
    }
}

} // namespace
} // namespace auspex::test::fault_injection_test
