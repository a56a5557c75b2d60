// tokenizer.model as an untrusted file: the reader's guarantees, refusals by name, and damage that must stay harmless.
#include "tokens/sentencepiece_model.h"

#include "model/file_fixtures.h"
#include "tokens/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace auspex::sentencepiece_test {
namespace {

using namespace test;
using Type = SentencePieceModel::Type;

Result<SentencePieceModel> parse(std::string_view file) {
    std::vector<std::byte> bytes(file.size()); // exact size, so that a sanitizer sees the first byte read too far
    if (!file.empty()) std::memcpy(bytes.data(), file.data(), file.size());
    return parse_sentencepiece_model(bytes, "dir/tokenizer.model");
}

SentencePieceModel small_model() {
    SentencePieceModel model;
    model.byte_fallback = true;
    model.pieces = {{"<unk>", 0, Type::unknown}, {"<s>", 0, Type::control}, {"</s>", 0, Type::control}};
    const char hex[] = "0123456789ABCDEF";
    for (int i = 0; i < 256; ++i)
        model.pieces.push_back({{'<', '0', 'x', hex[i / 16], hex[i % 16], '>'}, 0, Type::byte});
    for (const char* text : {"a", "b", "\xe2\x96\x81", "aa", "ab",
                             "\xe2\x96\x81"
                             "a",
                             "aaaa"})
        model.pieces.push_back({text, -static_cast<float>(model.pieces.size()), Type::normal});
    model.pieces.push_back({"[INST]", 0, Type::user_defined});
    model.pieces.push_back({"ba", -1, Type::unused});
    return model;
}

// One length-delimited field with a short tag.
std::string field(int number, std::string_view bytes) {
    EXPECT_LT(bytes.size(), 128u);
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())}.append(bytes);
}

TEST(SentencePieceModel, survives_its_own_writing) {
    const SentencePieceModel model = small_model();
    const auto parsed = parse(serialize_sentencepiece_model(model));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    ASSERT_EQ(parsed.value().pieces.size(), model.pieces.size());
    for (size_t i = 0; i < model.pieces.size(); ++i) {
        EXPECT_EQ(parsed.value().pieces[i].spelling, model.pieces[i].spelling);
        EXPECT_EQ(parsed.value().pieces[i].score, model.pieces[i].score);
        EXPECT_EQ(parsed.value().pieces[i].type, model.pieces[i].type);
    }
    EXPECT_TRUE(parsed.value().byte_fallback);
    EXPECT_TRUE(parsed.value().add_dummy_prefix);
    EXPECT_EQ(parsed.value().bos_spelling, "<s>");
    EXPECT_EQ(parsed.value().unknown_surface, " \xe2\x81\x87 ");
}

TEST(SentencePieceModel, byte_spellings_are_strict) {
    EXPECT_EQ(byte_of_spelling("<0x00>"), 0);
    EXPECT_EQ(byte_of_spelling("<0xFF>"), 255);
    EXPECT_EQ(byte_of_spelling("<0xA0>"), 160);
    for (const char* text : {"", "<0x", "<0x0>", "<0x000>", "<0xff>", "<0x-1>", "<0x 1>", "<0xG0>", "<0x0G>", "<0X00>",
                             "0x00>>", "<0x00 "})
        EXPECT_EQ(byte_of_spelling(text), -1) << text;
}

struct BadModel {
    const char* what;
    std::function<void(SentencePieceModel&)> change;
    const char* in_message;
};

