// What is thrown inside the engine becomes a Status that names what was worked on.
#include "base/catching.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace auspex::test::catching_test {

TEST(Catching, GivesWhatTheBodyGives) {
    EXPECT_TRUE(catching("a file", "to read it", [] { return ok_status(); }).ok());
    const Result<int> seven = catching("a file", "to read it", [] { return Result<int>(7); });
    ASSERT_TRUE(seven.ok());
    EXPECT_EQ(seven.value(), 7);
    const Result<int> refused =
        catching("a file", "to read it", []() -> Result<int> { return Status(Code::bad_file, "damaged"); });
    EXPECT_EQ(refused.status().code(), Code::bad_file);
    EXPECT_EQ(refused.status().message(), "damaged");
}

TEST(Catching, TurnsExceptionsIntoStatuses) {
    const Status memory = catching("a file", "to read it", []() -> Status { throw std::bad_alloc(); });
    EXPECT_EQ(memory.code(), Code::out_of_host_memory);
    EXPECT_EQ(memory.message(), "a file: found no memory to read it");
    const Result<int> other =
        catching("a file", "to read it", []() -> Result<int> { throw std::runtime_error("what\n"); });
    EXPECT_EQ(other.status().code(), Code::internal);
    EXPECT_EQ(other.status().message(), "a file: \"what\\x0a\"");
}

} // namespace auspex::test::catching_test
