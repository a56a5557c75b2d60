// Text to tokens with the bundled vocabulary: the goldens' ids, text that looks like special tokens, hostile text, and
// the comparison of two vocabularies.
#include "tokens/tokenizer.h"

#include "model/file_fixtures.h"
#include "tokens/sentencepiece_model.h"

#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>

#include <set>

namespace auspex::tokenizer_test {
namespace {

using namespace test;

class BundledTokenizer : public testing::Test {
  protected:
    void SetUp() override {
        auto opened = open_sentencepiece_tokenizer(AUSPEX_PAIR_DIR "/target");
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        tokenizer = std::move(opened).value();
        ASSERT_TRUE(reference.Load(AUSPEX_PAIR_DIR "/target/tokenizer.model").ok());
    }
    std::vector<uint32_t> encode(std::string_view text) const {
        const auto ids = tokenizer->encode(text);
        EXPECT_TRUE(ids.ok()) << ids.status().message();
        return ids.ok() ? ids.value() : std::vector<uint32_t>{};
    }
    std::string joined(const std::vector<uint32_t>& ids) const {
        std::string text;
        for (uint32_t id : ids)
            text += tokenizer->piece(id);
        return text;
    }
    std::unique_ptr<Tokenizer> tokenizer;
    sentencepiece::SentencePieceProcessor reference;
};

TEST_F(BundledTokenizer, gives_the_ids_of_the_goldens) {
    std::ifstream in(AUSPEX_TEST_DATA "/goldens.json");
    const nlohmann::json goldens = nlohmann::json::parse(in, nullptr, false);
    ASSERT_TRUE(goldens.is_array());
    ASSERT_GE(goldens.size(), 12u);
    ASSERT_TRUE(tokenizer->add_bos());
    for (const auto& golden : goldens) {
        if (!golden.contains("prompt")) continue; // a conversation: chat_template_test.cpp
        const auto prompt = golden["prompt"].get<std::string>();
        std::vector<uint32_t> ids = {tokenizer->bos_id()};
        for (uint32_t id : encode(prompt))
            ids.push_back(id);
        EXPECT_EQ(ids, golden["ids"].get<std::vector<uint32_t>>()) << prompt;
    }
}

TEST_F(BundledTokenizer, describes_its_vocabulary) {
    EXPECT_EQ(tokenizer->vocab_size(), 4096u);
    EXPECT_EQ(tokenizer->bos_id(), 1u);
    EXPECT_TRUE(tokenizer->has_dummy_prefix());
    EXPECT_EQ(tokenizer->spelling(1), "<s>");
    EXPECT_EQ(tokenizer->piece(1), "");
    EXPECT_EQ(tokenizer->piece(2), "");
    EXPECT_EQ(tokenizer->piece(0), " \xe2\x81\x87 "); // unknown
    EXPECT_EQ(tokenizer->spelling(3 + 10), "<0x0A>");
    EXPECT_EQ(tokenizer->piece(3 + 10), "\n");
    EXPECT_EQ(tokenizer->piece(3), std::string(1, '\0'));
    EXPECT_EQ(tokenizer->piece(3 + 255), "\xff");
    EXPECT_EQ(tokenizer->piece(259), "  ");
    EXPECT_EQ(tokenizer->spelling(259), std::string(kSpaceSymbol) + std::string(kSpaceSymbol));
    EXPECT_EQ(tokenizer->piece(4096), "");
    EXPECT_EQ(tokenizer->spelling(0xffffffffu), "");
    for (uint32_t id = 0; id < 4096; ++id)
        EXPECT_EQ(tokenizer->spelling(id), reference.IdToPiece(static_cast<int>(id)));
}

TEST_F(BundledTokenizer, never_makes_special_tokens_from_text) {
    for (const char* text :
         {"<s>", "</s>", "<unk>", "<0x0A>", "<0x00>", "a<s>b</s>", "<s><s></s>", "\xe2\x96\x81<s>", "<|eot_id|>"}) {
        const auto ids = encode(text);
        for (uint32_t id : ids)
            EXPECT_GE(id, 3u) << text;
        EXPECT_GT(ids.size(), 1u) << text;
    }
    EXPECT_EQ(joined(encode("<0x0A>")), " <0x0A>"); // six characters of text, no line break
    EXPECT_EQ(joined(encode("</s>")), " </s>");
}

TEST_F(BundledTokenizer, encodes_as_the_library_does_from_the_file_itself) {
    Dice dice(21);
    const std::string_view parts[] = {
        "Ruby ",        "the fox", "\n",          "    ", "def f(x):",    "\xf0\x9f\x99\x82",
        "\xe4\xbd\xa0", "<s>",     "\xff",        "\xc3", "\xe2\x96\x81", std::string_view("\0", 1),
        "\t",           "0x1F",    "\xed\xa0\x80"};
    for (int i = 0; i < 1500; ++i) {
        std::string text;
        for (uint64_t n = dice.below(9); n > 0; --n)
            text += parts[dice.below(std::size(parts))];
        std::vector<int> expected;
        ASSERT_TRUE(reference.Encode(text, &expected).ok());
        EXPECT_EQ(encode(text), std::vector<uint32_t>(expected.begin(), expected.end())) << in_quotes(text);
    }
}

TEST_F(BundledTokenizer, takes_any_bytes_and_any_length) {
    EXPECT_TRUE(encode("").empty());
    EXPECT_EQ(joined(encode("\xff")), " \xef\xbf\xbd");
    EXPECT_EQ(joined(encode("a\xc3")), " a\xef\xbf\xbd");
    EXPECT_EQ(joined(encode(std::string_view("a\0b", 3))), std::string(" a\0b", 4));
    EXPECT_EQ(joined(encode("\xed\xa0\x80")), " \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); // a surrogate
    Dice dice(9);
    for (int i = 0; i < 300; ++i) {
        std::string noise(1 + dice.below(200), '\0');
        for (char& c : noise)
            c = static_cast<char>(dice.below(256));
        for (uint32_t id : encode(noise))
            EXPECT_LT(id, 4096u);
    }
    const std::string long_text(1 << 20, 'a');
    EXPECT_EQ(joined(encode(long_text)), " " + long_text);
    const Status too_long = tokenizer->encode(std::string((4 << 20) + 1, 'a')).status();
    EXPECT_EQ(too_long.code(), Code::invalid_argument);
}

// ---- comparing vocabularies
// ------------------------------------------------------------------------------------------

using Type = SentencePieceModel::Type;

SentencePieceModel small_model() {
    SentencePieceModel model;
    model.pieces = {{"<unk>", 0, Type::unknown}, {"<s>", 0, Type::control},        {"</s>", 0, Type::control},
                    {"a", -1, Type::normal},     {"\xc3\xa9", -2, Type::normal},   {"\xe2\x96\x81", -3, Type::normal},
                    {"aa", -4, Type::normal},    {"[INST]", 0, Type::user_defined}};
    return model;
}

std::unique_ptr<Tokenizer> open_model(const SentencePieceModel& model) {
    TempFolder folder;
    folder.write("tokenizer.model", serialize_sentencepiece_model(model));
    auto opened = open_sentencepiece_tokenizer(folder.path());
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
}

TEST(Vocabulary, of_the_bundled_pair_is_one) {
    const auto target = open_sentencepiece_tokenizer(AUSPEX_PAIR_DIR "/target");
    const auto draft = open_sentencepiece_tokenizer(AUSPEX_PAIR_DIR "/draft");
    ASSERT_TRUE(target.ok() && draft.ok());
    EXPECT_TRUE(check_same_vocabulary(*target.value(), "target", *draft.value(), "draft").ok());
}

TEST(Vocabulary, mismatch_names_the_first_id_and_both_spellings) {
    const auto target = open_model(small_model());
    const auto compare = [&](const SentencePieceModel& draft, std::initializer_list<const char*> in_message) {
        const auto opened = open_model(draft);
        ASSERT_TRUE(opened);
        const Status status = check_same_vocabulary(*target, "dir/target", *opened, "dir/draft");
        expect_refused(status, Code::mismatch, "dir/draft", "vocabulary");
        EXPECT_NE(status.message().find("dir/target"), std::string::npos);
        for (const char* part : in_message)
            EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    };
    EXPECT_TRUE(check_same_vocabulary(*target, "t", *open_model(small_model()), "d").ok());
    SentencePieceModel model = small_model();
    model.pieces.pop_back();
    EXPECT_TRUE(check_same_vocabulary(*target, "t", *open_model(model), "d").ok());
    EXPECT_TRUE(check_same_vocabulary(*open_model(model), "t", *target, "d").ok());
    model = small_model();
    model.pieces[4].spelling = "b\x07\xc2\x9b";
    model.pieces[6].spelling = "zz";
    compare(model, {"token 4 \"b??\"", "\"\xc3\xa9\""});
    model = small_model();
    model.pieces[7].type = Type::control;
    compare(model, {"token 7 standing for \"\"", "\"[INST]\""});
}

} // namespace
} // namespace auspex::tokenizer_test
