// Byte-level BPE: the ids of the reference, round trips, time and memory on hostile text, and text that looks like
// control tokens. The vocabulary is tests/data/bpe (see tests/peers/make_bpe_fixture.py).
#include "tokens/bpe/bpe_model.h"
#include "tokens/bpe/pre_tokenizer.h"
#include "tokens/text_stream.h"
#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

#include "model/file_fixtures.h"

#include <nlohmann/json.hpp>

#include <ctime>
#include <set>

namespace auspex::bpe_test {
namespace {

using namespace test;
using Ids = std::vector<uint32_t>;

class Bpe : public testing::Test {
  protected:
    void SetUp() override {
        auto opened = open_tokenizer(AUSPEX_TEST_DATA "/bpe");
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        tokenizer = std::move(opened).value();
    }
    Ids encode(std::string_view text) const {
        const auto ids = tokenizer->encode(text);
        EXPECT_TRUE(ids.ok()) << ids.status().message();
        return ids.ok() ? ids.value() : Ids{};
    }
    Ids encode_with_controls(std::string_view text) const {
        const auto ids = tokenizer->encode_with_controls(text);
        EXPECT_TRUE(ids.ok()) << ids.status().message();
        return ids.ok() ? ids.value() : Ids{};
    }
    std::string joined(const Ids& ids) const {
        std::string text;
        for (uint32_t id : ids)
            text += tokenizer->piece(id);
        return text;
    }
    std::unique_ptr<Tokenizer> tokenizer;
};

std::string from_hex(const std::string& hex) {
    std::string out;
    for (size_t i = 0; i < hex.size(); i += 2)
        out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
}

TEST_F(Bpe, gives_the_ids_of_the_reference) {
    std::ifstream in(AUSPEX_TEST_DATA "/bpe/goldens.json");
    const auto goldens = nlohmann::json::parse(in, nullptr, false);
    ASSERT_TRUE(goldens.is_array());
    ASSERT_GE(goldens.size(), 200u);
    size_t n_controls = 0;
    for (const auto& golden : goldens) {
        const std::string text =
            golden.contains("text") ? golden["text"].get<std::string>() : from_hex(golden["hex"].get<std::string>());
        const Ids ids = golden["ids"].get<Ids>();
        EXPECT_EQ(encode(text), ids) << in_quotes(text);
        const bool differs = golden.contains("with_controls");
        n_controls += differs;
        EXPECT_EQ(encode_with_controls(text), differs ? golden["with_controls"].get<Ids>() : ids) << in_quotes(text);
        EXPECT_EQ(joined(ids), with_replacements(text));
    }
    EXPECT_GE(n_controls, 20u);
}

TEST_F(Bpe, describes_its_vocabulary) {
    EXPECT_EQ(tokenizer->vocab_size(), 838u);
    EXPECT_EQ(tokenizer->bos_id(), 826u);
    EXPECT_TRUE(tokenizer->add_bos()); // said by post_processor alone
    EXPECT_FALSE(tokenizer->has_dummy_prefix());
    EXPECT_EQ(tokenizer->end_ids(), (Ids{827, 833, 834}));
    EXPECT_EQ(tokenizer->chat_template(), "{{ bos_token }}{{ messages }}");
    EXPECT_EQ(tokenizer->control_token("<|eot_id|>"), 834u);
    EXPECT_EQ(tokenizer->control_token("<|eot_id|>x"), 836u);
    EXPECT_EQ(tokenizer->control_token("<|eot_id|"), std::nullopt);
    EXPECT_EQ(tokenizer->control_token("<<word>>"), std::nullopt); // added, but not special
    EXPECT_EQ(tokenizer->control_token("a"), std::nullopt);
    EXPECT_EQ(tokenizer->piece(834), "");
    EXPECT_EQ(tokenizer->spelling(834), "<|eot_id|>");
    EXPECT_EQ(tokenizer->piece(837), "<<word>>");
    EXPECT_EQ(tokenizer->piece(838), "");
    EXPECT_EQ(tokenizer->spelling(0xffffffffu), "");
    std::set<std::string> pieces;
    for (uint32_t id = 0; id < 826; ++id)
        EXPECT_TRUE(pieces.insert(tokenizer->piece(id)).second) << id;
    for (int byte = 0; byte < 256; ++byte)
        EXPECT_TRUE(pieces.contains(std::string(1, static_cast<char>(byte)))) << byte;
    const Ids space = encode(" ");
    ASSERT_EQ(space.size(), 1u);
    EXPECT_EQ(tokenizer->spelling(space[0]), "\xc4\xa0"); // G with a dot
}

TEST_F(Bpe, never_makes_control_tokens_from_text) {
    Dice dice(4);
    std::vector<std::string> parts = {"<|", "|>",     "<",        ">",    "|",           "x",
                                      " ",  "eot_id", "<<word>>", "\xff", "\xe2\x80\x8b"};
    for (uint32_t id = 826; id < 837; ++id)
        parts.push_back(tokenizer->spelling(id));
    for (int i = 0; i < 3000; ++i) {
        std::string text;
        for (uint64_t n = 1 + dice.below(6); n > 0; --n)
            text += parts[dice.below(parts.size())];
        const Ids ids = encode(text);
        for (uint32_t id : ids)
            ASSERT_TRUE(id < 826 || id == 837) << text;
        ASSERT_EQ(joined(ids), with_replacements(text));
    }
}

TEST_F(Bpe, controls_are_found_longest_first_and_text_between_them_stands_alone) {
    const auto both = [&](std::string_view a, uint32_t control, std::string_view b) {
        Ids ids = encode(a);
        ids.push_back(control);
        for (uint32_t id : encode(b))
            ids.push_back(id);
        return ids;
    };
    EXPECT_EQ(encode_with_controls("Hello <|eot_id|> there"), both("Hello ", 834, " there"));
    EXPECT_EQ(encode_with_controls("a<|eot_id|>xb"), both("a", 836, "b"));
    EXPECT_EQ(encode_with_controls("<|<|eot_id|>|>"), both("<|", 834, "|>"));
    EXPECT_EQ(encode_with_controls("<|eot_id|><|eom_id|>"), (Ids{834, 833}));
    EXPECT_EQ(encode_with_controls("<|eot_id|"), encode("<|eot_id|"));
    EXPECT_EQ(encode_with_controls(""), Ids{});
    EXPECT_EQ(tokenizer->encode_with_controls(std::string(kMaxTextBytes + 1, 'a')).status().code(),
              Code::invalid_argument);
}

TEST_F(Bpe, added_words_are_found_in_text) {
    EXPECT_EQ(encode("<<word>>"), Ids{837});
    EXPECT_EQ(encode("<<word>><<word>>"), (Ids{837, 837}));
    EXPECT_NE(encode("< <word>>"), Ids{837});
    EXPECT_EQ(joined(encode("a<<word>>b")), "a<<word>>b");
}

TEST_F(Bpe, a_part_that_is_a_token_ignores_merges) {
    EXPECT_EQ(encode("auspices").size(), 1u); // no merges lead there
    EXPECT_EQ(encode(" soothsayer").size(), 1u);
    EXPECT_GT(encode(" soothsayers").size(), 2u); // nor through there
}

TEST_F(Bpe, any_bytes_round_trip) {
    Dice dice(11);
    for (int i = 0; i < 2000; ++i) {
        std::string noise(1 + dice.below(60), '\0');
        for (char& c : noise)
            c = static_cast<char>(dice.below(4) == 0 ? dice.below(256) : 32 + dice.below(90));
        ASSERT_EQ(joined(encode(noise)), with_replacements(noise)) << in_quotes(noise);
    }
    EXPECT_EQ(tokenizer->encode(std::string(kMaxTextBytes + 1, 'a')).status().code(), Code::invalid_argument);
}

TEST_F(Bpe, streams_as_text) {
    const std::string text = "Gr\xc3\xbc\xc3\x9f dich \xf0\x9f\xa6\x8a, \xe4\xbd\xa0\xe5\xa5\xbd";
    TextStream stream(*tokenizer, true);
    std::string out;
    for (uint32_t id : encode(text)) {
        const std::string part = stream.push(id);
        EXPECT_TRUE(valid_utf8(part));
        out += part;
    }
    EXPECT_EQ(out + stream.finish(), text);
}

// Not a benchmark: quadratic work would take 256 times as long, and a stack that grows would overflow. What leaves the caches, and has
// them from other programs, takes up to four times as long a byte. Processor time, because other programs run too.
TEST_F(Bpe, long_runs_take_linear_time) {
    const auto seconds = [&](std::string_view unit, size_t bytes) {
        std::string text;
        while (text.size() + unit.size() <= bytes)
            text += unit;
        const std::clock_t begin = std::clock();
        EXPECT_EQ(joined(encode(text)), text);
        return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    };
    const auto expect_linear = [&](std::string_view unit, size_t bytes) {
        const double small = seconds(unit, bytes / 16), large = seconds(unit, bytes);
        EXPECT_LT(large, 128 * small + 0.05) << in_quotes(unit) << ' ' << small << ' ' << large;
    };
    expect_linear("a", 1u << 22);
    for (std::string_view unit : {" ", "7", "\n"})
        expect_linear(unit, 1u << 20);
    for (std::string_view unit : {"\xf0\x9f\x99\x82", "\t \n", "<|", "\xcc\x81", "<", "' ", "\n ", " a"})
        expect_linear(unit, 1u << 18);
}

TEST(PreTokenizer, cuts_as_the_published_pattern_does) {
    const auto split = PreTokenizer::llama3();
    ASSERT_TRUE(split.ok()) << split.status().message();
    const auto parts = [&](std::string_view text) {
        const auto ends = split.value().ends_of_parts(text);
        EXPECT_TRUE(ends.ok()) << ends.status().message();
        std::string out;
        size_t begin = 0;
        for (size_t end : ends.value()) {
            out += (begin ? "|" : "") + std::string(text.substr(begin, end - begin));
            begin = end;
        }
        return out;
    };
    EXPECT_EQ(parts(""), "");
    EXPECT_EQ(parts("I'm we'LL x've"), "I|'m| we|'LL| x|'ve");
    EXPECT_EQ(parts("a'\xc5\xbf"), "a|'\xc5\xbf"); // long s is an s in another case
    EXPECT_EQ(parts("12345 a-b"), "123|45| a|-b");
    EXPECT_EQ(parts("a   b"), "a|  | b");
    EXPECT_EQ(parts("a \n \n  b"), "a| \n \n| | b");
    EXPECT_EQ(parts("x;\n\n  y"), "x|;\n\n| | y");
    EXPECT_EQ(parts("end   "), "end|   ");
    EXPECT_EQ(parts("!\xe1\xa0\x8e!"), "!\xe1\xa0\x8e!"); // U+180E is no space
    EXPECT_EQ(parts("!\xc2\x85!"), "!|\xc2\x85|!");       // U+0085 is one
}

TEST(ByteAlphabet, stands_for_every_byte_once) {
    std::set<std::string> spellings;
    for (int byte = 0; byte < 256; ++byte) {
        const std::string bytes(1, static_cast<char>(byte)), spelling = alphabet_spelling(bytes);
        EXPECT_TRUE(spellings.insert(spelling).second);
        EXPECT_TRUE(valid_utf8(spelling));
        EXPECT_EQ(bytes_of_alphabet(spelling), bytes);
    }
    EXPECT_EQ(alphabet_spelling("a \n"), "a\xc4\xa0\xc4\x8a");
    for (const char* wrong :
         {" ", "\n", "\x7f", "\xc2\xad", "\xc2\xa0", "\xc5\x84", "\xe4\xbd\xa0", "\xc4", "\xff", "\xc4\x41"})
        EXPECT_EQ(bytes_of_alphabet(wrong), std::nullopt) << in_quotes(wrong);
}

// Merges by the book: the lowest rank anywhere, leftmost first; recomputed from scratch each time.
TEST_F(Bpe, merges_as_the_naive_rule_does) {
    BpeParts parts;
    std::vector<std::pair<std::string, std::string>> rules;
    for (uint32_t byte = 0; byte < 256; ++byte)
        ASSERT_TRUE(
            parts.add_token(byte, alphabet_spelling(std::string(1, static_cast<char>(byte))), BpeKind::normal, "f")
                .ok());
    std::vector<std::string> known = {"a", "b", "c"};
    Dice dice(3);
    while (known.size() < 60) {
        const std::string left = known[dice.below(known.size())], right = known[dice.below(known.size())];
        if (std::find(known.begin(), known.end(), left + right) != known.end() || left.size() + right.size() > 12)
            continue;
        known.push_back(left + right);
        rules.emplace_back(left, right);
    }
    std::string vocab, merges;
    for (uint32_t byte = 0; byte < 256; ++byte)
        vocab += (byte ? "," : "") + nlohmann::json(alphabet_spelling(std::string(1, static_cast<char>(byte)))).dump() +
                 ":" + std::to_string(byte);
    for (size_t i = 3; i < known.size(); ++i)
        vocab += "," + nlohmann::json(known[i]).dump() + ":" + std::to_string(253 + i);
    for (size_t i = rules.size(); i-- > 0;) // late rules first, so that many are not reached in the order of lengths
        merges += (merges.empty() ? "\"" : ",\"") + rules[i].first + " " + rules[i].second + "\"";
    std::reverse(rules.begin(), rules.end());
    TempFolder folder;
    const std::string pattern = nlohmann::json(kLlama3SplitPattern).dump();
    folder.write(
        "tokenizer.json",
        R"({"model":{"type":"BPE","vocab":{)" + vocab + R"(},"merges":[)" + merges + "]}," +
            R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" + pattern +
            R"(},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}})");
    const auto small = open_tokenizer(folder.path());
    ASSERT_TRUE(small.ok()) << small.status().message();
    EXPECT_FALSE(small.value()->add_bos());
    for (int i = 0; i < 2000; ++i) {
        std::string text;
        for (uint64_t n = 1 + dice.below(40); n > 0; --n)
            text += static_cast<char>('a' + dice.below(3));
        std::vector<std::string> expected;
        for (char c : text)
            expected.emplace_back(1, c);
        for (bool merged = true; merged;) {
            merged = false;
            for (const auto& [left, right] : rules) {
                for (size_t at = 0; at + 1 < expected.size() && !merged; ++at)
                    if (expected[at] == left && expected[at + 1] == right) {
                        expected[at] += right;
                        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at) + 1);
                        merged = true;
                    }
                if (merged) break;
            }
        }
        std::vector<std::string> found;
        const auto ids = small.value()->encode(text);
        ASSERT_TRUE(ids.ok());
        for (uint32_t id : ids.value())
            found.push_back(small.value()->piece(id));
        ASSERT_EQ(found, expected) << text;
    }
}

} // namespace
} // namespace auspex::bpe_test
