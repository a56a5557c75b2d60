// The GGUF writer: what it writes is what the reader finds, byte for byte what the tests' own builder writes, and a
// file that could not be finished leaves nothing behind.
#include "formats/gguf_builder.h"
#include "formats/gguf_writer.h"
#include "model/file_fixtures.h"

#include <array>
#include <filesystem>

#if defined(__unix__) || defined(__APPLE__)
#include <csignal>
#include <sys/resource.h>
#define AUSPEX_CAN_LIMIT_FILES 1
#endif

namespace auspex::gguf_writer_test {
namespace {

using namespace test;

std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string read_all(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

size_t n_files(const TempFolder& folder) {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
        ++n;
    return n;
}

void declare(GgufWriter& writer) {
    writer.set_text("general.architecture", "llama");
    writer.set_u32("n", 7);
    writer.set_u64("wide", ~uint64_t{0} - 1);
    writer.set_f32("eps", 1e-5f);
    writer.set_bool("yes", true);
    writer.set_bool("no", false);
    writer.set_texts("tokens", std::vector<std::string>{"a", "", std::string("z\0z", 3)});
    writer.set_f32s("scores", std::vector{0.5f, -1e30f});
    writer.set_i32s("types", std::vector<int32_t>{1, -6});
    writer.set_u32s("ids", std::vector<uint32_t>{0xffffffffu});
    writer.add_tensor("a", 0, std::vector<uint64_t>{2, 3}, 24);
    writer.add_tensor("b", 8, std::vector<uint64_t>{1, 1, 2, 32}, 68);
    writer.add_tensor("c", 1, std::vector<uint64_t>{16}, 32);
}
GgufBuilder built() {
    GgufBuilder file;
    file.set("general.architecture", "llama").set("n", 7u).set("wide", ~uint64_t{0} - 1).set("eps", 1e-5f);
    file.set("yes", true).set("no", false).set("tokens", std::vector<std::string>{"a", "", std::string("z\0z", 3)});
    file.set("scores", std::vector{0.5f, -1e30f}).set("types", std::vector<int32_t>{1, -6});
    file.set("ids", std::vector<uint32_t>{0xffffffffu});
    file.tensor("a", 0, {2, 3}, std::string(24, 'a')).tensor("b", 8, {1, 1, 2, 32}, std::string(68, 'b'));
    return file.tensor("c", 1, {16}, std::string(32, 'c'));
}
Status write_data(GgufWriter& writer) {
    AUSPEX_TRY(writer.write(as_bytes(std::string(24, 'a'))));
    for (int i = 0; i < 68; i += 17) // in pieces
        AUSPEX_TRY(writer.write(as_bytes(std::string(17, 'b'))));
    AUSPEX_TRY(writer.write({}));
    return writer.write(as_bytes(std::string(32, 'c')));
}

TEST(GgufWriter, writes_what_was_declared) {
    TempFolder folder;
    folder.write("out.gguf", "an older file");
    GgufWriter writer(folder.file("out.gguf"));
    declare(writer);
    ASSERT_TRUE(writer.begin().ok());
    const Status written = write_data(writer);
    ASSERT_TRUE(written.ok()) << written.message();
    EXPECT_EQ(read_all(folder.file("out.gguf")), "an older file"); // until it is finished
    const Status finished = writer.finish();
    ASSERT_TRUE(finished.ok()) << finished.message();
    EXPECT_EQ(n_files(folder), 1u);
    EXPECT_EQ(read_all(folder.file("out.gguf")), built().bytes());
    EXPECT_EQ(writer.file_bytes(), built().bytes().size());

    const auto file = GgufFile::open(folder.file("out.gguf"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file.value().contents().unsigned_value("n"), 7u);
    ASSERT_EQ(file.value().contents().tensors.size(), 3u);
    const auto bytes = file.value().tensor_bytes(file.value().contents().tensors[1], 68);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_EQ(bytes.value()[67], std::byte{'b'});
}

// The reference reader wants the last tensor padded too.
TEST(GgufWriter, pads_every_tensor) {
    TempFolder folder;
    GgufWriter writer(folder.file("out.gguf"));
    writer.add_tensor("t", 24, std::vector<uint64_t>{1}, 1); // i8
    ASSERT_TRUE(writer.begin().ok());
    ASSERT_TRUE(writer.write(as_bytes("x")).ok());
    ASSERT_TRUE(writer.finish().ok());
    const std::string file = read_all(folder.file("out.gguf"));
    EXPECT_EQ(file.size() % 32, 0u);
    EXPECT_EQ(file.substr(file.size() - 32), "x" + std::string(31, '\0'));
}

TEST(GgufWriter, copies_every_kind_of_entry) {
    GgufBuilder source;
    source.set("u8", uint8_t{1}).set("i8", int8_t{-1}).set("u16", uint16_t{2}).set("i16", int16_t{-2}).set("u32", 3u);
    source.set("i32", -3).set("f32", 0.5f).set("b", true).set("s", "text").set("u64", uint64_t{4});
    source.set("i64", int64_t{-4}).set("f64", 0.1).set("l8", std::vector<uint8_t>{1, 2, 3});
    source.set("lf64", std::vector{1.0, 2.0})
        .set("ls", std::vector<const char*>{"x", ""})
        .set("general.alignment", 64u);
    TempFolder folder;
    folder.write("in.gguf", source.bytes());
    const auto in = GgufFile::open(folder.file("in.gguf"));
    ASSERT_TRUE(in.ok()) << in.status().message();
    GgufWriter writer(folder.file("out.gguf"));
    for (const auto& entry : in.value().contents().entries)
        writer.copy(entry);
    ASSERT_TRUE(writer.begin().ok());
    ASSERT_TRUE(writer.finish().ok());
    const auto out = GgufFile::open(folder.file("out.gguf"));
    ASSERT_TRUE(out.ok()) << out.status().message();
    ASSERT_EQ(out.value().contents().entries.size(), 15u); // the layout is not copied
    for (const auto& entry : out.value().contents().entries) {
        const auto* original = in.value().contents().find(entry.key);
        ASSERT_TRUE(original) << entry.key;
        EXPECT_EQ(entry.type, original->type) << entry.key;
        EXPECT_EQ(entry.array.type, original->array.type) << entry.key;
        EXPECT_EQ(entry.array.count, original->array.count) << entry.key;
        EXPECT_TRUE(std::equal(entry.bytes.begin(), entry.bytes.end(), original->bytes.begin(), original->bytes.end()))
            << entry.key;
    }
}

TEST(GgufWriter, refuses_declarations_that_no_reader_takes) {
    TempFolder folder;
    const std::string path = folder.file("out.gguf");
    const auto refused = [&](const char* what, auto declare_it) {
        GgufWriter writer(path);
        declare_it(writer);
        expect_refused(writer.begin(), Code::invalid_argument, path, what);
        EXPECT_FALSE(writer.write(as_bytes("x")).ok()) << what;
        EXPECT_FALSE(writer.finish().ok()) << what;
    };
    using Shape = std::vector<uint64_t>;
    refused("no key", [](GgufWriter& w) { w.set_u32("", 1); });
    refused("long key", [](GgufWriter& w) { w.set_u32(std::string(65536, 'k'), 1); });
    refused("key twice", [](GgufWriter& w) { w.set_u32("k", 1), w.set_bool("k", true); });
    refused("no name", [](GgufWriter& w) { w.add_tensor("", 0, Shape{1}, 4); });
    refused("long name", [](GgufWriter& w) { w.add_tensor(std::string(64, 'n'), 0, Shape{1}, 4); });
    refused("name twice", [](GgufWriter& w) { w.add_tensor("a", 0, Shape{1}, 4), w.add_tensor("a", 0, Shape{1}, 4); });
    refused("no dimension", [](GgufWriter& w) { w.add_tensor("a", 0, Shape{}, 4); });
    refused("five dimensions", [](GgufWriter& w) { w.add_tensor("a", 0, Shape{1, 1, 1, 1, 1}, 4); });
    refused("zero dimension", [](GgufWriter& w) { w.add_tensor("a", 0, Shape{3, 0}, 4); });
    refused("overflow", [](GgufWriter& w) { w.add_tensor("a", 0, Shape{1u << 31, 1u << 31, 4}, 4); });
    refused("no bytes", [](GgufWriter& w) { w.add_tensor("a", 0, Shape{1}, 0); });
    refused("too many bytes", [](GgufWriter& w) { w.add_tensor("a", 0, Shape{1}, ~uint64_t{0}); });
    refused("sum of bytes", [](GgufWriter& w) {
        for (const char* name : {"a", "b", "c", "d", "e"})
            w.add_tensor(name, 0, Shape{1}, ~uint64_t{0} / 4);
    });
    refused("long text", [](GgufWriter& w) { w.set_text("t", std::string((64u << 20) + 1, 't')); });
    refused("long list", [](GgufWriter& w) { w.set_f32s("t", std::vector<float>((16u << 20) + 1)); });
    refused("many keys", [](GgufWriter& w) {
        for (int i = 0; i < 65537; ++i)
            w.set_bool(std::to_string(i), true);
    });
    EXPECT_EQ(n_files(folder), 0u);
    EXPECT_EQ(GgufWriter(std::string("a\0b", 3)).begin().code(), Code::invalid_argument); // would name another file
}

TEST(GgufWriter, refuses_data_that_is_not_what_was_declared) {
    TempFolder folder;
    const std::string path = folder.file("out.gguf");
    {
        GgufWriter writer(path);
        declare(writer);
        EXPECT_FALSE(writer.write(as_bytes("x")).ok()); // before begin
    }
    {
        GgufWriter writer(path);
        declare(writer);
        ASSERT_TRUE(writer.begin().ok());
        expect_refused(writer.write(as_bytes(std::string(25, 'a'))), Code::invalid_argument, path,
                       "more than the tensor");
        EXPECT_FALSE(writer.write(as_bytes("a")).ok()); // the first problem stays
        EXPECT_FALSE(writer.finish().ok());
    }
    {
        GgufWriter writer(path);
        declare(writer);
        ASSERT_TRUE(writer.begin().ok());
        ASSERT_TRUE(write_data(writer).ok());
        expect_refused(writer.write(as_bytes("x")), Code::invalid_argument, path, "more than the tensors");
    }
    {
        GgufWriter writer(path);
        declare(writer);
        ASSERT_TRUE(writer.begin().ok());
        ASSERT_TRUE(writer.write(as_bytes(std::string(20, 'a'))).ok());
        EXPECT_EQ(n_files(folder), 1u);
        const Status status = writer.finish();
        expect_refused(status, Code::invalid_argument, path, "missing data");
        EXPECT_NE(status.message().find("4 bytes of the tensor \"a\" are missing"), std::string::npos);
    }
    EXPECT_EQ(n_files(folder), 0u); // nothing is left
}

TEST(GgufWriter, an_abandoned_file_is_removed) {
    TempFolder folder;
    folder.write("out.gguf", "an older file");
    {
        GgufWriter writer(folder.file("out.gguf"));
        declare(writer);
        ASSERT_TRUE(writer.begin().ok());
        ASSERT_TRUE(write_data(writer).ok());
        EXPECT_EQ(n_files(folder), 2u);
    }
    EXPECT_EQ(n_files(folder), 1u);
    EXPECT_EQ(read_all(folder.file("out.gguf")), "an older file");
}

TEST(GgufWriter, says_what_the_system_says) {
    TempFolder folder;
    const std::string nowhere = folder.file("absent/out.gguf");
    expect_refused(GgufWriter(nowhere).begin(), Code::io, nowhere, "no folder");
    std::filesystem::create_directory(folder.file("taken"));
    expect_refused(GgufWriter(folder.file("taken")).begin(), Code::io, folder.file("taken"), "a folder in the way");
    {
        GgufWriter writer(folder.file("late"));
        ASSERT_TRUE(writer.begin().ok());
        std::filesystem::create_directory(folder.file("late"));
        expect_refused(writer.finish(), Code::io, folder.file("late"), "a folder that has come meanwhile");
    }
    EXPECT_EQ(n_files(folder), 2u);
}

TEST(GgufWriter, a_file_that_is_found_wrong_is_not_given_its_name) {
    TempFolder folder;
    folder.write("out.gguf", "an older file");
    for (const bool is_wrong : {true, false}) {
        GgufWriter writer(folder.file("out.gguf"));
        declare(writer);
        ASSERT_TRUE(writer.begin().ok() && write_data(writer).ok());
        const Status status = writer.finish([&](const std::string& path) -> Status {
            EXPECT_TRUE(read_all(path) == built().bytes()) << "the whole of it, under another name";
            EXPECT_NE(path, folder.file("out.gguf"));
            return is_wrong ? Status(Code::bad_file, "wrong") : ok_status();
        });
        EXPECT_EQ(status.code(), is_wrong ? Code::bad_file : Code::ok);
        EXPECT_EQ(read_all(folder.file("out.gguf")) == "an older file", is_wrong);
    }
    EXPECT_EQ(n_files(folder), 1u);
}

#if defined(AUSPEX_CAN_LIMIT_FILES)
// The kernel cuts writes at a limit of bytes, as a full disk would: at every place of the file, from the header to data
// that only close() writes out.
TEST(GgufWriter, a_full_disk_is_an_error_that_leaves_nothing) {
    struct rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto previous = std::signal(SIGXFSZ, SIG_IGN);
    TempFolder folder;
    const std::string path = folder.file("out.gguf");
    const uint64_t big = 1u << 20;
    uint64_t whole = 0;
    for (int attempt = 0; attempt < 7; ++attempt) {
        // The first one succeeds and tells the size; in the last one only what close() writes out is cut.
        const rlim_t limit = attempt == 0   ? before.rlim_cur
                             : attempt == 6 ? whole - 10
                                            : std::array<rlim_t, 5>{0, 100, 5000, big / 2, big + 32}[attempt - 1];
        struct rlimit cut = before;
        cut.rlim_cur = limit;
        Status status;
        {
            GgufWriter writer(path);
            writer.set_text("general.name", std::string(3000, 'n'));
            writer.add_tensor("a", 0, std::vector<uint64_t>{2000}, 8000);
            writer.add_tensor("b", 0, std::vector<uint64_t>{big / 4}, big);
            writer.add_tensor("c", 0, std::vector<uint64_t>{1}, 4);
            EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &cut), 0);
            status = writer.begin();
            if (status.ok()) status = writer.write(as_bytes(std::string(8000, 'a')));
            for (uint64_t at = 0; status.ok() && at < big; at += big / 64)
                status = writer.write(as_bytes(std::string(big / 64, 'b')));
            if (status.ok()) status = writer.write(as_bytes("cccc"));
            if (status.ok()) status = writer.finish();
            EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        }
        if (attempt == 0) {
            ASSERT_TRUE(status.ok()) << status.message();
            whole = std::filesystem::file_size(path);
            std::filesystem::remove(path);
            continue;
        }
        expect_refused(status, Code::io, path, "limit " + std::to_string(limit));
        EXPECT_EQ(n_files(folder), 0u) << limit;
    }
    std::signal(SIGXFSZ, previous);
}
#endif

} // namespace
} // namespace auspex::gguf_writer_test
