// The fuzz targets in the suite: the whole corpus, inputs too large for files, and a short deterministic mutation loop,
// each run held to the limits of memory and time. The endless version is run.sh.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_meter.h"
#include "model/file_fixtures.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>

namespace auspex::test::fuzz_test {
namespace {

// Processor time of this process, which has one thread.
double seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// A sanitizer slows large inputs down.
constexpr double max_seconds = fuzz_max_seconds * (under_sanitizer ? 4 : 1);

// Empty, or which promise the target broke.
std::string run_once(const FuzzTarget& target, const std::string& input) {
    const std::vector<std::byte> bytes = [&] { // exact size, so that a sanitizer sees the first byte read too far
        std::vector<std::byte> copy(input.size());
        if (!input.empty()) std::memcpy(copy.data(), input.data(), input.size());
        return copy;
    }();
    const double start = seconds();
    const MemoryMeter meter;
    try {
        target.run(bytes);
    } catch (const FuzzFailure& failure) {
        return failure.what;
    } catch (const std::exception& error) {
        return std::string("an exception left the target: ") + error.what();
    }
    if (meter.peak_bytes() > 2 * input.size() + fuzz_extra_bytes)
        return std::to_string(meter.peak_bytes() >> 20) + " MiB for a file of " + std::to_string(input.size()) +
               " bytes";
    if (seconds() - start > max_seconds) return std::to_string(seconds() - start) + " s";
    return {};
}

struct Sample {
    std::string name, bytes;
};

// Everything that the repository holds for a target.
std::vector<Sample> samples_of(const FuzzTarget& target) {
    std::vector<Sample> samples;
    for (const char* kind : {"corpus", "regressions"}) {
        const std::filesystem::path folder = std::string(AUSPEX_FUZZ_DIR "/") + kind + "/" + target.name;
        if (!std::filesystem::is_directory(folder)) continue;
        for (const auto& file : std::filesystem::directory_iterator(folder)) {
            std::ifstream in(file.path(), std::ios::binary);
            samples.push_back({file.path().string(), {std::istreambuf_iterator<char>(in), {}}});
        }
    }
    std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.name < b.name; });
    return samples;
}

class Fuzz : public testing::TestWithParam<FuzzTarget> {};