TEST(SentencePieceModel, refuses_vocabularies_that_break_its_promises) {
    const BadModel cases[] = {
        {"no pieces", [](auto& m) { m.pieces.clear(); }, "do not parse"},
        {"a huge spelling", [](auto& m) { m.pieces[259].spelling = std::string(200000, 'a'); }, "200000 bytes"},
        {"invalid UTF-8", [](auto& m) { m.pieces[259].spelling = "a\xff"; }, "\"a\\xff\" of piece 259"},
        {"a zero byte", [](auto& m) { m.pieces[259].spelling = std::string("a\0b", 3); }, "\"a\\x00b\""},
        {"NaN score", [](auto& m) { m.pieces[259].score = std::nanf(""); }, "not finite in piece 259"},
        {"infinite score", [](auto& m) { m.pieces[259].score = -std::numeric_limits<float>::infinity(); },
         "not finite"},
        {"an unknown token of type 7", [](auto& m) { m.pieces[0].type = static_cast<Type>(7); }, "0 unknown"},
        {"a byte without a word", [](auto& m) { m.pieces[3].spelling = ""; }, "255 byte tokens"},
        {"a spelling twice", [](auto& m) { m.pieces[259].spelling = "b"; }, "\"b\" twice"},
        {"text spelled like a control token", [](auto& m) { m.pieces[259].spelling = "</s>"; }, "\"</s>\" twice"},
        {"no unknown token", [](auto& m) { m.pieces[0].type = Type::control; }, "0 unknown"},
        {"two unknown tokens", [](auto& m) { m.pieces[1].type = Type::unknown; }, "2 unknown"},
        {"a control token of one character", [](auto& m) { m.pieces[2].spelling = "\xc3\xa9"; }, "special token"},
        {"a negative byte", [](auto& m) { m.pieces[3].spelling = "<0x-1>"; }, "the form <0xHH>"},
        {"a byte missing", [](auto& m) { m.pieces[5].type = Type::normal; }, "255 byte tokens"},
        {"bytes without byte_fallback", [](auto& m) { m.byte_fallback = false; }, "256 byte tokens"},
        {"too many pieces", [](auto& m) { m.pieces.resize((1u << 18) + 1, {"x", 0, Type::normal}); }, "262144 pieces"},
        {"a huge unknown surface", [](auto& m) { m.unknown_surface = std::string(2000, 'x'); },
         "special token of more"},
    };
    for (const BadModel& bad : cases) {
        SentencePieceModel model = small_model();
        bad.change(model);
        const auto parsed = parse(serialize_sentencepiece_model(model));
        ASSERT_FALSE(parsed.ok()) << bad.what;
        expect_refused(parsed.status(), Code::bad_file, "dir/tokenizer.model", bad.what);
        EXPECT_NE(parsed.status().message().find(bad.in_message), std::string::npos)
            << bad.what << ": " << parsed.status().message();
    }
}

TEST(SentencePieceModel, what_no_text_comes_to_is_unused_and_breaks_nothing) {
    const float nan = std::nanf("");
    const struct {
        const char* what;
        SentencePieceModel::Piece piece;
        Type type; // that it has afterwards
        bool is_named;
    } cases[] = {
        {"no word", {"", -1, Type::normal}, Type::unused, true},
        {"no added word", {"", -1, Type::user_defined}, Type::unused, true},
        {"unused without a word", {"", -1, Type::unused}, Type::unused, true},
        {"no control word", {"", -1, Type::control}, Type::control, true},
        {"type 0", {"zero", -1, static_cast<Type>(0)}, Type::unused, false},
        {"type 7", {"seven", -1, static_cast<Type>(7)}, Type::unused, false},
        {"type 7 without a word", {"", -1, static_cast<Type>(7)}, Type::unused, true},
        {"unused, a word that is there", {"ab", -1, Type::unused}, Type::unused, true},
        {"unused, one that is there and unused", {"ba", -1, Type::unused}, Type::unused, true},
        {"unused, no UTF-8", {"\xff", -1, Type::unused}, Type::unused, true},
        {"unused, a zero byte", {std::string("a\0b", 3), -1, Type::unused}, Type::unused, true},
        {"unused, long", {std::string(3000, 'x'), -1, Type::unused}, Type::unused, true},
        {"unused, NaN", {"nan", nan, Type::unused}, Type::unused, false},
    };
    for (const auto& one : cases) {
        SentencePieceModel model = small_model();
        const size_t id = model.pieces.size();
        model.pieces.push_back(one.piece);
        model.pieces.push_back({"[EMPTY_" + std::to_string(id) + "]", -1, Type::normal}); // the name that it would get
        const auto parsed = parse(serialize_sentencepiece_model(model));
        ASSERT_TRUE(parsed.ok()) << one.what << ": " << parsed.status().message();
        const auto& piece = parsed.value().pieces[id];
        EXPECT_EQ(piece.type, one.type) << one.what;
        EXPECT_EQ(piece.spelling != one.piece.spelling, one.is_named) << one.what << ": " << piece.spelling;
        TempFolder folder;
        folder.write("tokenizer.model", serialize_sentencepiece_model(parsed.value()));
        const auto tokenizer = open_sentencepiece_tokenizer(folder.path());
        ASSERT_TRUE(tokenizer.ok()) << one.what << ": " << tokenizer.status().message();
        for (const char* text : {"ab aab", "zero seven", "[EMPTY_268]"}) {
            const auto ids = tokenizer.value()->encode(text);
            EXPECT_TRUE(ids.ok() && std::count(ids.value().begin(), ids.value().end(), id) == 0) << one.what;
        }
    }
}

