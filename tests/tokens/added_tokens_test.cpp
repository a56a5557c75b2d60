// Tokens beside a vocabulary's own file: read from both places and in both kinds of folder, and refused where they
// contradict it, each other, or themselves.
#include "tokens/vocabulary_files.h"

namespace auspex::added_tokens_test {
namespace {

using namespace test;
using nlohmann::json;

// A folder with the bundled tokenizer.model (4096 pieces) or our tokenizer.json (838 tokens).
class Folder {
  public:
    explicit Folder(bool is_bpe) : is_bpe_(is_bpe) {
        folder_.write(is_bpe ? "tokenizer.json" : "tokenizer.model",
                      read(is_bpe ? AUSPEX_TEST_DATA "/bpe/tokenizer.json" : AUSPEX_PAIR_DIR "/target/tokenizer.model"));
    }
    uint32_t n_own() const { return is_bpe_ ? 838 : 4096; }
    const TempFolder& operator*() const { return folder_; }
    Folder& added(const json& words) { return write("added_tokens.json", words.dump()); }
    // words: {"4096": {"content": …, "special": …}, …}; more: other settings
    Folder& decoder(const json& words, json more = json::object()) {
        more["added_tokens_decoder"] = words;
        return write("tokenizer_config.json", more.dump());
    }
    Folder& write(const char* name, const std::string& text) {
        folder_.write(name, text);
        return *this;
    }
    std::unique_ptr<Tokenizer> open() const { return open_or_fail(folder_.path()); }
    void expect_refused_for(const char* file, const std::string& part) const {
        const Status status = open_tokenizer(folder_.path()).status();
        expect_refused(status, Code::bad_file, folder_.file(file), part);
        EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }

  private:
    TempFolder folder_;
    bool is_bpe_;
};

json word(const char* content, bool special) {
    return {{"content", content}, {"special", special}, {"lstrip", false}, {"normalized", false}};
}

TEST(AddedTokens, are_read_from_either_place) {
    for (const bool is_bpe : {false, true})
        for (const int place : {1, 2, 3}) {
            Folder folder(is_bpe);
            const uint32_t n = folder.n_own();
            const auto id = [&](uint32_t i) { return std::to_string(n + i); };
            if (place & 1) folder.added({{"<|im_end|>", n}, {"<|im_start|>", n + 1}, {"zyx wvu", n + 2}});
            if (place & 2)
                folder.decoder({{id(0), word("<|im_end|>", true)}, {id(1), word("<|im_start|>", true)}, {id(2), word("zyx wvu", false)}},
                               {{"eos_token", "<|im_end|>"}});
            const auto tokenizer = folder.open();
            ASSERT_TRUE(tokenizer) << is_bpe << place;
            EXPECT_EQ(tokenizer->vocab_size(), n + 3);
            EXPECT_EQ(tokenizer->control_token("<|im_end|>"), n);
            EXPECT_EQ(tokenizer->control_token("<|im_start|>"), n + 1);
            EXPECT_EQ(tokenizer->control_token("zyx wvu"), std::nullopt);
            const auto& ends = tokenizer->end_ids();
            EXPECT_TRUE(std::binary_search(ends.begin(), ends.end(), n));
            EXPECT_EQ(tokenizer->piece(n) + tokenizer->piece(n + 1), "");
            EXPECT_EQ(tokenizer->piece(n + 2), "zyx wvu"); // found in text; control tokens are not
            const Ids ids = encoded(*tokenizer, "a zyx wvu<|im_end|> b");
            EXPECT_EQ(std::count(ids.begin(), ids.end(), n + 2), 1);
            EXPECT_EQ(std::count(ids.begin(), ids.end(), n), 0);
            expect_same_ids(*tokenizer, *Folder(is_bpe).open());
        }
}

TEST(AddedTokens, that_leave_ids_out_leave_them_unused) {
    for (const bool is_bpe : {false, true}) {
        Folder folder(is_bpe);
        const uint32_t n = folder.n_own();
        const auto tokenizer = folder.added({{"<|x|>", n + 5}, {"", n + 2}}).open();
        ASSERT_TRUE(tokenizer);
        EXPECT_EQ(tokenizer->vocab_size(), n + 6);
        EXPECT_EQ(tokenizer->control_token("<|x|>"), n + 5);
        for (uint32_t id = n; id < n + 5; ++id)
            EXPECT_EQ(tokenizer->piece(id) + tokenizer->spelling(id), "") << id;
        EXPECT_TRUE(check_same_vocabulary(*tokenizer, "a", *Folder(is_bpe).open(), "b").ok());
    }
}

// What the vocabulary's own file has already: control where one of the two says so, and never two of one word.
TEST(AddedTokens, may_say_more_of_a_token_that_is_there) {
    const json own = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"<0x41>", 68}};
    const auto same = Folder(false).added(own).open();
    ASSERT_TRUE(same);
    expect_same_ids(*same, *Folder(false).open());
    EXPECT_EQ(same->vocab_size(), 4096u);
    const auto plain = Folder(false).open();
    const std::string spelling = plain->spelling(579);
    const auto control = Folder(false).decoder({{"579", word(spelling.c_str(), true)}}).open();
    EXPECT_EQ(control->piece(579), "");
    EXPECT_EQ(control->control_token(spelling), 579u);
    EXPECT_EQ(Folder(false).decoder({{"579", word(plain->piece(579).c_str(), false)}}).open()->piece(579), plain->piece(579));
    // tokenizer.json is the newer file of the two, and knows its own words better.
    const auto bpe = Folder(true).decoder({{"828", word("<|renamed|>", true)}}).open();
    EXPECT_EQ(bpe->control_token("<|renamed|>"), std::nullopt);
    EXPECT_EQ(bpe->spelling(828), "<|reserved_special_token_0|>");
}

