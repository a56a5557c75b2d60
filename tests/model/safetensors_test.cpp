// The safetensors header: what a good file yields, and that no lie about sizes, places or structure gets through.
#include "model/file_fixtures.h"
#include "model/checkpoint/safetensors.h"

#include <cstring>
#include <limits>

namespace auspex::safetensors_test {
namespace {

using namespace test;

Result<std::vector<SafetensorsEntry>> parse(std::string_view file) {
    // An exact copy on the heap, so that a sanitizer sees the first byte read too far.
    std::vector<std::byte> bytes(file.size());
    if (!file.empty()) std::memcpy(bytes.data(), file.data(), file.size());
    return parse_safetensors(bytes, "dir/model.safetensors");
}

TEST(Safetensors, lists_tensors_by_name) {
    const auto parsed = parse(safetensors(tiny_header(), tiny_data()));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const auto& entries = parsed.value();
    const uint64_t data = 8 + tiny_header().size();
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_EQ(entries[0].name, "a");
    EXPECT_TRUE(entries[0].shape.empty());
    EXPECT_EQ(entries[0].dtype, DType::f16);
    EXPECT_EQ(entries[1].name, "ids");
    EXPECT_EQ(entries[1].type, "U8");
    EXPECT_FALSE(entries[1].dtype.has_value()); // listed, though nothing computes with it
    EXPECT_EQ(entries[2].name, "lm_head.weight");
    EXPECT_EQ(entries[2].dtype, DType::f32);
    EXPECT_EQ(entries[2].shape, (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ(entries[2].begin, data + 16);
    EXPECT_EQ(entries[2].end, data + 40);
    EXPECT_EQ(entries[3].dtype, DType::bf16);
}

TEST(Safetensors, maps_a_file_and_gives_the_bytes_of_a_tensor) {
    TempFolder folder;
    folder.write("m", safetensors(tiny_header(), tiny_data()));
    const auto file = SafetensorsFile::open(folder.file("m"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    const SafetensorsEntry* entry = file.value().find("lm_head.weight");
    ASSERT_TRUE(entry);
    ASSERT_EQ(file.value().bytes(*entry).size(), 24u);
    EXPECT_EQ(file.value().bytes(*entry)[0], std::byte{16});
    EXPECT_EQ(file.value().bytes(*entry)[23], std::byte{39});
    EXPECT_FALSE(file.value().find("lm_head"));
    EXPECT_FALSE(file.value().find(""));
}

TEST(Safetensors, accepts_the_odd_but_legal) {
    for (const char* header : {"{}", "{ }   ", R"({"__metadata__":{}})"})
        EXPECT_TRUE(parse(safetensors(header, "")).ok()) << header;
    const auto empty = parse(safetensors(R"({"z":{"shape":[0,7],"data_offsets":[2,2],"dtype":"F32"},)"
                                         R"("y":{"dtype":"I16","shape":[1],"data_offsets":[0,2]}})",
                                         "ab"));
    ASSERT_TRUE(empty.ok()) << empty.status().message();
    EXPECT_EQ(empty.value()[1].end - empty.value()[1].begin, 0u);
    EXPECT_TRUE(
        parse(safetensors(R"({"p":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "x")).ok()); // 4-bit elements
}

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets, size_t data_bytes) {
    return safetensors("{\"t\":{\"dtype\":" + std::string(dtype) + ",\"shape\":" + std::string(shape) +
                           ",\"data_offsets\":" + std::string(offsets) + "}}",
                       std::string(data_bytes, 'x'));
}
std::string two(std::string_view first_offsets, std::string_view second_offsets, size_t data_bytes) {
    return safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(first_offsets) +
                           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(second_offsets) + "}}",
                       std::string(data_bytes, 'x'));
}

struct Hostile {
    const char* what;
    std::string file;
    const char* in_message;
    Code code = Code::bad_file;
};

std::vector<Hostile> lying_about_the_file() {
    const std::string header = tiny_header(), data = tiny_data();
    return {
        {"empty file", "", "0 bytes"},
        {"seven bytes", std::string(7, '\0'), "7 bytes"},
        {"length 0", safetensors_with_length(0, "", ""), "no {"},
        {"length beyond the file", safetensors_with_length(header.size() + data.size() + 1, header, data),
         "header length"},
        {"length 2^64 - 1", safetensors_with_length(std::numeric_limits<uint64_t>::max(), header, data),
         "header length"},
        {"length 2^64 - 8", safetensors_with_length(std::numeric_limits<uint64_t>::max() - 7, header, data),
         "header length"},
        {"length 2^63", safetensors_with_length(uint64_t{1} << 63, header, data), "header length"},
        {"length one short", safetensors_with_length(header.size() - 1, header, data), "not JSON"},
        {"length one long", safetensors_with_length(header.size() + 1, header, "x" + data), "not JSON"},
        {"a zero byte after the JSON", safetensors_with_length(header.size() + 1, header, data), "zero byte"},
        {"not JSON", safetensors("{hello}", ""), "not JSON"},
        {"a list", safetensors("[1,2]", ""), "no {"},
        {"leading space", safetensors(" {}", ""), "no {"},
        {"nested deeply", safetensors("{\"a\":" + std::string(100000, '['), ""), "a list"},
        {"nested in metadata", safetensors(R"({"__metadata__":{"a":{}}})", ""), "an object in __metadata__"},
        {"metadata twice", safetensors(R"({"__metadata__":{},"__metadata__":{}})", ""), "__metadata__ twice"},
        {"metadata is a list", safetensors(R"({"__metadata__":[]})", ""), "an object of texts"},
        {"text after the object", safetensors("{}{}", ""), "not JSON"},
        {"invalid UTF-8 name", safetensors("{\"\xff\":{}}", ""), "not JSON"},
        {"data without tensors", safetensors("{}", "x"), "1 bytes of data"},
        {"git lfs pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git lfs pull"},
    };
}

std::vector<Hostile> lying_about_a_tensor() {
    const std::string header = tiny_header(), data = tiny_data();
    return {
        {"offsets reversed", one("\"U8\"", "[4]", "[4,0]", 4), "[4, 0) at tensor \"t\""},
        {"end beyond the file", one("\"U8\"", "[5]", "[0,5]", 4), "[0, 5)"},
        {"begin beyond the file", one("\"U8\"", "[0]", "[9,9]", 4), "[9, 9)"},
        {"end of 2^64 - 1", one("\"U8\"", "[4]", "[0,18446744073709551615]", 4), "18446744073709551615)"},
        {"end above 2^64", one("\"U8\"", "[4]", "[0,18446744073709551616]", 4), "the number \"18446744073709551616\""},
        {"overlap", two("[0,4]", "[2,6]", 6), "overlaps"},
        {"same range twice", two("[0,4]", "[0,4]", 4), "overlaps"},
        {"a hole between", two("[0,4]", "[5,9]", 9), "hole"},
        {"a hole at the start", one("\"U8\"", "[4]", "[1,5]", 5), "hole"},
        {"bytes left over", one("\"U8\"", "[4]", "[0,4]", 5), "5 bytes of data"},
        {"shape too large", one("\"F32\"", "[2]", "[0,4]", 4), "shape times type, 8"},
        {"shape too small", one("\"F16\"", "[1]", "[0,4]", 4), "shape times type, 2"},
        {"shape overflows to the size", one("\"F16\"", "[9223372036854775808,2,2]", "[0,0]", 0), "below 2^61"},
        {"product wraps to 4", one("\"U8\"", "[4294967297,4294967297,4]", "[0,4]", 4), "below 2^61"},
        {"overflow hidden by a zero", one("\"U8\"", "[4294967296,4294967296,4294967296,0]", "[0,0]", 0), "below 2^61"},
        {"nine dimensions", one("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]", 1), "8 dimensions"},
        {"negative dimension", one("\"U8\"", "[-1]", "[0,1]", 1), "the number -1 in shape"},
        {"fractional dimension", one("\"U8\"", "[1.0]", "[0,1]", 1), "\"1.0\" in shape"},
        {"NaN dimension", one("\"U8\"", "[NaN]", "[0,1]", 1), "not JSON"},
        {"text dimension", one("\"U8\"", "[\"1\"]", "[0,1]", 1), "the text \"1\" in shape"},
        {"nested shape", one("\"U8\"", "[[1]]", "[0,1]", 1), "a list in shape"},
        {"shape is null", one("\"U8\"", "null", "[0,1]", 1), "null in shape"},
        {"shape is a number", one("\"U8\"", "1", "[0,1]", 1), "in shape"},
        {"one offset", one("\"U8\"", "[1]", "[0]", 1), "1 data_offsets"},
        {"three offsets", one("\"U8\"", "[1]", "[0,1,1]", 1), "two data_offsets"},
        {"negative offset", one("\"U8\"", "[1]", "[-1,0]", 1), "the number -1 in data_offsets"},
        {"dtype is a number", one("3", "[1]", "[0,1]", 1), "as dtype"},
        {"unknown dtype", one("\"Q4_K\"", "[1]", "[0,1]", 1), "type \"Q4_K\" at tensor \"t\"", Code::unsupported},
        {"odd number of 4-bit elements", one("\"F4\"", "[3]", "[0,1]", 1), "shape times type"},
        {"no dtype", safetensors(R"({"t":{"shape":[1],"data_offsets":[0,1]}})", "x"), "a field missing"},
        {"empty entry", safetensors(R"({"t":{}})", ""), "a field missing"},
        {"entry is a list", safetensors(R"({"t":[]})", ""), "a list at tensor \"t\""},
        {"field twice", safetensors(R"({"t":{"dtype":"U8","dtype":"U8"}})", ""), "dtype twice"},
        {"unknown field", safetensors(R"({"t":{"stride":[1]}})", ""), "\"stride\""},
        {"duplicate name",
         safetensors(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                     R"("t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                     "xy"),
         "\"t\" twice"},
        {"control characters in a name",
         safetensors(R"({"a\nb\u0007":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", "x"), "a\\x0ab\\x07"},
        {"a very long name", safetensors("{\"" + std::string(100000, 'n') + "\":3}", ""), "nnn..."},
    };
}

TEST(Safetensors, refuses_every_lie_in_one_line) {
    std::vector<Hostile> cases = lying_about_the_file();
    for (Hostile& more : lying_about_a_tensor())
        cases.push_back(std::move(more));
    EXPECT_GE(cases.size(), 50u);
    for (const Hostile& hostile : cases) {
        const auto parsed = parse(hostile.file);
        ASSERT_FALSE(parsed.ok()) << hostile.what;
        expect_refused(parsed.status(), hostile.code, "dir/model.safetensors", hostile.what);
        EXPECT_NE(parsed.status().message().find(hostile.in_message), std::string::npos)
            << hostile.what << ": " << hostile.in_message << " in: " << parsed.status().message();
    }
}

TEST(Safetensors, refuses_more_than_65536_tensors) {
    std::string header = "{";
    for (int i = 0; i <= 65536; ++i)
        header += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    expect_refused(parse(safetensors(header + "}", "")).status(), Code::bad_file, "dir/model.safetensors",
                   "65537 tensors");
    header.resize(header.rfind(",\"65536\""));
    EXPECT_TRUE(parse(safetensors(header + "}", "")).ok());
}

TEST(Safetensors, refuses_the_file_cut_off_anywhere) {
    const std::string whole = safetensors(tiny_header(), tiny_data());
    for (size_t n = 0; n < whole.size(); ++n)
        expect_refused(parse(std::string_view(whole).substr(0, n)).status(), Code::bad_file, "dir/model.safetensors",
                       "cut to " + std::to_string(n));
    EXPECT_FALSE(parse(whole + "x").ok());
}

// Whatever is accepted keeps the promises of safetensors.h.
void expect_sound(const std::vector<SafetensorsEntry>& entries, size_t file_bytes) {
    for (const SafetensorsEntry& entry : entries) {
        ASSERT_LE(entry.begin, entry.end);
        ASSERT_LE(entry.end, file_bytes);
        if (!entry.dtype) continue;
        uint64_t bytes = dtype_bytes(*entry.dtype);
        for (uint64_t dim : entry.shape)
            bytes *= dim;
        EXPECT_EQ(bytes, entry.end - entry.begin);
    }
}

TEST(Safetensors, survives_random_damage) {
    Dice dice(7);
    const std::string header = tiny_header(), whole = safetensors(header, tiny_data());
    int accepted = 0;
    for (int i = 0; i < 6000; ++i) {
        // Half of the damage goes into the header text with a length that fits, or the length check would catch nearly
        // all.
        const std::string file = i % 2 ? mutated(whole, dice) : safetensors(mutated(header, dice), tiny_data());
        const auto parsed = parse(file);
        accepted += parsed.ok();
        if (parsed.ok()) {
            expect_sound(parsed.value(), file.size());
        } else {
            expect_refused(parsed.status(), parsed.status().code(), "dir/model.safetensors",
                           "mutation " + std::to_string(i));
            EXPECT_NE(parsed.status().code(), Code::internal);
        }
    }
    EXPECT_GT(accepted, 20); // a changed name or data byte is fine
    EXPECT_LT(accepted, 3000);
}

} // namespace
} // namespace auspex::safetensors_test
