// Vocabularies of our fixtures as plain data and as GGUF files, for tests to change, and what shows that two are one.
#pragma once

#include "formats/gguf_builder.h"
#include "model/file_fixtures.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/tokenizer.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

namespace auspex::test {

using nlohmann::json;
using Ids = std::vector<uint32_t>;

inline std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
inline json bpe_json() {
    return json::parse(read(AUSPEX_TEST_DATA "/bpe/tokenizer.json"), nullptr, false);
}
inline std::unique_ptr<Tokenizer> open_or_fail(const std::string& path) {
    auto opened = open_tokenizer(path);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
}
inline const char* const sample_texts[] = {"",
                                    "a",
                                    "Hello, world! It's 2026.",
                                    "  two  spaces\n\n\tand more \r\n",
                                    "na\xc3\xafve \xf0\x9f\x99\x82\xe4\xbd\xa0",
                                    "<s>[INST] <|eot_id|> </s> <<word>> <0x0A>",
                                    "\xff\xc3",
                                    "x = y[1234567] + 'll"};

inline Ids encoded(const Tokenizer& tokenizer, std::string_view text) {
    auto ids = tokenizer.encode(text);
    EXPECT_TRUE(ids.ok()) << ids.status().message();
    return ids.ok() ? std::move(ids).value() : Ids{};
}

inline void expect_same_ids(const Tokenizer& a, const Tokenizer& b) {
    for (const char* text : sample_texts) {
        EXPECT_EQ(a.encode(text).value(), b.encode(text).value()) << text;
        EXPECT_EQ(a.encode_with_controls(text).value(), b.encode_with_controls(text).value()) << text;
    }
}

inline GgufBuilder sentencepiece_gguf(const SentencePieceModel& model) {
    std::vector<std::string_view> tokens;
    std::vector<float> scores;
    std::vector<int32_t> types;
    for (const auto& piece : model.pieces) {
        tokens.push_back(piece.spelling);
        scores.push_back(piece.score);
        types.push_back(static_cast<int32_t>(piece.type));
    }
    GgufBuilder file;
    file.set("general.architecture", "llama").set("tokenizer.ggml.model", "llama").set("tokenizer.ggml.pre", "default");
    file.set("tokenizer.ggml.tokens", tokens).set("tokenizer.ggml.scores", scores);
    return file.set("tokenizer.ggml.token_type", types);
}
inline SentencePieceModel bundled_model() {
    const std::string bytes = read(AUSPEX_PAIR_DIR "/target/tokenizer.model");
    auto model = parse_sentencepiece_model(std::as_bytes(std::span(bytes)), "bundled");
    EXPECT_TRUE(model.ok());
    return std::move(model).value();
}
using Tokens = std::vector<std::string_view>;
using PieceType = SentencePieceModel::Type;
// change: the lists of words and types, before they are written.
inline GgufBuilder bpe_gguf(const std::function<void(Tokens&, std::vector<int32_t>&)>& change = {}) {
    const json file = bpe_json();
    std::vector<std::string_view> tokens(838), merges;
    std::vector<std::string> merge_texts;
    std::vector<int32_t> types(838, 1);
    for (const auto& [spelling, id] : file["model"]["vocab"].get_ref<const json::object_t&>())
        tokens[id.get<size_t>()] = spelling;
    for (const auto& added : file["added_tokens"]) {
        tokens[added["id"].get<size_t>()] = added["content"].get_ref<const std::string&>();
        types[added["id"].get<size_t>()] = added["special"].get<bool>() ? 3 : 4;
    }
    for (const auto& merge : file["model"]["merges"])
        merge_texts.push_back(merge[0].get<std::string>() + ' ' + merge[1].get<std::string>());
    merges.assign(merge_texts.begin(), merge_texts.end());
    if (change) change(tokens, types);
    GgufBuilder out;
    out.set("general.architecture", "llama").set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "llama-bpe");
    out.set("tokenizer.ggml.tokens", tokens).set("tokenizer.ggml.token_type", types);
    out.set("tokenizer.ggml.merges", merges).set("tokenizer.ggml.bos_token_id", 826u);
    return out.set("tokenizer.ggml.eos_token_id", 834u).set("tokenizer.chat_template", "{{ x }}");
}

} // namespace auspex::test
