// Conversations, scores, tokenizers and conversion through the C interface: chat turns become tokens, sequences go on,
// everything wrong is refused and told once.
#include <auspex/auspex.h>
#include <auspex/auspex_tools.h>

#include "model/file_fixtures.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace conversation_test {
namespace {

const char* const kTarget = AUSPEX_PAIR_DIR "/target";

struct Log {
    std::vector<std::string> errors;
    static void write(void* user_data, auspex_log_level level, const char* message) {
        if (level == AUSPEX_LOG_ERROR) static_cast<Log*>(user_data)->errors.push_back(message);
    }
};

class Conversation : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        auspex_engine_desc desc;
        ASSERT_EQ(auspex_engine_desc_init(&desc, sizeof desc), AUSPEX_OK);
        desc.target_path = kTarget;
        desc.draft_path = AUSPEX_PAIR_DIR "/draft";
        desc.draft_weights = AUSPEX_WEIGHTS_Q8_0;
        desc.max_context = 256;
        desc.max_sequences = 2;
        desc.log = Log::write;
        desc.log_user_data = &log_;
        ASSERT_EQ(auspex_engine_create(&desc, &engine_), AUSPEX_OK);
        ASSERT_EQ(auspex_tokenizer_open(kTarget, &tokenizer_, nullptr, nullptr), AUSPEX_OK);
    }
    static void TearDownTestSuite() {
        auspex_engine_destroy(engine_);
        auspex_tokenizer_destroy(tokenizer_);
    }
    void SetUp() override { log_.errors.clear(); }

    static auspex_sequence_desc request(const std::vector<uint32_t>& prompt, uint32_t max_tokens) {
        auspex_sequence_desc desc;
        EXPECT_EQ(auspex_sequence_desc_init(&desc, sizeof desc), AUSPEX_OK);
        desc.prompt_tokens = prompt.empty() ? nullptr : prompt.data();
        desc.prompt_token_count = prompt.size();
        desc.max_tokens = max_tokens;
        desc.ignore_eos = 1;
        return desc;
    }
    static void finish() {
        for (;;) {
            const auspex_status status = auspex_engine_step(engine_, 0, nullptr);
            ASSERT_GE(status, 0);
            if (status == AUSPEX_FINISHED) return;
            ASSERT_GE(auspex_engine_wait(engine_, 10'000), 0);
        }
    }
    static std::vector<uint32_t> read(auspex_sequence sequence) {
        std::vector<auspex_token> tokens(512);
        size_t count = 0;
        EXPECT_EQ(auspex_sequence_read_tokens(engine_, sequence, tokens.data(), tokens.size(), &count), AUSPEX_OK);
        std::vector<uint32_t> ids;
        for (size_t i = 0; i < count; ++i) ids.push_back(tokens[i].id);
        return ids;
    }
    static auspex_sequence_stats stats(auspex_sequence sequence) {
        auspex_sequence_stats value;
        EXPECT_EQ(auspex_sequence_stats_init(&value, sizeof value), AUSPEX_OK);
        EXPECT_EQ(auspex_sequence_get_stats(engine_, sequence, &value), AUSPEX_OK);
        return value;
    }
    static auspex_chat_turn turn(const char* user) {
        auspex_chat_turn value;
        EXPECT_EQ(auspex_chat_turn_init(&value, sizeof value), AUSPEX_OK);
        value.user = user;
        value.template_name = "zephyr"; // its control token is in every SentencePiece vocabulary
        return value;
    }
    static std::vector<uint32_t> encode(const auspex_chat_turn& value) {
        std::vector<uint32_t> tokens(256);
        size_t count = 0;
        EXPECT_EQ(auspex_engine_encode_chat(engine_, &value, tokens.data(), tokens.size(), &count), AUSPEX_OK);
        tokens.resize(count);
        return tokens;
    }
    static std::string decode(const std::vector<uint32_t>& tokens) {
        std::string text(4096, '?');
        size_t bytes = 0;
        EXPECT_EQ(auspex_tokenizer_decode(tokenizer_, tokens.data(), tokens.size(), text.data(), text.size(), &bytes), AUSPEX_OK);
        text.resize(bytes);
        return text;
    }
    static void expect_refused(auspex_status status, auspex_status expected = AUSPEX_ERROR_INVALID_ARGUMENT) {
        EXPECT_EQ(status, expected);
        ASSERT_EQ(log_.errors.size(), 1u) << "an error is told once";
        EXPECT_EQ(log_.errors[0].find('\n'), std::string::npos);
        log_.errors.clear();
    }

    static inline Log log_;
    static inline auspex_engine* engine_ = nullptr;
    static inline auspex_tokenizer* tokenizer_ = nullptr;
};

TEST_F(Conversation, TurnsBecomeTokens) {
    auspex_chat_turn opening = turn("Who took my </s> hat?");
    opening.system = "Be brief.";
    const auto first = encode(opening);
    EXPECT_EQ(std::count(first.begin(), first.end(), 2u), 2) << "one after the system text, one after the user's; what the user spells is text";
    EXPECT_NE(decode(first).find("Be brief."), std::string::npos);
    EXPECT_NE(decode(first).find("Who took my </s> hat?"), std::string::npos);
    uint32_t bos = 0;
    EXPECT_EQ(auspex_tokenizer_adds_bos(tokenizer_, &bos), 1);
    auspex_chat_turn next = turn("And why?");
    next.first = 0;
    const auto cut = encode(next); // the answer before was cut off: its end is put after it
    next.answer_ended = 1;
    const auto ended = encode(next);
    ASSERT_FALSE(cut.empty());
    EXPECT_EQ(cut[0], 2u);
    EXPECT_EQ(ended, std::vector<uint32_t>(cut.begin() + 1, cut.end()));
    EXPECT_EQ(std::count(cut.begin(), cut.end(), bos), 0);

    // As many as fit, and how many there are.
    std::vector<uint32_t> few(3, 77);
    size_t count = 0;
    EXPECT_EQ(auspex_engine_encode_chat(engine_, &next, few.data(), 2, &count), AUSPEX_ERROR_CAPACITY);
    EXPECT_EQ(count, ended.size());
    EXPECT_EQ(few, (std::vector<uint32_t>{ended[0], ended[1], 77}));
    EXPECT_EQ(auspex_engine_encode_chat(engine_, &next, nullptr, 0, &count), AUSPEX_OK);

    auspex_chat_turn own = next;
    own.template_name = nullptr; // the model's own layout
    EXPECT_EQ(encode(own), ended);

    auspex_chat_turn wrong = turn("x");
    wrong.template_name = "no such";
    expect_refused(auspex_engine_encode_chat(engine_, &wrong, nullptr, 0, &count));
    wrong.template_name = "llama3";
    expect_refused(auspex_engine_encode_chat(engine_, &wrong, nullptr, 0, &count), AUSPEX_ERROR_MISMATCH);
    wrong = turn(nullptr);
    expect_refused(auspex_engine_encode_chat(engine_, &wrong, nullptr, 0, &count));
    wrong = turn("x");
    wrong.header.type = AUSPEX_TYPE_STEP_RESULT;
    expect_refused(auspex_engine_encode_chat(engine_, &wrong, nullptr, 0, &count));
    expect_refused(auspex_engine_encode_chat(engine_, nullptr, nullptr, 0, &count));
    expect_refused(auspex_engine_encode_chat(engine_, &next, nullptr, 0, nullptr));
    EXPECT_EQ(auspex_engine_encode_chat(nullptr, &next, nullptr, 0, &count), AUSPEX_ERROR_INVALID_ARGUMENT);
}

TEST_F(Conversation, WholeConversationsBecomeTokens) {
    auspex_tokenizer* tokenizer = nullptr;
    ASSERT_EQ(auspex_tokenizer_open(AUSPEX_PAIR_DIR "/target", &tokenizer, nullptr, nullptr), AUSPEX_OK);
    const std::unique_ptr<auspex_tokenizer, decltype(&auspex_tokenizer_destroy)> owned(tokenizer, auspex_tokenizer_destroy);
    const auto message = [](const char* role, const char* content) { return auspex_chat_message{role, content, std::strlen(content)}; };
    const auto encode_all = [&](const std::vector<auspex_chat_message>& messages, const auspex_chat_options* options) {
        std::vector<uint32_t> tokens(256);
        size_t count = 0;
        EXPECT_EQ(auspex_engine_encode_messages(engine_, messages.data(), messages.size(), options, tokens.data(), tokens.size(), &count), AUSPEX_OK);
        tokens.resize(count);
        std::vector<uint32_t> without_engine(256);
        EXPECT_EQ(auspex_tokenizer_encode_messages(tokenizer, messages.data(), messages.size(), options, without_engine.data(), without_engine.size(), &count, nullptr, nullptr), AUSPEX_OK);
        without_engine.resize(count);
        EXPECT_EQ(without_engine, tokens);
        return tokens;
    };
    auspex_chat_options options;
    ASSERT_EQ(auspex_chat_options_init(&options, sizeof options), AUSPEX_OK);
    const char* const first = "Who took my </s> hat?";
    const char* const answer = "The fox did.";
    for (const char* name : {"zephyr", "llama2"}) {
        SCOPED_TRACE(name);
        options.template_name = name;
        auspex_chat_turn opening = turn(first), next = turn("And why?");
        opening.system = "Be brief.";
        opening.template_name = next.template_name = name;
        next.first = 0;
        EXPECT_EQ(encode_all({message("system", "Be brief."), message("user", first)}, &options), encode(opening));
        EXPECT_EQ(encode_all({message("developer", "Be brief."), message("user", first)}, &options), encode(opening));
        // Turn by turn: the opening, the answer's tokens, what is between the answers. Only in llama2 every text begins as one of its own.
        const auto whole = encode_all({message("system", "Be brief."), message("user", first), message("assistant", answer), message("user", "And why?")}, &options);
        const auto before = encode(opening), after = encode(next);
        ASSERT_GT(whole.size(), before.size() + after.size());
        EXPECT_TRUE(std::equal(before.begin(), before.end() - 1, whole.begin()));
        EXPECT_TRUE(std::equal(after.begin(), after.end(), whole.end() - static_cast<std::ptrdiff_t>(after.size())));
        EXPECT_NE(decode(whole).find(answer), std::string::npos);
        EXPECT_EQ(std::count(whole.begin(), whole.end(), 2u), std::count(before.begin(), before.end(), 2u) + std::count(after.begin(), after.end(), 2u));
    }
    // The pair's own layout is zephyr; without options, and with a zero byte in what is said.
    options.template_name = "zephyr";
    const std::vector<auspex_chat_message> zero = {{"user", "a\0b", 3}}, empty = {{"system", nullptr, 0}, {"user", "x", 1}};
    EXPECT_EQ(encode_all(zero, nullptr), encode_all(zero, &options));
    EXPECT_NE(encode_all(zero, nullptr), encode_all({message("user", "a")}, nullptr));
    EXPECT_NE(encode_all(empty, nullptr), encode_all({message("user", "x")}, nullptr)) << "an empty system message is one";

    size_t count = 0;
    const auto refused = [&](const std::vector<auspex_chat_message>& messages, const auspex_chat_options* asked, auspex_status expected = AUSPEX_ERROR_INVALID_ARGUMENT) {
        expect_refused(auspex_engine_encode_messages(engine_, messages.data(), messages.size(), asked, nullptr, 0, &count), expected);
        EXPECT_EQ(auspex_tokenizer_encode_messages(tokenizer, messages.data(), messages.size(), asked, nullptr, 0, &count, nullptr, nullptr), expected);
    };
    refused({}, nullptr);
    refused({message("user", "x"), message("tool", "x")}, nullptr, AUSPEX_ERROR_UNSUPPORTED);
    refused({message("bot", "x")}, nullptr);
    refused({{nullptr, "x", 1}}, nullptr);
    refused({{"user", nullptr, 1}}, nullptr);
    options.template_name = "llama2";
    refused({message("assistant", "x")}, &options, AUSPEX_ERROR_UNSUPPORTED);
    options.template_name = "llama3";
    refused({message("user", "x")}, &options, AUSPEX_ERROR_MISMATCH);
    options.template_name = "no such";
    refused({message("user", "x")}, &options);
    options.header.type = AUSPEX_TYPE_CHAT_TURN;
    refused({message("user", "x")}, &options);
    const auspex_chat_message one = message("user", "x");
    uint32_t few[2] = {};
    EXPECT_EQ(auspex_engine_encode_messages(engine_, &one, 1, nullptr, few, 2, &count), AUSPEX_ERROR_CAPACITY);
    EXPECT_GT(count, 2u);
    expect_refused(auspex_engine_encode_messages(engine_, &one, 1, nullptr, few, 2, nullptr));
    expect_refused(auspex_engine_encode_messages(engine_, nullptr, 1, nullptr, few, 2, &count));
    EXPECT_EQ(auspex_engine_encode_messages(nullptr, &one, 1, nullptr, nullptr, 0, &count), AUSPEX_ERROR_INVALID_ARGUMENT);
}

TEST_F(Conversation, AModelWithoutALayoutOfItsOwnNeedsOneByName) {
    const auspex::test::TempFolder folder;
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.model"})
        std::filesystem::copy_file(std::string(AUSPEX_PAIR_DIR "/draft/") + name, folder.file(name));
    auspex_engine_desc desc;
    ASSERT_EQ(auspex_engine_desc_init(&desc, sizeof desc), AUSPEX_OK);
    desc.target_path = folder.path().c_str();
    desc.max_context = 64;
    desc.log = Log::write;
    desc.log_user_data = &log_;
    auspex_engine* engine = nullptr;
    ASSERT_EQ(auspex_engine_create(&desc, &engine), AUSPEX_OK);
    auspex_tokenizer* tokenizer = nullptr;
    ASSERT_EQ(auspex_tokenizer_open(desc.target_path, &tokenizer, nullptr, nullptr), AUSPEX_OK);
    auspex_chat_turn value = turn("x");
    size_t count = 0;
    EXPECT_EQ(auspex_engine_encode_chat(engine, &value, nullptr, 0, &count), AUSPEX_OK);
    value.template_name = nullptr;
    EXPECT_EQ(auspex_engine_encode_chat(engine, &value, nullptr, 0, &count), AUSPEX_ERROR_UNSUPPORTED);
    EXPECT_EQ(auspex_tokenizer_encode_chat(tokenizer, &value, nullptr, 0, &count, Log::write, &log_), AUSPEX_ERROR_UNSUPPORTED);
    EXPECT_EQ(auspex_tokenizer_encode_chat(tokenizer, &value, nullptr, 0, &count, nullptr, nullptr), AUSPEX_ERROR_UNSUPPORTED);
    ASSERT_EQ(log_.errors.size(), 2u);
    EXPECT_EQ(log_.errors[0], log_.errors[1]);
    for (const char* name : {"llama3", "llama3-plain", "llama2", "zephyr", "chatml"}) EXPECT_NE(log_.errors[0].find(name), std::string::npos) << log_.errors[0];
    auspex_tokenizer_destroy(tokenizer);
    auspex_engine_destroy(engine);
}

TEST_F(Conversation, TokenizersEncodeTurnsWithoutAnEngine) {
    Log log;
    const auto encode_alone = [&](const auspex_chat_turn* value, std::vector<uint32_t>& tokens) {
        tokens.assign(256, 0);
        size_t count = 0;
        const auspex_status status = auspex_tokenizer_encode_chat(tokenizer_, value, tokens.data(), tokens.size(), &count, Log::write, &log);
        tokens.resize(status == AUSPEX_OK ? count : 0);
        return status;
    };
    std::vector<uint32_t> tokens;
    auspex_chat_turn value = turn("Who took my </s> hat?");
    for (const char* system : {"Be brief.", "", static_cast<const char*>(nullptr)})
        for (const char* name : {"zephyr", "llama2"}) {
            value.system = system;
            value.template_name = name;
            value.first = 1;
            ASSERT_EQ(encode_alone(&value, tokens), AUSPEX_OK);
            EXPECT_EQ(tokens, encode(value));
            for (uint32_t ended : {0u, 1u}) {
                value.first = 0;
                value.answer_ended = ended;
                ASSERT_EQ(encode_alone(&value, tokens), AUSPEX_OK);
                EXPECT_EQ(tokens, encode(value));
            }
        }
    EXPECT_TRUE(log.errors.empty());

    // The same refusals, in the same words.
    auspex_chat_turn silent = turn(nullptr), wrong = turn("x");
    wrong.header.type = AUSPEX_TYPE_STEP_RESULT;
    auspex_chat_turn no_such = turn("x"), lacking = turn("x");
    no_such.template_name = "no such";
    lacking.template_name = "llama3";
    for (const auspex_chat_turn* refused : {&silent, &wrong, &no_such, &lacking, static_cast<auspex_chat_turn*>(nullptr)}) {
        size_t count = 0;
        const auspex_status expected = auspex_engine_encode_chat(engine_, refused, nullptr, 0, &count);
        EXPECT_LT(expected, 0);
        EXPECT_EQ(encode_alone(refused, tokens), expected);
        EXPECT_EQ(log.errors, log_.errors);
        EXPECT_EQ(log.errors.size(), 1u);
        log.errors.clear();
        log_.errors.clear();
    }
    size_t count = 0;
    EXPECT_EQ(auspex_tokenizer_encode_chat(tokenizer_, &value, tokens.data(), 2, &count, nullptr, nullptr), AUSPEX_ERROR_CAPACITY);
    EXPECT_GT(count, 2u);
    EXPECT_EQ(auspex_tokenizer_encode_chat(tokenizer_, &value, nullptr, 0, nullptr, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_tokenizer_encode_chat(nullptr, &value, nullptr, 0, &count, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
}

TEST_F(Conversation, SequencesGoOnAndReadOnlyWhatIsNew) {
    const auto first = encode(turn("Tell me of the sea."));
    auspex_sequence sequence = {0};
    auspex_sequence_desc desc = request(first, 20);
    ASSERT_EQ(auspex_sequence_create(engine_, &desc, &sequence), AUSPEX_OK);
    expect_refused(auspex_sequence_append(engine_, sequence, &desc)); // it runs
    finish();
    EXPECT_EQ(stats(sequence).prefilled_n, first.size() - 1);
    auspex_chat_turn next = turn("And of the land.");
    next.first = 0;
    const auto second = encode(next);
    desc = request(second, 15);
    ASSERT_EQ(auspex_sequence_append(engine_, sequence, &desc), AUSPEX_OK); // the first answer was not taken yet
    EXPECT_EQ(stats(sequence).stop_reason, AUSPEX_STOP_NONE);
    finish();
    const auto said = read(sequence);
    EXPECT_EQ(said.size(), 35u);
    const auspex_sequence_stats value = stats(sequence);
    EXPECT_EQ(value.stop_reason, AUSPEX_STOP_LENGTH);
    EXPECT_EQ(value.prefilled_n, second.size());
    EXPECT_EQ(value.prompt_n, first.size() + 20 + second.size());
    EXPECT_EQ(value.predicted_n, 15u);
    EXPECT_EQ(value.total_n, value.prompt_n + 15);
    EXPECT_GE(value.prompt_ms, 0);
    EXPECT_GE(value.first_token_ms, value.prompt_ms);
    std::vector<uint32_t> before(value.prompt_n);
    size_t count = 0;
    ASSERT_EQ(auspex_sequence_get_prompt(engine_, sequence, before.data(), before.size(), &count), AUSPEX_OK);
    std::vector<uint32_t> expected = first;
    expected.insert(expected.end(), said.begin(), said.begin() + 20);
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(before, expected);

    // Text is a text of its own, without BOS; nothing at all is allowed.
    auspex_sequence_desc text = request({}, AUSPEX_HOLD);
    text.prompt_text = "Hello there";
    text.prompt_text_bytes = std::strlen(text.prompt_text);
    ASSERT_EQ(auspex_sequence_append(engine_, sequence, &text), AUSPEX_OK);
    finish();
    std::vector<uint32_t> hello(64), all(512);
    ASSERT_EQ(auspex_engine_tokenize(engine_, text.prompt_text, text.prompt_text_bytes, 0, hello.data(), hello.size(), &count), AUSPEX_OK);
    hello.resize(count);
    ASSERT_EQ(auspex_sequence_get_prompt(engine_, sequence, all.data(), all.size(), &count), AUSPEX_OK);
    EXPECT_TRUE(std::equal(hello.begin(), hello.end(), all.begin() + static_cast<std::ptrdiff_t>(count - hello.size())));
    desc = request({}, 3);
    ASSERT_EQ(auspex_sequence_append(engine_, sequence, &desc), AUSPEX_OK);
    finish();
    EXPECT_EQ(read(sequence).size(), 3u);
    EXPECT_EQ(stats(sequence).prefilled_n, 0u);

    const std::vector<uint32_t> too_much(250, 5), unknown = {4096};
    desc = request(too_much, 1);
    expect_refused(auspex_sequence_append(engine_, sequence, &desc), AUSPEX_ERROR_CAPACITY);
    desc = request(unknown, 1);
    expect_refused(auspex_sequence_append(engine_, sequence, &desc));
    expect_refused(auspex_sequence_append(engine_, sequence, nullptr));
    ASSERT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
    expect_refused(auspex_sequence_append(engine_, sequence, &desc));
    EXPECT_EQ(auspex_sequence_append(nullptr, sequence, &desc), AUSPEX_ERROR_INVALID_ARGUMENT);
}

struct Rows {
    std::vector<size_t> positions;
    std::vector<std::vector<float>> logits;
    static void row(void* user_data, size_t position, const float* logits, size_t n) {
        static_cast<Rows*>(user_data)->positions.push_back(position);
        static_cast<Rows*>(user_data)->logits.emplace_back(logits, logits + n);
    }
};

TEST_F(Conversation, ScoresAreLogarithmsOfProbabilities) {
    const std::vector<uint32_t> tokens = encode(turn("One day a fox came to the river."));
    const std::vector<size_t> wanted = {0, 3, tokens.size() - 1};
    Rows rows;
    auspex_score_options options;
    ASSERT_EQ(auspex_score_options_init(&options, sizeof options), AUSPEX_OK);
    options.logit_positions = wanted.data();
    options.logit_position_count = wanted.size();
    options.logits = Rows::row;
    options.user_data = &rows;
    std::vector<double> log_probs(tokens.size(), 77), again(tokens.size(), 77);
    ASSERT_EQ(auspex_engine_score(engine_, tokens.data(), tokens.size(), log_probs.data(), &options), AUSPEX_OK);
    EXPECT_EQ(rows.positions, wanted);
    EXPECT_EQ(log_probs.back(), 77) << "n - 1 of them";
    for (size_t i = 0; i < 2; ++i) {
        ASSERT_EQ(rows.logits[i].size(), 4096u);
        double sum = 0;
        for (float logit : rows.logits[i]) sum += std::exp(static_cast<double>(logit));
        EXPECT_NEAR(log_probs[wanted[i]], static_cast<double>(rows.logits[i][tokens[wanted[i] + 1]]) - std::log(sum), 1e-9);
    }
    ASSERT_EQ(auspex_engine_score(engine_, tokens.data(), tokens.size(), again.data(), nullptr), AUSPEX_OK);
    EXPECT_EQ(again, log_probs);
    EXPECT_EQ(auspex_engine_score(engine_, tokens.data(), tokens.size(), nullptr, &options), AUSPEX_OK);
    EXPECT_EQ(rows.positions.size(), 6u);

    const std::vector<size_t> descending = {3, 0}, beyond = {tokens.size()};
    options.logit_positions = descending.data();
    options.logit_position_count = 2;
    expect_refused(auspex_engine_score(engine_, tokens.data(), tokens.size(), nullptr, &options));
    options.logit_positions = beyond.data();
    options.logit_position_count = 1;
    expect_refused(auspex_engine_score(engine_, tokens.data(), tokens.size(), nullptr, &options));
    options.logit_positions = nullptr;
    expect_refused(auspex_engine_score(engine_, tokens.data(), tokens.size(), nullptr, &options));
    expect_refused(auspex_engine_score(engine_, tokens.data(), 0, nullptr, nullptr));
    expect_refused(auspex_engine_score(engine_, nullptr, 4, nullptr, nullptr));
    const std::vector<uint32_t> many(300, 5), unknown = {4096};
    expect_refused(auspex_engine_score(engine_, unknown.data(), 1, nullptr, nullptr));
    expect_refused(auspex_engine_score(engine_, many.data(), many.size(), nullptr, nullptr), AUSPEX_ERROR_CAPACITY);
    EXPECT_EQ(rows.positions.size(), 6u);
}

TEST_F(Conversation, TokenizersNeedNoEngine) {
    const std::string text = "Once upon a </s> time 日本 \xf0\x9f\x99\x82";
    std::vector<uint32_t> tokens(128), engines(128), parsed(128);
    size_t n = 0, n_engine = 0, n_parsed = 0;
    ASSERT_EQ(auspex_tokenizer_encode(tokenizer_, text.data(), text.size(), 1, 0, tokens.data(), tokens.size(), &n), AUSPEX_OK);
    ASSERT_EQ(auspex_engine_tokenize(engine_, text.data(), text.size(), 1, engines.data(), engines.size(), &n_engine), AUSPEX_OK);
    tokens.resize(n);
    engines.resize(n_engine);
    EXPECT_EQ(tokens, engines);
    EXPECT_EQ(decode(tokens), text); // BOS is left out
    ASSERT_EQ(auspex_tokenizer_encode(tokenizer_, text.data(), text.size(), 0, 1, parsed.data(), parsed.size(), &n_parsed), AUSPEX_OK);
    parsed.resize(n_parsed);
    EXPECT_EQ(std::count(parsed.begin(), parsed.end(), 2u), 1);
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 2u), 0);
    EXPECT_EQ(auspex_tokenizer_vocab_size(tokenizer_), 4096u);
    EXPECT_EQ(auspex_tokenizer_vocab_size(nullptr), 0u);

    char piece[16] = {};
    size_t bytes = 0;
    int control = 7;
    ASSERT_EQ(auspex_tokenizer_piece(tokenizer_, 2, piece, sizeof piece, &bytes, &control), AUSPEX_OK);
    EXPECT_EQ(std::string(piece, bytes), "</s>");
    EXPECT_EQ(control, 1);
    std::string joined;
    for (size_t i = 1; i < tokens.size(); ++i) {
        ASSERT_EQ(auspex_tokenizer_piece(tokenizer_, tokens[i], piece, sizeof piece, &bytes, &control), AUSPEX_OK);
        EXPECT_EQ(control, 0);
        joined.append(piece, bytes);
    }
    EXPECT_EQ(joined, " " + text); // the dummy prefix
    EXPECT_EQ(auspex_tokenizer_piece(tokenizer_, 4096, piece, sizeof piece, &bytes, &control), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_tokenizer_piece(tokenizer_, 2, piece, 3, &bytes, nullptr), AUSPEX_ERROR_CAPACITY);
    EXPECT_EQ(bytes, 4u);
    EXPECT_EQ(auspex_tokenizer_decode(tokenizer_, tokens.data(), tokens.size(), nullptr, 0, &bytes), AUSPEX_OK);
    EXPECT_EQ(bytes, text.size());

    auspex_tokenizer* none = reinterpret_cast<auspex_tokenizer*>(&bytes);
    Log log;
    EXPECT_EQ(auspex_tokenizer_open("/no/such/model", &none, Log::write, &log), AUSPEX_ERROR_NOT_FOUND);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(log.errors.size(), 1u);
    EXPECT_EQ(auspex_tokenizer_open(nullptr, &none, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_tokenizer_open(kTarget, nullptr, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_tokenizer_encode(nullptr, "x", 1, 0, 0, nullptr, 0, &n), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_tokenizer_decode(tokenizer_, nullptr, 1, nullptr, 0, &n), AUSPEX_ERROR_INVALID_ARGUMENT);
    auspex_tokenizer_destroy(nullptr);
}

TEST_F(Conversation, ModelsAreConverted) {
    const std::string path = (std::filesystem::temp_directory_path() / ("auspex_converted_" + std::to_string(reinterpret_cast<uintptr_t>(&path)) + ".gguf")).string();
    Log log;
    EXPECT_EQ(auspex_quantize_model(kTarget, path.c_str(), static_cast<auspex_weight_type>(77), nullptr, nullptr, Log::write, &log), AUSPEX_ERROR_UNSUPPORTED);
    EXPECT_EQ(auspex_quantize_model("/no/such/model", path.c_str(), AUSPEX_WEIGHTS_Q8_0, nullptr, nullptr, Log::write, &log), AUSPEX_ERROR_NOT_FOUND);
    EXPECT_EQ(log.errors.size(), 2u);
    EXPECT_EQ(auspex_quantize_model(kTarget, nullptr, AUSPEX_WEIGHTS_Q8_0, nullptr, nullptr, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_FALSE(std::filesystem::exists(path));
    float last = 0;
    ASSERT_EQ(auspex_quantize_model(kTarget, path.c_str(), AUSPEX_WEIGHTS_Q8_0, [](void* user, float fraction) { *static_cast<float*>(user) = fraction; }, &last, nullptr, nullptr), AUSPEX_OK);
    EXPECT_EQ(last, 1.0f);
    auspex_model_info info;
    ASSERT_EQ(auspex_model_info_init(&info, sizeof info), AUSPEX_OK);
    ASSERT_EQ(auspex_model_describe(path.c_str(), AUSPEX_CACHE_F16, &info, nullptr, nullptr), AUSPEX_OK);
    EXPECT_STREQ(info.dtype, "q8_0");
    EXPECT_LT(info.weights_bytes, info.n_parameters * 5 / 4);
    EXPECT_GT(info.weights_bytes, info.n_parameters);
    std::filesystem::remove(path);
}

} // namespace
} // namespace conversation_test
