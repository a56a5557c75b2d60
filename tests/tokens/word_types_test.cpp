// What a file says of a word's type, where it is wrong or where no text needs the word: ends, layouts and text stay what
// they are.
#include "tokens/chat_template.h"
#include "tokens/spelled_tokens.h"
#include "tokens/vocabulary_files.h"

namespace auspex::word_types_test {
namespace {

using namespace test;
using nlohmann::json;

// Entries that no text needs: the rest of the vocabulary is as good as ever.
TEST(WordTypes, empty_words_and_unknown_types_are_unused) {
    TempFolder folder;
    const auto original = open_or_fail(AUSPEX_PAIR_DIR "/target"), original_bpe = open_or_fail(AUSPEX_TEST_DATA "/bpe");
    for (int type : {0, 1, 2, 3, 4, 5, 6, 7, -1}) {
        auto model = bundled_model();
        if (type != 2 && type != 3) model.pieces.push_back({"", 0, static_cast<PieceType>(type)});
        if (type < 1 || type > 6) model.pieces.push_back({"once upon", 0, static_cast<PieceType>(type)});
        const auto n = static_cast<uint32_t>(model.pieces.size());
        if (n == 4096) continue;
        folder.write("m.gguf", sentencepiece_gguf(model).bytes());
        const auto gguf = open_or_fail(folder.file("m.gguf"));
        ASSERT_TRUE(gguf) << type;
        EXPECT_EQ(gguf->vocab_size(), n);
        expect_same_ids(*gguf, *original);
    }
    for (int type : {0, 1, 3, 4, 5, 7}) {
        const bool is_unknown = type < 1 || type > 6;
        const auto file = bpe_gguf([&](auto& tokens, auto& types) {
            tokens.insert(tokens.end(), {"", is_unknown ? "<|one more|>" : ""});
            types.insert(types.end(), {type, type});
        });
        folder.write("m.gguf", file.bytes());
        const auto gguf = open_or_fail(folder.file("m.gguf"));
        ASSERT_TRUE(gguf) << type;
        EXPECT_EQ(gguf->vocab_size(), 840u);
        expect_same_ids(*gguf, *original_bpe);
        EXPECT_EQ(gguf->piece(838) + gguf->piece(839), "");
    }
}

constexpr ChatTemplate kEveryLayout[] = {ChatTemplate::llama3, ChatTemplate::llama3_plain, ChatTemplate::llama2,
                                        ChatTemplate::zephyr, ChatTemplate::chatml};

TEST(WordTypes, layouts_are_made_of_words_that_are_control_tokens_by_spelling) {
    for (ChatTemplate chat : kEveryLayout)
        for (const auto& parts : {chat_opening(chat, {.system = "s", .user = "u"}), chat_closing(chat)})
            for (const ChatPart& part : parts)
                EXPECT_TRUE(part.kind != ChatPart::Kind::control || is_control_spelling(part.text)) << part.text;
}

// A conversation in each layout, what ends an answer, and what text becomes, in every kind of vocabulary.
struct Behaviour {
    std::vector<Ids> conversations;
    Ids ends, typed, with_controls, text;
    bool operator==(const Behaviour&) const = default;
};
Behaviour behaviour_of(const Tokenizer& tokenizer, std::initializer_list<ChatTemplate> layouts) {
    const char* const typed = "a <|im_start|>user b <|im_end|> <|eot_id|><|start_header_id|>c</s> d";
    Behaviour out{{}, tokenizer.end_ids(), encoded(tokenizer, typed), tokenizer.encode_with_controls(typed).value(), {}};
    for (ChatTemplate chat : layouts) {
        const auto ids = encode_chat(tokenizer, chat_opening(chat, {.system = "be brief", .user = typed}));
        EXPECT_TRUE(ids.ok()) << ids.status().message();
        if (ids.ok()) out.conversations.push_back(ids.value());
    }
    for (const char* sample : sample_texts) {
        const Ids ids = encoded(tokenizer, sample);
        out.text.insert(out.text.end(), ids.begin(), ids.end());
    }
    return out;
}

TEST(WordTypes, control_words_are_control_tokens_whatever_a_sentencepiece_file_says) {
    TempFolder folder;
    std::optional<Behaviour> right;
    for (PieceType type : {PieceType::control, PieceType::user_defined, PieceType::normal}) {
        auto model = bundled_model();
        for (const char* word : {"<|im_start|>", "<|im_end|>"})
            model.pieces.push_back({word, -1000, type});
        for (uint32_t id : {1u, 2u})
            model.pieces[id].type = type;
        folder.write("m.gguf", sentencepiece_gguf(model).bytes());
        const auto gguf = open_or_fail(folder.file("m.gguf"));
        ASSERT_TRUE(gguf);
        const Behaviour found = behaviour_of(*gguf, {ChatTemplate::chatml, ChatTemplate::llama2, ChatTemplate::zephyr});
        EXPECT_EQ(found.ends, (Ids{2, 4097}));
        for (uint32_t id : found.typed)
            EXPECT_LT(id, 4096u); // nothing that a user types
        if (!right) right = found;
        EXPECT_EQ(found, *right) << static_cast<int>(type);
        folder.write("tokenizer.model", serialize_sentencepiece_model(model)); // the same words in the original kind
        const auto original = open_or_fail(folder.path());
        ASSERT_TRUE(original);
        EXPECT_EQ(behaviour_of(*original, {ChatTemplate::chatml, ChatTemplate::llama2, ChatTemplate::zephyr}), *right);
    }
}

TEST(WordTypes, control_words_are_control_tokens_whatever_a_byte_level_file_says) {
    TempFolder folder;
    std::optional<Behaviour> right;
    for (int type : {3, 4, 1}) {
        const auto file = bpe_gguf([&](Tokens& tokens, std::vector<int32_t>& types) {
            for (size_t id : {826u, 827u, 831u, 832u, 833u, 834u})
                types[id] = type;
            tokens.insert(tokens.end(), {"<|im_start|>", "<|im_end|>"});
            types.insert(types.end(), {type, type});
        });
        folder.write("m.gguf", file.bytes());
        json original = bpe_json();
        for (uint32_t id : {826u, 827u, 831u, 832u, 833u, 834u}) {
            json& added = original["added_tokens"][id - 826];
            added["special"] = type == 3;
            if (type == 1) original["model"]["vocab"][added["content"].get<std::string>()] = id;
        }
        for (uint32_t id : {838u, 839u}) {
            const char* const word = id == 838 ? "<|im_start|>" : "<|im_end|>";
            original["added_tokens"].push_back({{"id", id}, {"content", word}, {"special", type == 3}});
        }
        folder.write("tokenizer.json", original.dump());
        for (const std::string& path : {folder.file("m.gguf"), folder.path()}) {
            const auto opened = open_or_fail(path);
            ASSERT_TRUE(opened);
            const Behaviour found =
                behaviour_of(*opened, {ChatTemplate::llama3, ChatTemplate::llama3_plain, ChatTemplate::chatml});
            EXPECT_EQ(found.ends, (Ids{827, 833, 834, 839}));
            for (uint32_t id : found.typed)
                EXPECT_LT(id, 826u);
            if (!right) right = found;
            EXPECT_EQ(found, *right) << path << " " << type;
        }
    }
}

// As writers spell it, for each of the ids, in both kinds of vocabulary; any other id without a token is an error.
TEST(WordTypes, an_id_may_be_none) {
    TempFolder folder;
    const auto opened = [&](const GgufBuilder& file) {
        folder.write("m.gguf", file.bytes());
        return open_tokenizer(folder.file("m.gguf"));
    };
    for (const char* name : {"bos", "eos", "eot", "eom"}) {
        const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
        for (auto file : {sentencepiece_gguf(bundled_model()), bpe_gguf()}) {
            for (const auto& none : {file.set(key, 0xffffffffu), file.set(key, int32_t{-1}), file.set(key, int64_t{-1}),
                                     file.set(key, uint64_t{0xffffffff})}) {
                const auto tokenizer = opened(none);
                ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
                EXPECT_EQ(tokenizer.value()->add_bos(), std::string(name) != "bos");
            }
            for (const auto& wrong : {file.set(key, 0xfffffffeu), file.set(key, int32_t{-2}), file.set(key, 1e9f)}) {
                const auto tokenizer = opened(wrong);
                EXPECT_EQ(tokenizer.status().code(), Code::bad_file);
                EXPECT_NE(tokenizer.status().message().find(key), std::string::npos) << tokenizer.status().message();
            }
        }
    }
}

// "</s>" of a vocabulary that has seen web pages is a word like any other.
TEST(WordTypes, what_merges_lead_to_stays_a_word) {
    TempFolder folder;
    json file = bpe_json();
    const uint32_t first = 838;
    file["model"]["vocab"]["</"] = first;
    file["model"]["vocab"]["</s"] = first + 1;
    file["model"]["vocab"]["</s>"] = first + 2;
    for (const auto& merge : {json{"<", "/"}, json{"</", "s"}, json{"</s", ">"}})
        file["model"]["merges"].push_back(merge);
    folder.write("tokenizer.json", file.dump());
    const auto opened = open_or_fail(folder.path());
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->piece(first + 2), "</s>");
    EXPECT_EQ(opened->control_token("</s>"), std::nullopt);
    EXPECT_EQ(opened->end_ids(), (Ids{827, 833, 834}));
}

// Padding of type unused, in either of the two, after the other's words or among them, in both kinds of vocabulary.
TEST(WordTypes, unused_tokens_may_be_anything_in_the_other) {
    TempFolder folder;
    const auto opened = [&](const GgufBuilder& file) {
        folder.write("m.gguf", file.bytes());
        return open_or_fail(folder.file("m.gguf"));
    };
    const auto expect_a_pair = [](const Tokenizer& a, const Tokenizer& b) {
        for (const auto& status : {check_same_vocabulary(a, "a", b, "b"), check_same_vocabulary(b, "b", a, "a")})
            EXPECT_TRUE(status.ok()) << status.message();
    };
    auto model = bundled_model();
    const auto spm = opened(sentencepiece_gguf(model));
    for (int i = 0; i < 32; ++i)
        model.pieces.push_back({"[PAD" + std::to_string(4096 + i) + "]", 0, PieceType::unused});
    const auto padded = opened(sentencepiece_gguf(model));
    expect_a_pair(*spm, *padded);
    EXPECT_EQ(padded->piece(4100), "");
    model.pieces[4100] = {"<|tool|>", 0, PieceType::control}; // a control token where the other has padding
    expect_a_pair(*padded, *opened(sentencepiece_gguf(model)));
    model.pieces[500].type = PieceType::unused;
    expect_a_pair(*spm, *opened(sentencepiece_gguf(model)));
    model.pieces[4101] = {"zyx wvu", 0, PieceType::user_defined}; // which text comes to, in one of them only
    expect_a_pair(*spm, *opened(sentencepiece_gguf(model)));
    model.pieces[600].spelling = "zyx wvu"; // of those that both have
    EXPECT_EQ(check_same_vocabulary(*spm, "a", *opened(sentencepiece_gguf(model)), "b").code(), Code::mismatch);

    const auto bpe = opened(bpe_gguf());
    const auto pad = [](Tokens& tokens, std::vector<int32_t>& types) {
        tokens.insert(tokens.end(), {"[PAD838]", "[PAD839]"});
        types.insert(types.end(), {5, 5});
    };
    const auto padded_bpe = opened(bpe_gguf(pad));
    expect_a_pair(*bpe, *padded_bpe);
    expect_a_pair(*padded_bpe, *opened(bpe_gguf([&](Tokens& tokens, std::vector<int32_t>& types) {
        pad(tokens, types);
        tokens[838] = "<|tool|>";
        types[838] = 3;
        types[830] = 5; // "<|finetune_right_pad_id|>"
    })));
}

} // namespace
} // namespace auspex::word_types_test