TEST(SentencePieceModel, refuses_other_kinds_of_sentencepiece_by_name) {
    std::string pieces;
    pieces += field(1, field(1, "<unk>") + "\x18\x02") + field(1, field(1, "aa"));
    const std::string bpe = field(2, "\x18\x02"), identity = field(3, std::string("\x20\0", 2));
    ASSERT_TRUE(parse(pieces + bpe + identity).ok()) << parse(pieces + bpe + identity).status().message();
    const struct {
        std::string file;
        Code code;
        const char* in_message;
    } cases[] = {
        {pieces + field(2, "\x18\x01") + identity, Code::unsupported, "model type unigram"},
        {pieces + field(2, "") + identity, Code::unsupported, "model type unigram"},
        {pieces + field(2, "\x18\x03") + identity, Code::unsupported, "model type word"},
        {pieces + field(2, "\x18\x63") + identity, Code::unsupported, "model type 99"},
        {pieces + field(2, "\x18\x02\xc0\x01\x01") + identity, Code::unsupported, "suffixes"},
        {pieces + bpe + field(3, ""), Code::unsupported, "extra spaces"},
        {pieces + bpe + field(3, std::string("\x20\0\x28\0", 4)), Code::unsupported, "unescaped"},
        {pieces + bpe + field(3, field(2, "charsmap")), Code::unsupported, "normalisation rules"},
        {pieces + bpe + identity + field(5, field(2, "charsmap")), Code::unsupported, "normalisation rules"},
        {pieces + bpe, Code::bad_file, "no trainer or normalizer"},
        {pieces + identity, Code::bad_file, "no trainer or normalizer"},
        {pieces + bpe + identity + bpe, Code::bad_file, "do not parse"},
        {bpe + identity, Code::bad_file, "do not parse"},
    };
    for (const auto& one : cases) {
        const auto parsed = parse(one.file);
        ASSERT_FALSE(parsed.ok()) << one.in_message;
        expect_refused(parsed.status(), one.code, "dir/tokenizer.model", one.in_message);
        EXPECT_NE(parsed.status().message().find(one.in_message), std::string::npos) << parsed.status().message();
    }
}

TEST(SentencePieceModel, refuses_broken_wire_format) {
    const std::string cases[] = {
        "",
        "\n",
        "\x0a\xff",
        std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),
        "\x0a\x05<unk",
        "\x0b\x0c",
        std::string("\0\0", 2),
        std::string(20, '\xff'),
        "\x08\x01",
        "\x0d"
        "abcd",
        "\x0a\x02\x08\x01",
        "\x0a\x02\x12\x00",
        "\x0a\x03\x0a\x05x",
        "GGUF",
        "{\"model\": {}}",
        std::string(4096, '\0'),
    };
    for (const std::string& text : cases)
        expect_refused(parse(text).status(), Code::bad_file, "dir/tokenizer.model", in_quotes(text));
}

TEST(SentencePieceModel, refuses_the_file_cut_off_anywhere) {
    const std::string whole = serialize_sentencepiece_model(small_model());
    for (size_t n = 0; n < whole.size(); ++n)
        expect_refused(parse(std::string_view(whole).substr(0, n)).status(), Code::bad_file, "dir/tokenizer.model",
                       "cut to " + std::to_string(n));
}

