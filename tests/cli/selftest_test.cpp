// auspex selftest: passes on the bundled pair, says so in lines and in JSON; its chi-square test tells right from
// wrong; a slow device gets fewer draws, which still do.
#include "apps/cli/selftest/chi_square.h"
#include "apps/cli/selftest/effort.h"
#include "cli/cli_process.h"
#include "reference/statistics.h"

#include <cmath>
#include <random>

namespace auspex::test::selftest_test {

TEST(CliSelftest, ChiSquareIsTheReferences) {
    for (const double degrees : {1.0, 2.0, 5.0, 30.0, 342.0, 2000.0})
        for (const double times : {0.01, 0.3, 0.8, 1.0, 1.1, 1.5, 3.0}) {
            const double expected = reference::chi_square_p(times * degrees, degrees);
            EXPECT_NEAR(cli::chi_square_p(times * degrees, degrees), expected, 1e-12 + 1e-9 * expected)
                << degrees << " degrees, " << times;
        }
    // Tables: the 5 % points of 1, 10 and 100 degrees, and two degrees, where it is exp(-x / 2).
    EXPECT_NEAR(cli::chi_square_p(3.841459, 1), 0.05, 1e-7);
    EXPECT_NEAR(cli::chi_square_p(18.307038, 10), 0.05, 1e-7);
    EXPECT_NEAR(cli::chi_square_p(124.342113, 100), 0.05, 1e-7);
    EXPECT_NEAR(cli::chi_square_p(100.0, 2) / std::exp(-50.0), 1.0, 1e-9);
    EXPECT_EQ(cli::chi_square_p(0.0, 7), 1.0);
    EXPECT_LT(cli::chi_square_p(1e6, 300), 1e-300);
}

TEST(CliSelftest, ChiSquareTellsRightFromWrong) {
    // A geometric distribution: many bins expect too few.
    std::vector<double> right(40);
    for (size_t i = 0; i < right.size(); ++i)
        right[i] = std::pow(0.7, static_cast<double>(i)) * 0.3 / (1.0 - std::pow(0.7, 40.0));
    std::mt19937_64 random(5); // specified bit by bit, unlike std's distributions
    std::vector<uint64_t> counts(right.size());
    for (int i = 0; i < 20000; ++i) {
        double left = static_cast<double>(random() >> 11) * 0x1p-53;
        size_t bin = 0;
        while (bin + 1 < right.size() && (left -= right[bin]) >= 0.0)
            ++bin;
        counts[bin] += 1;
    }
    const cli::ChiSquare good = cli::chi_square(counts, right);
    EXPECT_GT(good.p_value, 1e-3);
    EXPECT_LT(good.bins, right.size());
    EXPECT_GT(good.bins, 15u);

    std::vector<double> wrong = right; // total variation 0.02
    wrong[0] -= 0.02;
    wrong[1] += 0.02;
    EXPECT_LT(cli::chi_square(counts, wrong).p_value, 1e-6);

    std::vector<double> impossible = right;
    impossible[1] += impossible[0];
    impossible[0] = 0.0;
    EXPECT_EQ(cli::chi_square(counts, impossible).p_value, 0.0);
    EXPECT_EQ(cli::chi_square({7, 0}, {1.0, 0.0}).p_value, 1.0) << "one bin is all there is";
}

TEST(CliSelftest, PassesOnTheBundledPair) {
    const Json selftest = run_cli_json({"selftest", "--seconds-for-draws", "100000"}); // also under a sanitizer
    EXPECT_EQ(keys_of(selftest),
              (std::vector<std::string>{"schema", "device", "model", "size", "passed", "seconds", "checks"}));
    EXPECT_EQ(keys_of(selftest["size"]), (std::vector<std::string>{"name", "reason", "completions_per_second"}));
    EXPECT_EQ(selftest["size"]["name"], "all");
    EXPECT_TRUE(selftest["size"]["reason"].is_null());
    EXPECT_GT(selftest["size"]["completions_per_second"].get<double>(), 0.0);
    EXPECT_EQ(keys_of(selftest["device"]), (std::vector<std::string>{"name", "driver", "api_version", "numerics_id"}));
    EXPECT_EQ(keys_of(selftest["model"]), (std::vector<std::string>{"target", "draft"}));
    EXPECT_TRUE(selftest["passed"].get<bool>());
    EXPECT_LT(selftest["seconds"].get<double>(), 600.0);

    std::vector<std::string> names;
    for (const Json& check : selftest["checks"]) {
        EXPECT_EQ(keys_of(check), (std::vector<std::string>{"name", "passed", "figure", "seconds", "measured"}));
        names.push_back(check["name"]);
        const Json& measured = check["measured"];
        EXPECT_TRUE(check["passed"].get<bool>()) << check.dump();
        EXPECT_GT(measured["draft_n"].get<double>(), 0.0) << check.dump();
        if (measured.contains("p_value")) {
            EXPECT_GE(measured["completions"].get<double>(), check["name"] == "sampling-control" ? 5000.0 : 20000.0);
            EXPECT_GT(measured["bins"].get<double>(), 50.0);
            EXPECT_EQ(measured["p_value"].get<double>() < 1e-6, check["name"] == "sampling-control") << check.dump();
        } else if (measured.contains("different")) {
            EXPECT_EQ(measured["different"].get<double>(), 0.0) << check.dump();
        }
        if (check["name"] == "full-accept") {
            EXPECT_EQ(measured["draft_n_accepted"], measured["draft_n"]);
        }
        if (check["name"] == "full-reject") {
            EXPECT_EQ(measured["draft_n_accepted"].get<double>(), 0.0);
        }
        if (check["name"] == "ties" || check["name"] == "coupled" || check["name"] == "pair-greedy") { // some of each
            EXPECT_GT(measured["draft_n_accepted"].get<double>(), 0.0) << check.dump();
            EXPECT_LT(measured["draft_n_accepted"].get<double>(), measured["draft_n"].get<double>()) << check.dump();
        }
    }
    EXPECT_EQ(names, (std::vector<std::string>{"sampling", "sampling-control", "sampling-host", "ties", "full-accept",
                                               "full-reject", "coupled", "pair-greedy", "pair-coupled"}));
}

// Without a draft model the drafts come from the plain text; one line per check.
TEST(CliSelftest, PassesOnATargetAloneAndSaysSoInLines) {
    const CliResult result = run_cli({"selftest", "-m", kDraft});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    size_t n_ok = 0;
    for (size_t at = result.out.find("\nok "); at != std::string::npos; at = result.out.find("\nok ", at + 1))
        ++n_ok;
    EXPECT_EQ(n_ok, 9u) << result.out;
    EXPECT_NE(result.out.find("9 checks passed"), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("FAILED"), std::string::npos) << result.out;
    EXPECT_EQ(result.err, "");
}

TEST(CliSelftest, TheFirstDrawsDecideHowManyFollow) {
    constexpr uint64_t kBatch = 100, kAll = 10000;
    const auto is_small = [](std::initializer_list<double> batches) {
        cli::Effort effort(150.0); // a batch may take 1.5 s
        for (const double seconds : batches)
            effort.add_batch(seconds, kBatch, kAll);
        return effort.is_small();
    };
    EXPECT_FALSE(is_small({60.0, 1.4}));
    EXPECT_FALSE(is_small({60.0})) << "it compiled";
    EXPECT_FALSE(is_small({60.0, 9.0, 9.0, 1.4})) << "something came between";
    EXPECT_FALSE(is_small({60.0, 1.4, 9.0, 9.0, 9.0})) << "it is decided once";
    EXPECT_FALSE(is_small({60.0, 1.6, 1.6}));
    EXPECT_TRUE(is_small({60.0, 1.6, 1.6, 1.6}));
    EXPECT_TRUE(is_small({0.1, 1.6, 1.6, 1.6, 0.1})) << "it is decided once";

    cli::Effort effort(150.0);
    EXPECT_EQ(effort.per_second(), 0.0);
    for (const double seconds : {60.0, 4.0, 2.0, 3.0})
        effort.add_batch(seconds, kBatch, kAll);
    EXPECT_EQ(effort.per_second(), 50.0);
    EXPECT_EQ(effort.expected_seconds(), 200.0);
    EXPECT_EQ(effort.choose(7, 3), 3);
}

// The small size, as on a slow device: every check passes, so the control is still seen to be wrong, and says its size.
TEST(CliSelftest, ASlowDeviceGetsFewerDrawsThatStillTellRightFromWrong) {
    const Json selftest = run_cli_json({"selftest", "--seconds-for-draws", "0"});
    EXPECT_EQ(selftest["size"]["name"], "small");
    EXPECT_NE(selftest["size"]["reason"].get<std::string>().find("completions per second"), std::string::npos);
    EXPECT_TRUE(selftest["passed"].get<bool>()) << selftest.dump();
    size_t n_counted = 0;
    for (const Json& check : selftest["checks"]) {
        const Json& measured = check["measured"];
        EXPECT_TRUE(check["passed"].get<bool>()) << check.dump();
        EXPECT_GT(measured["draft_n"].get<double>(), 0.0) << check.dump();
        if (measured.contains("p_value")) {
            ++n_counted;
            EXPECT_EQ(measured["completions"].get<double>(), 512.0) << check.dump();
            EXPECT_GE(measured["bins"].get<double>(), 20.0) << check.dump();
            EXPECT_EQ(measured["p_value"].get<double>() < 1e-6, check["name"] == "sampling-control") << check.dump();
        }
        if (check["name"] == "full-accept") {
            EXPECT_EQ(measured["draft_n_accepted"], measured["draft_n"]);
            EXPECT_GE(measured["draft_n"].get<double>(), 100.0);
        }
        if (check["name"] == "full-reject") {
            EXPECT_EQ(measured["draft_n_accepted"].get<double>(), 0.0);
            EXPECT_GE(measured["draft_n"].get<double>(), 100.0);
        }
        if (check["name"] == "ties" || check["name"] == "coupled") { // some of each
            EXPECT_GT(measured["draft_n_accepted"].get<double>(), 0.0) << check.dump();
            EXPECT_LT(measured["draft_n_accepted"].get<double>(), measured["draft_n"].get<double>()) << check.dump();
        }
    }
    EXPECT_EQ(n_counted, 3u);
    EXPECT_EQ(selftest["checks"].size(), 9u);
}

TEST(CliSelftest, ATerminalSeesHowFarItIs) {
    const CliResult result = run_cli_in_terminal({"selftest", "--seconds-for-draws", "0"}, {.environment = {{"TERM", "xterm"}}});
    EXPECT_EQ(result.exit_code, 0) << result.out;
    EXPECT_NE(result.out.find("size   small: "), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("checking ["), std::string::npos) << result.out;
    EXPECT_NE(result.out.find(" s left"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("9 checks passed"), std::string::npos) << result.out;
    for (size_t at = result.out.find("ok     "); at != std::string::npos; at = result.out.find("ok     ", at + 1)) {
        ASSERT_GT(at, 0u);
        EXPECT_TRUE(result.out[at - 1] == '\n' || result.out[at - 1] == 'K') << "on a line of its own: " << result.out;
    }
}

// Ctrl-C as soon as something is shown: that is the device, before any check is done.
TEST(CliSelftest, SaysAtOnceWhatItTests) {
    const CliResult result = run_cli({"selftest"}, {.n_interrupts = 1});
    EXPECT_EQ(result.exit_code, kInterrupted);
    EXPECT_EQ(result.out.rfind("device ", 0), 0u) << result.out;
    EXPECT_NE(result.out.find("\ntarget "), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("ok "), std::string::npos) << result.out;
}

TEST(CliSelftest, SaysWhatIsWrongBeforeItChecksAnything) {
    expect_error({"selftest", "-m", "/nonexistent/model"}, kFile, "/nonexistent/model");
    expect_error({"selftest", "-m", kTarget, "-md", "/nonexistent/draft"}, kFile, "/nonexistent/draft");
    expect_error({"selftest", "--device", "nosuchdevice"}, kDevice, "nosuchdevice");
    expect_error({"selftest", "--temp", "1"}, kUsage, "--temp");
    expect_error({"selftest", "--seconds-for-draws=-1"}, kUsage, "--seconds-for-draws");
}

} // namespace auspex::test::selftest_test
