// Status and Result: what the macros pass on and what they leave alone. The logger's silence.
#include "base/log.h"
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace auspex::status_test {
namespace {

Result<int> half(int value) {
    if (value % 2 != 0) return Status(Code::invalid_argument, std::to_string(value) + ": odd, expected an even number");
    return value / 2;
}

Result<int> quarter(int value) {
    AUSPEX_TRY_ASSIGN(once, half(value));
    AUSPEX_TRY_ASSIGN(twice, half(once));
    return twice;
}

Status check(int value) {
    AUSPEX_TRY(quarter(value).status());
    return ok_status();
}

TEST(Status, is_fine_unless_told_otherwise) {
    EXPECT_TRUE(ok_status().ok());
    EXPECT_EQ(ok_status().code(), Code::ok);
    EXPECT_TRUE(ok_status().message().empty());
    EXPECT_FALSE(Status(Code::io, "disk").ok());
}

TEST(Status, try_leaves_with_the_first_failure) {
    EXPECT_TRUE(check(8).ok());
    EXPECT_EQ(check(6).code(), Code::invalid_argument);
    EXPECT_EQ(check(6).message(), "3: odd, expected an even number");
    EXPECT_EQ(check(5).message(), "5: odd, expected an even number");
}

TEST(Result, holds_a_value_or_the_reason) {
    EXPECT_EQ(quarter(8).value(), 2);
    EXPECT_TRUE(quarter(8).status().ok());
    EXPECT_FALSE(quarter(7).ok());
}

TEST(Result, carries_what_cannot_be_copied) {
    Result<std::unique_ptr<int>> made(std::make_unique<int>(3));
    std::unique_ptr<int> taken = std::move(made).value();
    EXPECT_EQ(*taken, 3);
}

TEST(Logger, without_a_sink_is_silent_and_with_one_passes_everything_on) {
    Logger logger;
    logger(LogLevel::error, "nobody hears this");
    std::string heard;
    logger.sink = [&](LogLevel level, std::string_view message) {
        EXPECT_EQ(level, LogLevel::warning);
        heard = message;
    };
    logger(LogLevel::warning, "low on pages");
    EXPECT_EQ(heard, "low on pages");
}

} // namespace
} // namespace auspex::status_test