INSTANTIATE_TEST_SUITE_P(targets, Fuzz, testing::ValuesIn(fuzz_targets),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_P(Fuzz, replays_the_corpus) {
    const auto samples = samples_of(GetParam());
    EXPECT_GE(samples.size(), 10u);
    for (const Sample& sample : samples)
        EXPECT_EQ(run_once(GetParam(), sample.bytes), "") << sample.name;
}

// Numbers that counts, offsets and dimensions go wrong at, as little-endian words.
void put_number(std::string& text, Dice& dice) {
    const uint64_t numbers[] = {0,
                                1,
                                0x7f,
                                0xff,
                                0xffff,
                                1u << 20,
                                0x7fffffff,
                                0x80000000,
                                0xffffffff,
                                uint64_t{1} << 32,
                                uint64_t{1} << 61,
                                uint64_t{1} << 63,
                                ~uint64_t{0},
                                ~uint64_t{7}};
    const size_t size = dice.below(2) == 0 ? 4 : 8;
    if (text.size() < size) return;
    const uint64_t number = numbers[dice.below(std::size(numbers))];
    const size_t at = dice.below(text.size() - size + 1);
    for (size_t i = 0; i < size; ++i)
        text[at + i] = static_cast<char>(number >> 8 * i & 0xff);
}

std::string crossed(const std::string& a, const std::string& b, Dice& dice) {
    return a.substr(0, dice.below(a.size() + 1)) + b.substr(std::min<size_t>(b.size(), dice.below(b.size() + 1)));
}

TEST_P(Fuzz, survives_mutations) {
    constexpr double limit_s = 0.4; // of processor time for each target
    constexpr int max_runs = 20000;
    const auto samples = samples_of(GetParam());
    ASSERT_FALSE(samples.empty());
    Dice dice(2026);
    int runs = 0;
    for (const double start = seconds(); runs < max_runs && seconds() - start < limit_s; ++runs) {
        std::string input = samples[dice.below(samples.size())].bytes;
        switch (dice.below(4)) {
        case 0:
            put_number(input, dice);
            break;
        case 1:
            input = crossed(input, samples[dice.below(samples.size())].bytes, dice);
            break;
        default:
            input = mutated(std::move(input), dice);
        }
        const std::string broken = run_once(GetParam(), input);
        ASSERT_EQ(broken, "") << "run " << runs << ": " << in_quotes(input, 400);
    }
    EXPECT_GE(runs, 20);
}

// ---- headers of 100 000 entries ------------------------------------------------------------------------------------

std::string le64(uint64_t value) {
    std::string out;
    for (int i = 0; i < 8; ++i)
        out += static_cast<char>(value >> 8 * i & 0xff);
    return out;
}
std::string joined(size_t n, const std::function<std::string(size_t)>& item) {
    std::string out;
    for (size_t i = 0; i < n; ++i)
        out += item(i);
    return out;
}

struct LargeInput {
    const char* target;
    const char* what;
    std::string bytes;
};

std::vector<LargeInput> large_inputs() {
    constexpr size_t n = 100'000;
    const auto name = [](size_t i) { return std::to_string(i); };
    const std::string gguf = "GGUF" + le64(3).substr(0, 4);
    const auto key = [&](size_t i) { return le64(name(i).size()) + name(i) + std::string(4, '\0') + "x"; };
    const auto tensor = [&](size_t i) {
        return le64(name(i).size()) + name(i) + le64(1).substr(0, 4) + le64(1) + le64(0).substr(0, 4) + le64(32 * i);
    };
    const auto safetensor = [&](size_t i) {
        return (i ? ",\"" : "\"") + name(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    };
    const auto safetensors = [&](size_t count) {
        const std::string header = "{" + joined(count, safetensor) + "}";
        return le64(header.size()) + header;
    };
    const auto shard = [&](size_t i) { return (i ? ",\"" : "\"") + name(i) + "\":\"1.safetensors\""; };
    const auto token = [&](size_t i) { return (i ? ",\"" : "\"") + name(i) + "\":" + name(i); };
    const auto empty_lists = [](size_t bytes) { return "[]" + joined(bytes / 3 - 20, [](size_t) { return ",[]"; }); };
    const auto piece = [&](size_t i) {
        const std::string spelling = i == 0 ? "<unk>" : name(i), type = i == 0 ? "\x02" : "\x01";
        return std::string{'\x0a', static_cast<char>(spelling.size() + 4), '\x0a', static_cast<char>(spelling.size())} +
               spelling + "\x18" + type;
    };
    const auto sentencepiece = [&](size_t count) {
        return joined(count, piece) + std::string("\x12\x02\x18\x02\x1a\x04\x20\x00\x28\x01", 10);
    };
    const auto spelled = [&](size_t i) { return le64(name(i).size() + 1) + "x" + name(i); };
    const auto vocabulary = [&](size_t count) {
        const auto list = [&](const std::string& list_name, uint64_t type, const std::string& items) {
            return le64(list_name.size()) + list_name + le64(9).substr(0, 4) + le64(type).substr(0, 4) + le64(count) +
                   items;
        };
        return gguf + le64(0) + le64(3) + le64(20) + "tokenizer.ggml.model" + le64(8).substr(0, 4) + le64(5) + "llama" +
               list("tokenizer.ggml.tokens", 8, joined(count, spelled)) +
               list("tokenizer.ggml.scores", 6, std::string(4 * count, '\0'));
    };
    return {
        {"gguf", "keys", gguf + le64(0) + le64(n) + joined(n, key)},
        {"gguf", "as many keys as may be", gguf + le64(0) + le64(65536) + joined(65536, key)},
        {"gguf", "tensors", gguf + le64(n) + le64(0) + joined(n, tensor) + std::string(32 * n, '\0')},
        {"gguf", "as many tensors as may be",
         gguf + le64(65536) + le64(0) + joined(65536, tensor) + std::string(32 * 65536 + 32, '\0')},
        {"safetensors", "tensors", safetensors(n)},
        {"safetensors", "as many tensors as may be", safetensors(65536)},
        {"safetensors", "values of nothing", le64(400'001) + "{" + joined(n, [](size_t) { return "[],\n"; })},
        {"index_json", "tensors", R"({"weight_map":{)" + joined(70'000, shard) + "}}"}, // 2 MiB is the limit
        {"gguf", "vocabulary", vocabulary(n)},
        {"gguf", "as large a vocabulary as may be", vocabulary(1u << 18)},
        {"sentencepiece", "pieces", sentencepiece(n)},
        {"sentencepiece", "as many pieces as may be", sentencepiece(1u << 18)},
        {"index_json", "values of nothing, as large as may be", "{\"a\":[" + empty_lists(2u << 20) + "]}"},
        {"config_json", "values of nothing, as large as may be", "{\"a\":[" + empty_lists(1u << 20) + "]}"},
        {"tokenizer_json", "values of nothing as a setting", "\x1e{\"chat_template\":[" + empty_lists(3 * n) + "]}"},
        {"tokenizer_json", "values of nothing passed over", "\x1e{\"a\":[" + empty_lists(30 * n) + "]}"},
        {"tokenizer_json", "tokens", R"({"model":{"type":"BPE","merges":[],"vocab":{)" + joined(n, token) + "}}}"},
    };
}

TEST(FuzzLarge, headers_of_100000_entries_stay_within_the_limits) {
    for (const LargeInput& input : large_inputs()) {
        const auto* target = std::find_if(std::begin(fuzz_targets), std::end(fuzz_targets), [&](const FuzzTarget& one) {
            return std::string_view(one.name) == input.target;
        });
        ASSERT_NE(target, std::end(fuzz_targets));
        EXPECT_EQ(run_once(*target, input.bytes), "") << input.target << ": " << input.what;
    }
}

// ---- the limits themselves -----------------------------------------------------------------------------------------

std::vector<std::string>* kept = nullptr; // what a faulty target holds

TEST(FuzzLimits, broken_ones_are_seen) {
    std::vector<std::string> memory;
    kept = &memory;
    const FuzzTarget greedy = {"greedy", [](FuzzInput) { kept->emplace_back(fuzz_extra_bytes + 4096, 'x'); }};
    const FuzzTarget modest = {"modest", [](FuzzInput) { kept->emplace_back(fuzz_extra_bytes / 2, 'x'); }};
    const FuzzTarget slow = {"slow", [](FuzzInput) {
                                 for (const double start = seconds(); seconds() - start < max_seconds + 0.05;) {
                                 }
                             }};
    const FuzzTarget wrong = {"wrong", [](FuzzInput) { fuzz_check(false, "a promise"); }};
    const FuzzTarget throwing = {"throwing", [](FuzzInput) { throw std::runtime_error("why"); }};
    EXPECT_NE(run_once(greedy, "x").find("MiB"), std::string::npos);
    EXPECT_EQ(run_once(modest, "x"), "");
    EXPECT_EQ(run_once(greedy, std::string(4096, 'x')), "");
    EXPECT_NE(run_once(slow, "x").find(" s"), std::string::npos);
    EXPECT_EQ(run_once(wrong, "x"), "a promise");
    EXPECT_NE(run_once(throwing, "x").find("why"), std::string::npos);
}

} // namespace
} // namespace auspex::test::fuzz_test
