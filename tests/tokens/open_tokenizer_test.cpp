// Files with vocabularies: which reader a path gets, the settings beside it, GGUF against the original files, and one
// refusal for each class of flaw.
#include "tokens/tokenizer.h"

#include "tokens/bpe/bpe_model.h"
#include "tokens/vocabulary_files.h"

namespace auspex::open_tokenizer_test {
namespace {

using namespace test;
using nlohmann::json;
TEST(GgufTokenizer, sentencepiece_equals_the_original_file) {
    TempFolder folder;
    folder.write("model.GGUF", sentencepiece_gguf(bundled_model()).bytes());
    const auto gguf = open_or_fail(folder.file("model.GGUF")), original = open_or_fail(AUSPEX_PAIR_DIR "/target");
    ASSERT_TRUE(gguf && original);
    expect_same_ids(*gguf, *original);
    ASSERT_EQ(gguf->vocab_size(), 4096u);
    for (uint32_t id = 0; id < 4096; ++id) {
        ASSERT_EQ(gguf->piece(id), original->piece(id)) << id;
        ASSERT_EQ(gguf->spelling(id), original->spelling(id)) << id;
    }
    EXPECT_EQ(gguf->bos_id(), original->bos_id());
    EXPECT_TRUE(gguf->add_bos());
    EXPECT_TRUE(gguf->has_dummy_prefix());
    EXPECT_EQ(gguf->end_ids(), Ids{2});
    EXPECT_EQ(original->end_ids(), Ids{2});
    EXPECT_EQ(gguf->control_token("</s>"), 2u);
    EXPECT_TRUE(check_same_vocabulary(*gguf, "gguf", *original, "original").ok());
    EXPECT_TRUE(check_same_vocabulary(*original, "original", *gguf, "gguf").ok());
    // Each text between control tokens gets its own dummy prefix.
    Ids expected = {1};
    const Ids a = encoded(*gguf, "a"), b = encoded(*gguf, "b");
    expected.insert(expected.end(), a.begin(), a.end());
    expected.push_back(2);
    expected.insert(expected.end(), b.begin(), b.end());
    EXPECT_EQ(gguf->encode_with_controls("<s>a</s>b").value(), expected);
}

TEST(GgufTokenizer, bpe_equals_the_original_file) {
    TempFolder folder;
    folder.write("weights", bpe_gguf().bytes()); // known by its first bytes
    const auto gguf = open_or_fail(folder.file("weights")), original = open_or_fail(AUSPEX_TEST_DATA "/bpe");
    ASSERT_TRUE(gguf && original);
    expect_same_ids(*gguf, *original);
    EXPECT_TRUE(check_same_vocabulary(*gguf, "gguf", *original, "original").ok());
    EXPECT_TRUE(gguf->add_bos());
    EXPECT_EQ(gguf->bos_id(), 826u);
    EXPECT_EQ(gguf->end_ids(), (Ids{827, 833, 834}));
    EXPECT_EQ(gguf->chat_template(), "{{ x }}");
    folder.write("no_bos.gguf", bpe_gguf().set("tokenizer.ggml.add_bos_token", false).bytes());
    EXPECT_FALSE(open_or_fail(folder.file("no_bos.gguf"))->add_bos());
}

TEST(GgufTokenizer, keys_make_control_tokens_and_end_ids) {
    TempFolder folder;
    auto file = bpe_gguf();
    std::vector<int32_t> types(838, 1);
    for (size_t id = 826; id < 838; ++id)
        types[id] = 4; // wrongly: every added token is text
    types[831] = 5;
    file.set("tokenizer.ggml.token_type", types).set("tokenizer.ggml.eot_token_id", 835u);
    folder.write("m.gguf", file.bytes());
    const auto gguf = open_or_fail(folder.file("m.gguf"));
    ASSERT_TRUE(gguf);
    EXPECT_EQ(gguf->end_ids(), (Ids{827, 833, 834, 835})); // keys, and spellings that end answers everywhere
    for (uint32_t id : {826u, 827u, 831u, 832u, 833u, 834u, 835u})
        EXPECT_EQ(gguf->piece(id), "") << id;
    EXPECT_EQ(gguf->control_token("<|start_header_id|>"), std::nullopt); // unused
    EXPECT_EQ(gguf->piece(828), "<|reserved_special_token_0|>");
    for (uint32_t id : encoded(*gguf, "<|eot_id|><|begin_of_text|><|start_header_id|>"))
        EXPECT_LT(id, 826u);
}

TEST(GgufTokenizer, refuses_what_it_cannot_read) {
    TempFolder folder;
    const auto refused = [&](const GgufBuilder& file, Code code, const char* part) {
        folder.write("m.gguf", file.bytes());
        const Status status = open_tokenizer(folder.file("m.gguf")).status();
        expect_refused(status, code, folder.file("m.gguf"), part);
        EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    };
    const auto spm = sentencepiece_gguf(bundled_model());
    const auto bpe = bpe_gguf();
    const auto without = [](GgufBuilder file, const char* key) {
        file.erase(key);
        return file;
    };
    const auto set = [](GgufBuilder file, const char* key, const auto& value) { return file.set(key, value); };
    refused(without(bpe, "tokenizer.ggml.model"), Code::not_found, "tokenizer.ggml.model");
    refused(set(bpe, "tokenizer.ggml.model", "bert"), Code::unsupported, "\"bert\"");
    refused(set(bpe, "tokenizer.ggml.tokens", std::vector<std::string_view>((1u << 19) + 1, "x")), Code::bad_file,
            "at most 524288");
    refused(without(bpe, "tokenizer.ggml.pre"), Code::unsupported, "no tokenizer.ggml.pre");
    refused(set(bpe, "tokenizer.ggml.pre", "qwen2"), Code::unsupported, "\"qwen2\"");
    refused(without(bpe, "tokenizer.ggml.tokens"), Code::bad_file, "tokenizer.ggml.tokens");
    refused(set(bpe, "tokenizer.ggml.tokens", std::vector<uint32_t>{1, 2}), Code::bad_file, "tokenizer.ggml.tokens");
    refused(without(bpe, "tokenizer.ggml.merges"), Code::bad_file, "merges");
    refused(set(bpe, "tokenizer.ggml.merges", std::vector<std::string_view>{"a zzzz"}), Code::bad_file, "a zzzz");
    refused(set(bpe, "tokenizer.ggml.merges", std::vector<std::string_view>{"ab"}), Code::bad_file, "space");
    refused(set(bpe, "tokenizer.ggml.bos_token_id", 838u), Code::bad_file, "838");
    refused(set(bpe, "tokenizer.ggml.eos_token_id", int32_t{-5}), Code::bad_file, "eos_token_id");
    refused(set(bpe, "tokenizer.ggml.add_bos_token", 1u), Code::bad_file, "add_bos_token");
    refused(set(bpe, "tokenizer.ggml.token_type", std::vector<int32_t>(838, 6)), Code::bad_file, "byte token");
    refused(set(bpe, "tokenizer.ggml.token_type", std::vector<int32_t>(838, 7)), Code::bad_file, "byte 0");
    refused(set(bpe, "tokenizer.ggml.token_type", std::vector<int32_t>(837, 1)), Code::bad_file, "837");
    refused(set(bpe, "tokenizer.ggml.token_type", std::vector<float>(838, 1)), Code::bad_file, "token_type");
    refused(set(spm, "tokenizer.ggml.scores", std::vector<uint8_t>(4096, 1)), Code::bad_file,
            "scores"); // once read as floats
    refused(set(spm, "tokenizer.ggml.scores", std::vector<float>(4095, 1)), Code::bad_file, "4095");
    refused(set(spm, "tokenizer.ggml.scores", std::vector<float>(4096, std::numeric_limits<float>::infinity())),
            Code::bad_file, "finite");
    refused(without(spm, "tokenizer.ggml.scores"), Code::bad_file, "scores");
    refused(set(spm, "tokenizer.ggml.remove_extra_whitespaces", true), Code::unsupported, "remove_extra");
    refused(set(spm, "tokenizer.ggml.precompiled_charsmap", std::vector<uint8_t>{1}), Code::unsupported, "charsmap");
    auto model = bundled_model();
    model.pieces[5].spelling = "<0x-1>";
    refused(sentencepiece_gguf(model), Code::bad_file, "<0x-1>"); // was an out-of-bounds write elsewhere
    model = bundled_model();
    model.pieces[300].spelling = model.pieces[301].spelling;
    refused(sentencepiece_gguf(model), Code::bad_file, "twice");
}

// ---- folders
// ---------------------------------------------------------------------------------------------------------

TEST(OpenTokenizer, chooses_by_what_lies_in_the_folder) {
    const std::string bpe = read(AUSPEX_TEST_DATA "/bpe/tokenizer.json");
    const std::string spm = read(AUSPEX_PAIR_DIR "/target/tokenizer.model");
    TempFolder folder;
    expect_refused(open_tokenizer(folder.path()).status(), Code::not_found, folder.path(), "empty folder");
    expect_refused(open_tokenizer(folder.file("none.gguf")).status(), Code::not_found, "none.gguf", "no file");
    expect_refused(open_tokenizer(folder.file("none")).status(), Code::not_found, "none", "no folder");
    folder.write("tokenizer.json", bpe);
    EXPECT_EQ(open_or_fail(folder.path())->vocab_size(), 838u);
    folder.write("tokenizer.model", "IQ== 0\nIg== 1\nIw== 2\n"); // tiktoken
    EXPECT_EQ(open_or_fail(folder.path())->vocab_size(), 838u);
    folder.write("tokenizer.model", spm);
    EXPECT_EQ(open_or_fail(folder.path())->vocab_size(), 4096u);
    folder.write("tokenizer.model", "version https://git-lfs.github.com/spec/v1\n");
    expect_refused(open_tokenizer(folder.path()).status(), Code::bad_file, folder.path(), "LFS pointer");
}

TEST(OpenTokenizer, reads_the_settings_beside_a_vocabulary) {
    TempFolder folder;
    folder.write("tokenizer.json", read(AUSPEX_TEST_DATA "/bpe/tokenizer.json"));
    const auto opened = [&](const char* config) {
        folder.write("tokenizer_config.json", config);
        return open_or_fail(folder.path());
    };
    auto t = opened(R"({"add_bos_token":false,"eos_token":{"content":"<|python_tag|>"}})");
    EXPECT_FALSE(t->add_bos());
    EXPECT_EQ(t->end_ids(), (Ids{827, 833, 834, 835}));
    EXPECT_EQ(t->chat_template(), "");
    t = opened(R"({"bos_token":"<|reserved_special_token_1|>","added_tokens_decoder":{"1":{"content":"x"}}})");
    EXPECT_TRUE(t->add_bos());
    EXPECT_EQ(t->bos_id(), 829u);
    EXPECT_FALSE(opened(R"({"bos_token":"a"})")->add_bos()); // text is no BOS
    t = opened(R"({"chat_template":[{"name":"tool_use","template":"T"},{"name":"default","template":"D"}]})");
    EXPECT_EQ(t->chat_template(), "D");
    folder.write("chat_template.jinja", "J");
    EXPECT_EQ(opened(R"({"chat_template":"C"})")->chat_template(), "J");
    for (const char* wrong :
         {"[]", "{", R"({"add_bos_token":1})", R"({"bos_token":7})", R"({"eos_token":{"content":[]}})",
          R"({"chat_template":7})", R"({"chat_template":[{"name":"default"}]})"}) {
        folder.write("tokenizer_config.json", wrong);
        expect_refused(open_tokenizer(folder.path()).status(), Code::bad_file, "tokenizer_config.json", wrong);
    }
}

TEST(TokenizerJson, accepts_what_writers_of_all_ages_write) {
    TempFolder folder;
    const auto original = open_or_fail(AUSPEX_TEST_DATA "/bpe");
    json file = bpe_json();
    json merges = json::array();
    for (const auto& merge : file["model"]["merges"])
        merges.push_back(merge[0].get<std::string>() + ' ' + merge[1].get<std::string>());
    file["model"]["merges"] = merges; // as before 2024
    file["post_processor"] = file["post_processor"]["processors"][1];
    // Added tokens that are part of the vocabulary too.
    for (const auto& added : file["added_tokens"])
        file["model"]["vocab"][added["content"].get<std::string>()] = added["id"];
    folder.write("tokenizer.json", file.dump());
    const auto opened = open_or_fail(folder.path());
    ASSERT_TRUE(opened);
    expect_same_ids(*opened, *original);
    EXPECT_TRUE(opened->add_bos());
    file.erase("post_processor");
    folder.write("tokenizer.json", "  " + file.dump(2) + "\n");
    EXPECT_FALSE(open_or_fail(folder.path())->add_bos());
}

TEST(TokenizerJson, refuses_what_it_cannot_read) {
    TempFolder folder;
    const auto refused = [&](const std::string& text, Code code, const std::string& part) {
        folder.write("tokenizer.json", text);
        const Status status = open_tokenizer(folder.path()).status();
        expect_refused(status, code, folder.file("tokenizer.json"), part);
        EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    };
    const auto changed = [&](const char* pointer, const json& value) {
        json file = bpe_json();
        file[json::json_pointer(pointer)] = value;
        return file.dump();
    };
    const std::string text = bpe_json().dump();
    const Code bad = Code::bad_file, other = Code::unsupported;
    refused("", bad, "JSON");
    refused("[]", bad, "list");
    refused("7", bad, "object");
    refused(text.substr(0, text.size() / 2), bad, "byte");
    refused(text + "x", bad, "JSON");
    refused(std::string("{\"a\":\0}", 7), bad, "zero byte");
    refused(std::string(100, '[') + std::string(100, ']'), bad, "object");
    refused(R"({"padding":)" + std::string(1000000, '[') + std::string(1000000, ']') + "}", bad, "nested");
    refused(R"({"normalizer":)" + std::string(1000, '[') + std::string(1000, ']') + "}", bad, "levels");
    refused(R"({"post_processor":[)" +
                [] {
                    std::string s;
                    for (int i = 0; i < 20000; ++i)
                        s += "0,";
                    return s;
                }() +
                "0]}",
            bad, "values");
    refused(R"({"padding":1e999})", bad, "JSON");
    refused(R"({"model":{},"model":{}})", bad, "twice");
    refused(R"({"model":{"vocab":{},"vocab":{}}})", bad, "twice");
    refused("{}", bad, "vocab");
    refused(changed("/model", nullptr), bad, "model null");
    refused(changed("/model/type", "Unigram"), other, "Unigram");
    refused(changed("/model/vocab", json::array()), other, "model.vocab a list");
    refused(changed("/model/vocab", 3), bad, "model.vocab 3");
    refused(changed("/model/merges", json::object()), other, "model.merges");
    refused(changed("/model/byte_fallback", true), other, "byte_fallback");
    refused(changed("/model/dropout", 0.1), other, "dropout");
    refused(changed("/model/continuing_subword_prefix", "##"), other, "##");
    refused(changed("/model/ignore_merges", "yes"), bad, "ignore_merges");
    refused(changed("/normalizer", {{"type", "NFC"}}), other, "NFC");
    refused(changed("/pre_tokenizer", {{"type", "ByteLevel"}}), other, "ByteLevel");
    refused(changed("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+"), other, "w+");
    refused(changed("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), other, "Removed");
    refused(changed("/pre_tokenizer/pretokenizers/0/invert", true), other, "invert true");
    refused(changed("/pre_tokenizer/pretokenizers/1/use_regex", true), other, "use_regex true");
    refused(changed("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), other, "add_prefix_space true");
    refused(changed("/added_tokens", 5), bad, "added_tokens 5");
    refused(changed("/added_tokens/0", 5), bad, "added token 5");
    refused(changed("/added_tokens/0/id", -1), bad, "added token");
    refused(changed("/added_tokens/0/id", 2000), bad, "no token with id");
    refused(changed("/added_tokens/0/id", 5000000000u), bad, "added token");
    refused(changed("/added_tokens/0/id", 12), bad, "the id 12");
    refused(changed("/added_tokens/0/id", 827), bad, "the id 827");
    refused(changed("/added_tokens/1/content", "<|begin_of_text|>"), bad, "twice");
    refused(changed("/added_tokens/11/lstrip", true), other, "lstrip");
    refused(changed("/added_tokens/11/single_word", true), other, "single_word");
    refused(changed("/added_tokens/11/special", 1), bad, "special 1");
    refused(changed("/added_tokens/11/content", std::string(5000, 'x')), bad, "5000 bytes");
    refused(changed("/model/vocab/!", 5.5), bad, "5.5");
    refused(changed("/model/vocab/!", -1), bad, "-1");
    refused(changed("/model/vocab/!", "0"), bad, "the text");
    refused(changed("/model/vocab/!", json::array({1})), bad, "a list as the id");
    refused(changed("/model/vocab/!", 1u << 20), bad, "1048576");
    refused(changed("/model/vocab/!", 7), bad, "the id 7");
    refused(with(text, "\"!\":0", "\"<0x-1>\":0"), bad, "byte 33");
    refused(with(text, "\"!\":0", "\"\xe4\xbd\xa0\":0"), bad, "alphabet");
    refused(with(text, "\"!\":0", "\"\":0"), bad, "byte 33"); // an empty word stands for nothing
    refused(changed("/model/merges/0", json::array({"a"})), bad, "1 texts");
    refused(changed("/model/merges/0", json::array({"a", "b", "c"})), bad, "\"c\"");
    refused(changed("/model/merges/0", json::array({"a", json::array()})), bad, "nested");
    refused(changed("/model/merges/0", json::array({"a b", "c"})), bad, "a b");
    refused(changed("/model/merges/0", 5), bad, "merge 5");
    refused(changed("/model/merges/0", "ab"), bad, "space");
    refused(changed("/model/merges/0", "a b c"), bad, "a b c");
    refused(changed("/model/merges/0", "a nowhere"), bad, "nowhere");
    refused(changed("/model/merges/0", "! !!!!!!!"), bad, "merge");
    refused(changed("/model/merges/0", "<|eot_id|> x"), bad, "merge"); // text would become a control token
    refused(changed("/model/merges/0", bpe_json()["model"]["merges"][1]), bad, "twice");
}

// The most memory the process has used since the last call, in MiB (Linux; elsewhere 0).
uint64_t peak_mib() {
    uint64_t peak = 0;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) peak = std::stoull(line.substr(6)) >> 10;
    std::ofstream("/proc/self/clear_refs") << 5;
    return peak;
}

TEST(TokenizerJson, what_is_passed_over_takes_no_memory) {
    TempFolder folder;
    {
        std::string rest(16u << 20, '0');
        for (size_t i = 1; i < rest.size(); i += 2)
            rest[i] = ',';
        folder.write("tokenizer.json", with(bpe_json().dump(), "\"version\":\"1.0\"", "\"version\":[" + rest + "0]"));
    }
    peak_mib();
    [[maybe_unused]] const uint64_t before = peak_mib();
    EXPECT_EQ(open_or_fail(folder.path())->vocab_size(), 838u);
#if !defined(__SANITIZE_THREAD__) // which keeps several times what it watches
    EXPECT_LT(peak_mib(), before + 16 + 24); // the mapped file, and little else: as a tree it takes 128 and more
#endif
    folder.write("tokenizer.json", std::string((64u << 20) + 1, ' '));
    expect_refused(open_tokenizer(folder.path()).status(), Code::bad_file, "tokenizer.json", "too large");
}

// A gap before a large id costs as much memory as the tokens that it leaves out: refused before it is made.
TEST(TokenizerJson, memory_does_not_follow_the_largest_id) {
    TempFolder folder;
    const std::string file = R"({"model":{"type":"BPE","vocab":{"a":1000000},"merges":[]}})";
    folder.write("tokenizer.json", file);
    const Status status = open_tokenizer(folder.path()).status();
    expect_refused(status, Code::bad_file, folder.file("tokenizer.json"), "a large id");
    EXPECT_NE(status.message().find("below " + std::to_string(file.size() / 6 + 1)), std::string::npos)
        << status.message();
}

// The reader may answer anything but must come back with it.
TEST(TokenizerJson, survives_random_damage) {
    TempFolder folder;
    const std::string text = bpe_json().dump();
    Dice dice(77);
    int refusals = 0;
    for (int i = 0; i < 300; ++i) {
        folder.write("tokenizer.json", mutated(text, dice));
        const auto opened = open_tokenizer(folder.path());
        refusals += !opened.ok();
        if (!opened.ok()) continue;
        for (const char* sample : sample_texts)
            for (uint32_t id : encoded(*opened.value(), sample))
                EXPECT_LT(id, opened.value()->vocab_size());
    }
    EXPECT_GT(refusals, 100);
}

// ---- pairs
// -----------------------------------------------------------------------------------------------------------

TEST(Vocabulary, may_differ_where_only_one_has_ids) {
    TempFolder folder;
    const auto original = open_or_fail(AUSPEX_TEST_DATA "/bpe");
    const auto changed = [&](const auto& change) {
        json file = bpe_json();
        change(file["added_tokens"]);
        folder.write("tokenizer.json", file.dump());
        return open_or_fail(folder.path());
    };
    const auto add = [](json& added, const char* content, bool special) {
        added.push_back({{"id", 838}, {"content", content}, {"special", special}});
    };
    const auto expect_mismatch = [&](const Tokenizer& target, const Tokenizer& draft, const char* part) {
        const Status status = check_same_vocabulary(target, "the/target", draft, "the/draft");
        expect_refused(status, Code::mismatch, "the/draft", part);
        EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    };
    const auto renamed = changed([](json& added) { added[3]["content"] = "<|later_named|>"; }); // was reserved
    EXPECT_TRUE(check_same_vocabulary(*original, "t", *renamed, "d").ok());
    EXPECT_TRUE(check_same_vocabulary(*renamed, "t", *original, "d").ok());
    const auto swapped = changed([](json& added) { added[4]["content"] = "<|another|>"; });
    expect_mismatch(*original, *swapped, "token 830 \"<|another|>\"");
    const auto text = changed([](json& added) { added[4]["special"] = false; });
    expect_mismatch(*original, *text, "token 830 standing for");
    const auto control = changed([&](json& added) { add(added, "<|extra|>", true); });
    EXPECT_TRUE(check_same_vocabulary(*original, "t", *control, "d").ok());
    EXPECT_TRUE(check_same_vocabulary(*control, "t", *original, "d").ok());
    // Whatever lies after the end of the shorter one: a word, an end.
    const auto word = changed([&](json& added) { add(added, "extra", false); });
    const auto end = changed([&](json& added) { add(added, "<|im_end|>", true); });
    for (const auto* longer : {&word, &end}) {
        EXPECT_TRUE(check_same_vocabulary(*original, "t", **longer, "d").ok());
        EXPECT_TRUE(check_same_vocabulary(**longer, "t", *original, "d").ok());
    }
    expect_mismatch(*word, *end, "token 838 \"<|im_end|>\"");
}

} // namespace
} // namespace auspex::open_tokenizer_test
