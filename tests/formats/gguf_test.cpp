// The GGUF reader: what a good file yields, and that no lie about sizes, places or structure gets through. Each class
// of flaw that readers of this format were known for has a test of its name.
#include "formats/gguf.h"
#include "formats/gguf_builder.h"
#include "model/file_fixtures.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

namespace auspex::gguf_test {
namespace {

using namespace test;

const std::string path = "dir/model.gguf";

// Parses an exact copy on the heap, so that a sanitizer sees the first byte read too far.
struct Parsed {
    std::vector<std::byte> bytes;
    Result<GgufContents> contents;
    explicit Parsed(std::string_view file) : bytes(copy(file)), contents(parse_gguf(bytes, path)) {}

    static std::vector<std::byte> copy(std::string_view file) {
        std::vector<std::byte> bytes(file.size());
        if (!file.empty()) std::memcpy(bytes.data(), file.data(), file.size());
        return bytes;
    }
};

void expect_bad(std::string_view file, const std::string& in_message, Code code = Code::bad_file) {
    const Parsed parsed(file);
    ASSERT_FALSE(parsed.contents.ok()) << in_message;
    expect_refused(parsed.contents.status(), code, path, in_message);
    EXPECT_NE(parsed.contents.status().message().find(in_message), std::string::npos)
        << parsed.contents.status().message();
}

GgufBuilder sample() {
    GgufBuilder file;
    file.set("general.architecture", "llama").set("b", true).set("n", uint32_t{7}).set("eps", 1e-5f);
    file.set("d", 0.1).set("i8", int8_t{-1}).set("u8", uint8_t{255}).set("i16", int16_t{-300}).set("u16", uint16_t{9});
    file.set("i32", int32_t{5}).set("i64", int64_t{-1} << 40).set("u64", ~uint64_t{0});
    file.set("texts", std::vector<const char*>{"a", "", "long enough"}).set("empty", std::vector<const char*>{});
    file.set("scores", std::vector{0.5f, -1e30f}).set("types", std::vector<int32_t>{1, -6});
    file.set("flags", std::vector<uint8_t>{1, 0});
    file.tensor("a", 0, {2, 3}, std::string(24, 'a')).tensor("b", 8, {1, 1, 2, 32}, std::string(68, 'b'));
    return file;
}

TEST(Gguf, gives_every_value_by_key) {
    const Parsed parsed(sample().bytes());
    ASSERT_TRUE(parsed.contents.ok()) << parsed.contents.status().message();
    const GgufContents& c = parsed.contents.value();
    EXPECT_EQ(c.entries.size(), 17u);
    EXPECT_TRUE(std::is_sorted(c.entries.begin(), c.entries.end(), [](auto& a, auto& b) { return a.key < b.key; }));
    EXPECT_EQ(c.text_value("general.architecture"), "llama");
    EXPECT_EQ(c.bool_value("b"), true);
    EXPECT_EQ(c.unsigned_value("n"), 7u);
    EXPECT_EQ(c.unsigned_value("u8"), 255u);
    EXPECT_EQ(c.unsigned_value("u16"), 9u);
    EXPECT_EQ(c.unsigned_value("i32"), 5u);
    EXPECT_EQ(c.unsigned_value("u64"), ~uint64_t{0});
    EXPECT_EQ(c.real_value("eps"), static_cast<double>(1e-5f));
    EXPECT_EQ(c.real_value("d"), 0.1);
    for (const char* negative : {"i8", "i16", "i64"})
        EXPECT_EQ(c.unsigned_value(negative), std::nullopt) << negative;
    // Absent and of another type are the same answer.
    for (const char* key : {"absent", "", "general.architecture", "texts"}) {
        EXPECT_EQ(c.unsigned_value(key), std::nullopt) << key;
        EXPECT_EQ(c.real_value(key), std::nullopt) << key;
        EXPECT_EQ(c.bool_value(key), std::nullopt) << key;
    }
    EXPECT_EQ(c.unsigned_value("b"), std::nullopt);
    EXPECT_EQ(c.unsigned_value("eps"), std::nullopt);
    EXPECT_EQ(c.real_value("n"), std::nullopt);
    EXPECT_EQ(c.text_value("n"), std::nullopt);
    EXPECT_EQ(c.bool_value("u8"), std::nullopt);
    EXPECT_FALSE(c.find("absent"));
}

TEST(Gguf, gives_lists_in_place) {
    const Parsed parsed(sample().bytes());
    ASSERT_TRUE(parsed.contents.ok()) << parsed.contents.status().message();
    const GgufContents& c = parsed.contents.value();
    const GgufArray* texts = c.array_value("texts", GgufType::string);
    ASSERT_TRUE(texts);
    std::vector<std::string> seen;
    for_each_text(*texts, [&](uint64_t index, std::string_view text) {
        EXPECT_EQ(index, seen.size());
        seen.emplace_back(text);
        return true;
    });
    EXPECT_EQ(seen, (std::vector<std::string>{"a", "", "long enough"}));
    int calls = 0;
    for_each_text(*texts, [&](uint64_t, std::string_view) { return ++calls < 2; });
    EXPECT_EQ(calls, 2);
    EXPECT_FALSE(c.array_value("texts", GgufType::f32));
    EXPECT_FALSE(c.array_value("n", GgufType::u32));
    EXPECT_FALSE(c.array_value("absent", GgufType::u32));
    ASSERT_TRUE(c.array_value("empty", GgufType::string));
    EXPECT_EQ(c.array_value("empty", GgufType::string)->count, 0u);

    const GgufArray* scores = c.array_value("scores", GgufType::f32);
    ASSERT_TRUE(scores);
    EXPECT_EQ(real_at(*scores, 0), 0.5);
    EXPECT_EQ(real_at(*scores, 1), static_cast<double>(-1e30f));
    EXPECT_EQ(real_at(*scores, 2), std::nullopt);
    EXPECT_EQ(real_at(*scores, ~uint64_t{0}), std::nullopt);
    EXPECT_EQ(integer_at(*scores, 0), std::nullopt);
    for_each_text(*scores, [](uint64_t, std::string_view) { return ADD_FAILURE() << "not texts", true; });
    const GgufArray* types = c.array_value("types", GgufType::i32);
    ASSERT_TRUE(types);
    EXPECT_EQ(integer_at(*types, 0), 1);
    EXPECT_EQ(integer_at(*types, 1), -6);
    EXPECT_EQ(integer_at(*types, 2), std::nullopt);
    EXPECT_EQ(integer_at(*texts, 0), std::nullopt);
    ASSERT_TRUE(c.array_value("flags", GgufType::u8));
    EXPECT_EQ(integer_at(*c.array_value("flags", GgufType::u8), 0), 1);
}

TEST(Gguf, gives_tensors_their_shape_place_and_room) {
    const std::string file = sample().bytes();
    const Parsed parsed(file);
    ASSERT_TRUE(parsed.contents.ok()) << parsed.contents.status().message();
    const GgufContents& c = parsed.contents.value();
    ASSERT_EQ(c.tensors.size(), 2u);
    EXPECT_EQ(c.data_begin, file.size() - 32 - 68);
    EXPECT_EQ(c.alignment, 32u);
    EXPECT_EQ(c.tensors[0].name, "a");
    EXPECT_EQ(c.tensors[0].type, 0u);
    EXPECT_EQ(c.tensors[0].shape, (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ(c.tensors[0].offset, c.data_begin);
    EXPECT_EQ(c.tensors[0].room, 32u);
    EXPECT_EQ(c.tensors[1].shape, (std::vector<uint64_t>{1, 1, 2, 32}));
    EXPECT_EQ(c.tensors[1].type, 8u);
    EXPECT_EQ(c.tensors[1].offset, c.data_begin + 32);
    EXPECT_EQ(c.tensors[1].room, 68u);
    EXPECT_EQ(file[c.tensors[1].offset], 'b');
    EXPECT_EQ(c.find_tensor("b"), &c.tensors[1]);
    EXPECT_FALSE(c.find_tensor("c"));
}

TEST(Gguf, a_file_can_be_mapped_and_moved) {
    TempFolder folder;
    folder.write("m.gguf", sample().bytes());
    auto opened = GgufFile::open(folder.file("m.gguf"));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const GgufFile file = std::move(opened).value();
    EXPECT_EQ(file.path(), folder.file("m.gguf"));
    EXPECT_EQ(file.contents().text_value("general.architecture"), "llama");
    const GgufTensor* tensor = file.contents().find_tensor("b");
    ASSERT_TRUE(tensor);
    const auto bytes = file.tensor_bytes(*tensor, 68);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_EQ(bytes.value().size(), 68u);
    EXPECT_EQ(bytes.value()[67], std::byte{'b'});
    EXPECT_EQ(GgufFile::open(folder.file("absent.gguf")).status().code(), Code::not_found);
}

TEST(Gguf, accepts_the_odd_but_legal) {
    GgufBuilder nothing;
    EXPECT_TRUE(Parsed(nothing.header()).contents.ok()); // no tensors, no padding
    nothing.version = 2;
    EXPECT_TRUE(Parsed(nothing.bytes()).contents.ok());
    GgufBuilder wide;
    wide.alignment = 4096;
    wide.set("general.alignment", 4096u).tensor("a", 0, {1}, "1234").tensor("b", 0, {1}, "5678");
    const Parsed parsed(wide.bytes());
    ASSERT_TRUE(parsed.contents.ok()) << parsed.contents.status().message();
    EXPECT_EQ(parsed.contents.value().tensors[1].offset, 2 * 4096u);
    GgufBuilder backwards; // the order of names and that of places are unrelated
    backwards.tensor_at("a", 0, {1}, 32).tensor_at("b", 0, {1}, 0).data(std::string(64, 'x'));
    const Parsed reversed(backwards.bytes());
    ASSERT_TRUE(reversed.contents.ok()) << reversed.contents.status().message();
    EXPECT_EQ(reversed.contents.value().tensors[0].room, 32u);
    EXPECT_EQ(reversed.contents.value().tensors[1].room, 32u);
    GgufBuilder unknown; // types nobody knows are for the reader of weights to refuse, by name
    unknown.tensor("t", 12345, {1}, "x");
    EXPECT_TRUE(Parsed(unknown.bytes()).contents.ok());
}

TEST(Gguf, knows_its_files_by_name) {
    for (const char* name : {"a.gguf", "dir.d/A.GGUF", ".gguf", "x-00001-of-00002.Gguf"})
        EXPECT_TRUE(is_gguf_path(name)) << name;
    for (const char* name : {"", "gguf", "a.gguf.part", "a.ggu", "a.ggufx", "a.gguf/"})
        EXPECT_FALSE(is_gguf_path(name)) << name;
}

// ---- refusals, one flaw class each ----------------------------------------------------------------------------------

TEST(GgufFlaws, not_a_gguf_file) {
    expect_bad("", "expected \"GGUF\"");
    expect_bad("GGU", "expected \"GGUF\"");
    expect_bad("\x89PNG\r\n\x1a\n", "\\x89PNG");
    expect_bad("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull");
}

TEST(GgufFlaws, other_versions_and_byte_orders) {
    GgufBuilder file = sample();
    for (const uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
        file.version = version;
        expect_bad(file.bytes(), "version " + std::to_string(version), Code::unsupported);
    }
    file.version = 0x03000000;
    expect_bad(file.bytes(), "big-endian", Code::unsupported);
}

TEST(GgufFlaws, truncated_anywhere) {
    const std::string header = sample().header(), file = sample().bytes();
    for (size_t size = 0; size < header.size(); ++size)
        ASSERT_FALSE(Parsed(file.substr(0, size)).contents.ok()) << size;
    for (size_t size = header.size(); size <= file.size() - 68; ++size) // the last tensor has not begun
        ASSERT_FALSE(Parsed(file.substr(0, size)).contents.ok()) << size;
}

// CVE-2024-21802, -21825, -21836, -23496, -23605, CVE-2025-0315: counts that overflow an allocation or ask for too
// much.
TEST(GgufFlaws, count_overflow) {
    for (const uint64_t count :
         {uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} / 24, uint64_t{1} << 32, uint64_t{65537}, uint64_t{65536}}) {
        GgufBuilder file = sample();
        file.n_entries = count;
        expect_bad(file.bytes(), std::to_string(count) + " keys");
        file.n_entries = {};
        file.n_tensors = count;
        expect_bad(file.bytes(), std::to_string(count) + " tensors");
    }
    for (const uint64_t count : {uint64_t{1} << 62, ~uint64_t{0}, uint64_t{1} << 24})
        for (const uint32_t type : {0u, 4u, 8u, 10u}) {
            GgufBuilder file;
            file.set_raw("list", 9, le(type) + le(count) + std::string(64, '\0'));
            expect_bad(file.bytes(), std::to_string(count) + " list items");
        }
}

// One more or less than the truth, so that the reader runs into what follows.
TEST(GgufFlaws, counts_that_are_off_by_one) {
    GgufBuilder file = sample();
    file.n_entries = 18;
    EXPECT_FALSE(Parsed(file.bytes()).contents.ok());
    file.n_entries = 16;
    EXPECT_FALSE(Parsed(file.bytes()).contents.ok());
    file.n_entries = {};
    file.n_tensors = 3;
    EXPECT_FALSE(Parsed(file.bytes()).contents.ok());
}

// CVE-2025-66959, -66960, CVE-2024-12055: lengths of texts that were believed.
TEST(GgufFlaws, text_longer_than_the_file) {
    for (const uint64_t length :
         {~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 63, uint64_t{1} << 32, uint64_t{200}}) {
        GgufBuilder file;
        file.set_raw("text", 8, le(length) + "abc");
        expect_bad(file.bytes(), std::to_string(length) + " bytes in the key \"text\"");
        GgufBuilder list;
        list.set_raw("list", 9, le(8u) + le(uint64_t{2}) + gguf_text("a") + le(length));
        expect_bad(list.bytes(), std::to_string(length) + " bytes in the key \"list\"");
        EXPECT_FALSE(Parsed("GGUF" + le(3u) + le(uint64_t{0}) + le(uint64_t{1}) + le(length) + std::string(64, 'k'))
                         .contents.ok());
    }
}

TEST(GgufFlaws, names_empty_or_too_long) {
    expect_bad(GgufBuilder().set("", 1u).bytes(), "empty name");
    expect_bad(GgufBuilder().tensor("", 0, {1}, "1234").bytes(), "empty name");
    EXPECT_TRUE(Parsed(GgufBuilder().set(std::string(65535, 'k'), 1u).bytes()).contents.ok());
    expect_bad(GgufBuilder().set(std::string(65536, 'k'), 1u).bytes(), "65536 bytes");
    EXPECT_TRUE(Parsed(GgufBuilder().tensor(std::string(255, 'n'), 0, {1}, "1234").bytes()).contents.ok());
    expect_bad(GgufBuilder().tensor(std::string(256, 'n'), 0, {1}, "1234").bytes(), "256 bytes");
}

TEST(GgufFlaws, text_above_64_mib) {
    const std::string text((64u << 20) + 1, 't');
    expect_bad(GgufBuilder().set("text", text).bytes(), "67108865 bytes");
    EXPECT_TRUE(Parsed(GgufBuilder().set("text", std::string_view(text).substr(1)).bytes()).contents.ok());
}

TEST(GgufFlaws, list_above_16_mi_items) {
    const std::string items((16u << 20) + 1, '\0');
    expect_bad(GgufBuilder().set_raw("list", 9, le(0u) + le(uint64_t{items.size()}) + items).bytes(),
               "16777217 list items");
    const std::string_view most = std::string_view(items).substr(1);
    EXPECT_TRUE(Parsed(GgufBuilder().set_raw("list", 9, le(0u) + le(uint64_t{most.size()}) + std::string(most)).bytes())
                    .contents.ok());
}

TEST(GgufFlaws, duplicate_keys) {
    GgufBuilder file = sample();
    file.add_raw("n", 4, le(8u));
    expect_bad(file.bytes(), "the key \"n\" twice");
}

TEST(GgufFlaws, duplicate_tensor_names) {
    expect_bad(sample().tensor("a", 0, {1}, "1234").bytes(), "the tensor \"a\" twice");
}

TEST(GgufFlaws, unknown_value_types) {
    for (const uint32_t type : {13u, 255u, 0xffffffffu}) {
        expect_bad(GgufBuilder().set_raw("k", type, std::string(64, '\0')).bytes(), "unknown type");
        expect_bad(GgufBuilder().set_raw("k", 9, le(type) + le(uint64_t{1}) + std::string(64, '\0')).bytes(),
                   "unknown type");
    }
}

// A list that says it holds something else than it does is another list; one too short for its type is refused.
TEST(GgufFlaws, wrong_array_element_type) {
    GgufBuilder file;
    file.set_raw("tokens", 9, le(4u) + le(uint64_t{2}) + le(1u) + le(2u));
    const Parsed parsed(file.bytes());
    ASSERT_TRUE(parsed.contents.ok());
    EXPECT_FALSE(parsed.contents.value().array_value("tokens", GgufType::string));
    EXPECT_FALSE(parsed.contents.value().array_value("tokens", GgufType::i32));
    EXPECT_EQ(integer_at(*parsed.contents.value().array_value("tokens", GgufType::u32), 1), 2);
    file.set_raw("tokens", 9, le(10u) + le(uint64_t{2}) + le(1u) + le(2u));
    EXPECT_FALSE(Parsed(file.header()).contents.ok());
}

TEST(GgufFlaws, nested_arrays) {
    std::string nested = le(9u) + le(uint64_t{1}) + le(4u) + le(uint64_t{1}) + le(1u);
    expect_bad(GgufBuilder().set_raw("list", 9, nested).bytes(), "list of lists", Code::unsupported);
    for (int depth = 0; depth < 100000; ++depth) // what a recursive reader would overflow its stack on
        nested += le(9u) + le(uint64_t{1});
    expect_bad(GgufBuilder().set_raw("list", 9, nested).bytes(), "list of lists", Code::unsupported);
}

TEST(GgufFlaws, booleans_that_are_neither) {
    expect_bad(GgufBuilder().set_raw("k", 7, "\x02").bytes(), "the boolean 2");
    expect_bad(GgufBuilder().set_raw("k", 9, le(7u) + le(uint64_t{2}) + std::string("\x01\xff")).bytes(),
               "the boolean 255");
}

// CVE-2025-0317: an alignment of zero was divided by.
TEST(GgufFlaws, odd_alignment) {
    for (const uint32_t alignment : {0u, 1u, 4u, 7u, 24u, 33u, 0xffffffffu})
        expect_bad(sample().set("general.alignment", alignment).bytes(), "a power of two, at least 8");
    expect_bad(sample().set("general.alignment", uint64_t{32}).bytes(), "type 4");
    expect_bad(sample().set("general.alignment", "32").bytes(), "type 4");
    EXPECT_FALSE(Parsed(sample().set("general.alignment", 0x80000000u).bytes()).contents.ok());
    EXPECT_FALSE(Parsed(sample().set("general.alignment", 64u).bytes()).contents.ok()); // the second is at 32
}

TEST(GgufFlaws, number_of_dimensions) {
    expect_bad(GgufBuilder().tensor("t", 0, {}, "1234").data(std::string(64, 'x')).bytes(), "0 dimensions");
    expect_bad(GgufBuilder().tensor("t", 0, {1, 1, 1, 1, 1}, "1234").bytes(), "5 dimensions");
    GgufBuilder file;
    file.n_tensors = 1;
    expect_bad(file.header() + gguf_text("t") + le(0xffffffffu) + std::string(64, '\1'), "4294967295 dimensions");
}

TEST(GgufFlaws, zero_dimensions) {
    expect_bad(GgufBuilder().tensor("t", 0, {0}, "1234").bytes(), "a dimension of 0");
    expect_bad(GgufBuilder().tensor("t", 0, {4, 0, 4}, "1234").bytes(), "a dimension of 0");
}

// CVE-2026-33298: the product wrapped to a small size.
TEST(GgufFlaws, dimensions_whose_product_overflows) {
    const uint64_t big = uint64_t{1} << 32;
    expect_bad(GgufBuilder().tensor("t", 0, {big, big}, "1234").bytes(), "above 2^63");
    expect_bad(GgufBuilder().tensor("t", 0, {big, big, 1, 1}, "1234").bytes(), "above 2^63");
    expect_bad(GgufBuilder().tensor("t", 0, {big, big / 2}, "1234").bytes(), "above 2^63");
    expect_bad(GgufBuilder().tensor("t", 0, {~uint64_t{0}}, "1234").bytes(), "above 2^63");
    expect_bad(GgufBuilder().tensor("t", 0, {3, ~uint64_t{0} / 3 + 2}, "1234").bytes(), "above 2^63");
}

// CVE-2026-7482: the declared size is larger than the file.
TEST(GgufFlaws, tensor_larger_than_its_room) {
    TempFolder folder;
    folder.write("m.gguf", sample().bytes());
    const auto file = GgufFile::open(folder.file("m.gguf"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto& tensors = file.value().contents().tensors;
    for (const uint64_t size : {uint64_t{69}, uint64_t{1} << 40, ~uint64_t{0}})
        expect_refused(file.value().tensor_bytes(tensors[1], size).status(), Code::bad_file, file.value().path(),
                       "size");
    EXPECT_FALSE(file.value().tensor_bytes(tensors[0], 33).ok()); // would read its neighbour
}

// CVE-2025-53630, CVE-2026-27940: sums of offsets and sizes that wrapped.
TEST(GgufFlaws, offset_beyond_the_file) {
    for (const uint64_t offset : {uint64_t{64}, uint64_t{1} << 40, ~uint64_t{0} - 31, uint64_t{1} << 63})
        expect_bad(GgufBuilder().tensor_at("t", 0, {1}, offset).data(std::string(64, 'x')).bytes(),
                   "the offset " + std::to_string(offset));
    for (const uint64_t offset : {1u, 16u, 31u, 33u})
        expect_bad(GgufBuilder().tensor_at("t", 0, {1}, offset).data(std::string(64, 'x')).bytes(),
                   "the offset " + std::to_string(offset));
    expect_bad(GgufBuilder().tensor_at("t", 0, {1}, 0).header(), "no tensor data");
    expect_bad(GgufBuilder().tensor_at("t", 0, {1}, 0).bytes(), "the offset 0");
}

TEST(GgufFlaws, tensors_at_the_same_place) {
    GgufBuilder file;
    file.tensor_at("a", 0, {1}, 32).tensor_at("b", 0, {1}, 0).tensor_at("c", 0, {1}, 32).data(std::string(64, 'x'));
    expect_bad(file.bytes(), "the same place");
}

// The largest headers allowed take time and memory in proportion to their size; larger ones are refused at the count.
TEST(GgufFlaws, headers_of_100k_entries) {
    GgufBuilder file;
    for (uint32_t i = 0; i < 65536; ++i) {
        file.add_raw("key." + std::to_string(i * 7919u % 65536u), 4, le(i));
        file.tensor("blk." + std::to_string(i * 7919u % 65536u), 0, {1}, "1234");
    }
    const std::string bytes = file.bytes();
    const auto start = std::chrono::steady_clock::now();
    const Parsed parsed(bytes);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(parsed.contents.ok()) << parsed.contents.status().message();
    EXPECT_EQ(parsed.contents.value().unsigned_value("key.7919"), 1u);
    EXPECT_LT(seconds.count(), 10.0); // about 0.1; a quadratic search for duplicates takes minutes
    for (uint32_t i = 65536; i < 100000; ++i)
        file.add_raw("key." + std::to_string(i), 4, le(i));
    expect_bad(file.bytes(), "100000 keys in the header, expected at most 65536");
    GgufBuilder tensors;
    for (uint32_t i = 0; i < 100000; ++i)
        tensors.tensor("t" + std::to_string(i), 0, {1}, "1234");
    expect_bad(tensors.bytes(), "100000 tensors in the header, expected at most 65536");
}

// Whatever the bytes, the answer is contents whose promises hold, or one line.
TEST(GgufFlaws, random_damage) {
    const std::string good = sample().bytes();
    Dice dice(1);
    int accepted = 0;
    for (int i = 0; i < 60000; ++i) {
        std::string file = mutated(good, dice);
        if (dice.below(2)) { // a number of the header made extreme
            const size_t at = dice.below(std::min<size_t>(good.size(), file.size()) + 1);
            const uint64_t extremes[] = {0, 1, 0xff, 0x7fffffff, 0xffffffff, uint64_t{1} << 63, ~uint64_t{0}};
            file.replace(at, 8, le(extremes[dice.below(7)]));
        }
        const Parsed parsed(file);
        if (!parsed.contents.ok()) {
            expect_refused(parsed.contents.status(), parsed.contents.status().code(), path, "damaged");
            ASSERT_NE(parsed.contents.status().code(), Code::internal) << parsed.contents.status().message();
            continue;
        }
        ++accepted;
        const GgufContents& c = parsed.contents.value();
        for (const auto& entry : c.entries)
            if (entry.type == GgufType::array) {
                uint64_t n = 0;
                for_each_text(entry.array, [&](uint64_t, std::string_view) { return ++n, true; });
                ASSERT_EQ(n, entry.array.type == GgufType::string ? entry.array.count : 0u);
            }
        for (const auto& tensor : c.tensors)
            ASSERT_TRUE(tensor.room > 0 && tensor.offset + tensor.room <= file.size() &&
                        tensor.offset % c.alignment == 0);
    }
    EXPECT_GT(accepted, 1000); // otherwise the damage is too coarse to reach anything
}

} // namespace
} // namespace auspex::gguf_test
