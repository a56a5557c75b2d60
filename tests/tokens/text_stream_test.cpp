// Tokens to text piece by piece: only whole characters come out, and what comes out is what SentencePiece decodes.
#include "tokens/text_stream.h"

#include "model/file_fixtures.h"
#include "tokens/utf8.h"

#include <sentencepiece_processor.h>

#include <map>

namespace auspex::text_stream_test {
namespace {

using namespace test;

// A vocabulary of whatever pieces a test names; token 0 is a control token.
class FakeTokenizer : public Tokenizer {
  public:
    explicit FakeTokenizer(std::vector<std::string> pieces, bool dummy_prefix = true)
        : pieces_(std::move(pieces)), dummy_prefix_(dummy_prefix) {}
    uint32_t vocab_size() const override { return static_cast<uint32_t>(pieces_.size()); }
    uint32_t bos_id() const override { return 0; }
    bool add_bos() const override { return true; }
    Result<std::vector<uint32_t>> encode(std::string_view) const override { return std::vector<uint32_t>{}; }
    std::string piece(uint32_t token) const override { return token == 0 ? "" : pieces_[token]; }
    std::string spelling(uint32_t token) const override {
        std::string out = pieces_[token];
        return out.starts_with(' ') ? std::string(kSpaceSymbol) + out.substr(1) : out;
    }
    bool has_dummy_prefix() const override { return dummy_prefix_; }
    std::optional<uint32_t> control_token(std::string_view) const override { return std::nullopt; }
    const std::vector<uint32_t>& end_ids() const override { return none_; }
    const std::string& chat_template() const override { return no_template_; }

  private:
    std::vector<uint32_t> none_;
    std::string no_template_;
    std::vector<std::string> pieces_;
    bool dummy_prefix_;
};

TEST(Utf8, knows_every_boundary_of_the_encoding) {
    const struct {
        std::string_view text;
        int length;
    } cases[] = {
        {std::string_view("\0", 1), 1},
        {"\x7f", 1},
        {"\x80", 0},
        {"\xbf", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xc2", -1},
        {"\xc2\x7f", 0},
        {"\xc2\xc0", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xe0\x9f", 0},
        {"\xe0\xa0", -1},
        {"\xe0", -1},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xee\x80\x80", 3},
        {"\xef\xbf\xbf", 3},
        {"\xe1\x80\x7f", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf0\x90\x80", -1},
        {"\xf0\x90\x80\x41", 0},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
        {"a\xff", 1},
    };
    for (const auto& one : cases)
        EXPECT_EQ(utf8_length(one.text), one.length) << in_quotes(one.text);
}

TEST(TextStream, holds_back_unfinished_characters) {
    const FakeTokenizer tokenizer({"", "\xf0", "\x9f\x99", "\x82", "a"});
    TextStream stream(tokenizer, false);
    EXPECT_EQ(stream.push(1), "");
    EXPECT_EQ(stream.push(2), "");
    EXPECT_EQ(stream.push(3), "\xf0\x9f\x99\x82");
    EXPECT_EQ(stream.push(1), "");
    EXPECT_EQ(stream.push(2), "");
    EXPECT_EQ(stream.push(4), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                              "a");            // one U+FFFD for each byte
    EXPECT_EQ(stream.push(3), "\xef\xbf\xbd"); // can never start a character: not held back
    EXPECT_EQ(stream.push(1), "");
    EXPECT_EQ(stream.push(0), "\xef\xbf\xbd"); // a control token stands between
    EXPECT_EQ(stream.push(1), "");
    EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
    EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, drops_one_space_at_the_start_of_a_text_only) {
    const FakeTokenizer with_prefix({"<s>", " a", " ", "  b", "c"}), without_prefix({"<s>", " a"}, false);
    EXPECT_EQ(TextStream(with_prefix, true).push(1), "a");
    EXPECT_EQ(TextStream(with_prefix, false).push(1), " a");
    EXPECT_EQ(TextStream(without_prefix, true).push(1), " a");
    TextStream control_first(with_prefix, true);
    EXPECT_EQ(control_first.push(0), "");
    EXPECT_EQ(control_first.push(1), "a");
    EXPECT_EQ(control_first.push(1), " a");
    TextStream space_alone(with_prefix, true);
    EXPECT_EQ(space_alone.push(2), "");
    EXPECT_EQ(space_alone.push(1), " a");
    EXPECT_EQ(TextStream(with_prefix, true).push(3), " b");
    TextStream late(with_prefix, true);
    EXPECT_EQ(late.push(4), "c");
    EXPECT_EQ(late.push(1), " a");
}

class AgainstSentencePiece : public testing::Test {
  protected:
    void SetUp() override {
        auto opened = open_sentencepiece_tokenizer(AUSPEX_PAIR_DIR "/target");
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        tokenizer = std::move(opened).value();
        ASSERT_TRUE(reference.Load(AUSPEX_PAIR_DIR "/target/tokenizer.model").ok());
    }
    std::string streamed(const std::vector<uint32_t>& ids) const {
        TextStream stream(*tokenizer, true);
        std::string text;
        for (uint32_t id : ids) {
            const std::string part = stream.push(id);
            for (std::string_view rest = part; !rest.empty();) { // each part is valid on its own
                const int length = utf8_length(rest);
                EXPECT_GT(length, 0);
                if (length <= 0) break;
                rest.remove_prefix(static_cast<size_t>(length));
            }
            text += part;
        }
        return text + stream.finish();
    }
    std::string decoded(const std::vector<uint32_t>& ids) const {
        return reference.DecodeIds(std::vector<int>(ids.begin(), ids.end()));
    }
    std::unique_ptr<Tokenizer> tokenizer;
    sentencepiece::SentencePieceProcessor reference;
};

TEST_F(AgainstSentencePiece, text_survives_the_round_trip) {
    const std::string texts[] = {
        "Once upon a time there was a curious fox named Ruby.",
        "def area(self, width: int = 3) -> float:\n    \"\"\"Return it.\"\"\"\n\treturn self._x[0] ** 2  # ok\n\n\n",
        "  two spaces first, a tab\t, trailing  ",
        "\n\nnew lines first",
        "emoji \xf0\x9f\x99\x82\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7, "
        "\xe4\xbd\xa0\xe5\xa5\xbd, \xd8\xb3\xd9\x84\xd8\xa7\xd9\x85, na\xc3\xafve, \xf4\x8f\xbf\xbf",
        std::string("a\0b\x01\x1f\x7f", 6),
        "x",
        " ",
        "\n",
        "\xf0\x9f\x99\x82",
    };
    for (const std::string& text : texts) {
        const auto ids = tokenizer->encode(text);
        ASSERT_TRUE(ids.ok()) << ids.status().message();
        EXPECT_EQ(streamed(ids.value()), text);
        EXPECT_EQ(streamed(ids.value()), decoded(ids.value())) << text;
    }
}

TEST_F(AgainstSentencePiece, any_ids_decode_alike) {
    Dice dice(3);
    const uint32_t n = tokenizer->vocab_size();
    for (int i = 0; i < 4000; ++i) {
        std::vector<uint32_t> ids(1 + dice.below(12));
        for (uint32_t& id : ids) // unknown, control and byte tokens (0 to 258) as often as words
            id = static_cast<uint32_t>(dice.below(3) == 0 ? dice.below(n)
                                       : dice.below(2)    ? dice.below(270)
                                                          : 3 + 0xc0 + dice.below(64));
        EXPECT_EQ(streamed(ids), decoded(ids)) << testing::PrintToString(ids);
    }
}

} // namespace
} // namespace auspex::text_stream_test