TEST(AddedTokens, named_as_the_end_are_control_tokens_whatever_else_is_said) {
    for (const bool is_bpe : {false, true}) {
        Folder folder(is_bpe);
        const uint32_t n = folder.n_own();
        for (const bool special : {false, true}) {
            const auto tokenizer =
                folder.decoder({{std::to_string(n), word("END OF ANSWER", special)}}, {{"eos_token", "END OF ANSWER"}}).open();
            ASSERT_TRUE(tokenizer);
            const auto& ends = tokenizer->end_ids();
            EXPECT_TRUE(std::binary_search(ends.begin(), ends.end(), n)) << special;
            EXPECT_EQ(tokenizer->control_token("END OF ANSWER"), n);
        }
    }
}

TEST(AddedTokens, are_refused_with_file_and_id) {
    const char *added = "added_tokens.json", *config = "tokenizer_config.json";
    for (const bool is_bpe : {false, true}) {
        const uint32_t n = Folder(is_bpe).n_own();
        const std::string id = std::to_string(n);
        for (const char* text : {"", "[]", "{", "7", "null"})
            Folder(is_bpe).write(added, text).expect_refused_for(added, "");
        for (const json& wrong : {json(-1), json(1.5), json("1"), json(nullptr), json::array(), json(uint64_t{1} << 32)})
            Folder(is_bpe).added({{"<|x|>", wrong}}).expect_refused_for(added, "<|x|>");
        Folder(is_bpe).added({{"<|x|>", 1u << 18}}).expect_refused_for(added, "the id 262144");
        Folder(is_bpe).added({{"<|x|>", 4294967295u}}).expect_refused_for(added, "the id 4294967295");
        Folder(is_bpe).added({{std::string(1025, 'x'), n}}).expect_refused_for(added, "1025 bytes");
        Folder(is_bpe).added({{"<|x|>", n}, {"<|y|>", n}}).expect_refused_for(added, "the id " + id);
        Folder(is_bpe).write(added, "{\"<|x|>\": " + id + ", \"<|x|>\": 9999}").expect_refused_for(added, "twice");
        const char* const own = is_bpe ? "<|eot_id|>" : "<s>";
        Folder(is_bpe).added({{own, n}}).expect_refused_for(added, is_bpe ? "834, its id" : "1, its id");

        Folder(is_bpe).decoder(json::array()).expect_refused_for(config, "added_tokens_decoder");
        for (const char* key : {"", "x", "-1", "1.5", "4x", "99999999999", "262144"})
            Folder(is_bpe).decoder({{key, word("<|x|>", true)}}).expect_refused_for(config, key);
        for (const json& wrong : {json("<|x|>"), json{{"special", true}}, json{{"content", 7}}, json{{"content", "x"}, {"special", 1}}})
            Folder(is_bpe).decoder({{id, wrong}}).expect_refused_for(config, id);
        Folder(is_bpe).decoder({{id, word("<|x|>", true)}, {std::to_string(n + 1), word("<|x|>", true)}})
            .expect_refused_for(config, "<|x|>");
        // One place against the other.
        Folder(is_bpe).added({{"<|x|>", n}}).decoder({{id, word("<|y|>", true)}}).expect_refused_for(config, "the id " + id);
        Folder(is_bpe).added({{"<|x|>", n}}).decoder({{std::to_string(n + 1), word("<|x|>", true)}}).expect_refused_for(config, "<|x|>");
    }
    Folder(false).added({{"<|x|>", 579}}).expect_refused_for(added, "the id 579"); // another word of text
    Folder(false).added({{"<|x|>", 68}}).expect_refused_for(added, "the id 68");   // a byte
    Folder(false).added({{"<|x|>", 0}}).expect_refused_for(added, "the id 0");     // the unknown token
}

TEST(AddedTokens, memory_is_bounded_by_the_largest_id) {
    for (const bool is_bpe : {false, true}) {
        const auto tokenizer = Folder(is_bpe).added({{"<|x|>", (1u << 18) - 1}}).open();
        ASSERT_TRUE(tokenizer);
        EXPECT_EQ(tokenizer->vocab_size(), 1u << 18);
    }
}

} // namespace
} // namespace auspex::added_tokens_test