TEST(SentencePieceModel, damage_never_reaches_the_library_unchecked) {
    Dice dice(13);
    const std::string whole = serialize_sentencepiece_model(small_model());
    TempFolder folder;
    int accepted = 0;
    for (int i = 0; i < 1500; ++i) {
        folder.write("tokenizer.model", mutated(whole, dice));
        const auto opened = open_sentencepiece_tokenizer(folder.path());
        if (!opened.ok()) {
            expect_refused(opened.status(), opened.status().code(), folder.file("tokenizer.model"),
                           "mutation " + std::to_string(i));
            continue;
        }
        ++accepted;
        const Tokenizer& tokenizer = *opened.value();
        const auto ids = tokenizer.encode("aab baaaa [INST] <s>\xf0\x9f\x99\x82\xff");
        ASSERT_TRUE(ids.ok()) << ids.status().message();
        for (uint32_t id : ids.value())
            ASSERT_LT(id, tokenizer.vocab_size());
    }
    EXPECT_GT(accepted, 20);
}

// ---- the folder around it
// ---------------------------------------------------------------------------------------------

TEST(SentencePieceFolder, says_what_lies_where_the_tokenizer_should_be) {
    const struct {
        const char* name;
        const char* text;
        Code code;
        const char* in_message;
    } cases[] = {
        {"README", "", Code::not_found, "no such file"},
        {"tokenizer.json", "{}", Code::unsupported, "tokenizer.json"},
        {"tokenizer.model", "", Code::bad_file, "do not parse"},
        {"tokenizer.model", "IQ== 0\nIg== 1\nIw== 2\n", Code::unsupported, "tiktoken"},
        {"tokenizer.model", "version https://git-lfs.github.com/spec/v1\n", Code::bad_file, "git lfs pull"},
    };
    for (const auto& one : cases) {
        TempFolder folder;
        folder.write(one.name, one.text);
        const Status status = open_sentencepiece_tokenizer(folder.path()).status();
        expect_refused(status, one.code, folder.file("tokenizer.model"), one.in_message);
        EXPECT_NE(status.message().find(one.in_message), std::string::npos) << status.message();
    }
    TempFolder folder;
    std::filesystem::create_directory(folder.file("tokenizer.model"));
    expect_refused(open_sentencepiece_tokenizer(folder.path()).status(), Code::not_found,
                   folder.file("tokenizer.model"), "folder");
}

TEST(SentencePieceFolder, reads_add_bos_token_from_its_settings) {
    const auto open = [](const char* settings, SentencePieceModel model = small_model()) {
        TempFolder folder;
        folder.write("tokenizer.model", serialize_sentencepiece_model(model));
        if (settings) folder.write("tokenizer_config.json", settings);
        return open_sentencepiece_tokenizer(folder.path());
    };
    const auto adds = [&](const char* settings) {
        const auto opened = open(settings);
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        return opened.ok() && opened.value()->add_bos();
    };
    EXPECT_TRUE(adds(nullptr));
    EXPECT_TRUE(adds("{}"));
    EXPECT_TRUE(adds(R"({"add_bos_token": null})"));
    EXPECT_TRUE(adds(R"({"bos_token": {"add_bos_token": false}, "add_bos_token": true, "list": [[1]]})"));
    EXPECT_FALSE(adds(R"({"nested": [{"add_bos_token": true}], "add_bos_token": false})"));

    const std::string deep = "{\"a\":" + std::string(200000, '[');
    for (const char* settings :
         {"", "{", "[]", "7", R"({"add_bos_token": 1})", R"({"add_bos_token": {}})", deep.c_str()})
        expect_refused(open(settings).status(), Code::bad_file, "tokenizer_config.json",
                       std::string(settings).substr(0, 30));

    SentencePieceModel model = small_model(); // a vocabulary without BOS adds none
    model.pieces[1].spelling = "<other>";
    const auto opened = open(nullptr, model);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_FALSE(opened.value()->add_bos());
    EXPECT_EQ(opened.value()->bos_id(), 0u);
}

} // namespace
} // namespace auspex::sentencepiece_test
