// The C interface as its header promises it: refused arguments, sequences that are gone, text in small pieces; an error
// changes nothing.
#include <auspex/auspex.h>
#include <auspex/auspex_tools.h>
#include <auspex/auspex_vulkan.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace c_api_test {
namespace {

struct Log {
    std::vector<std::string> errors;
    static void write(void* user_data, auspex_log_level level, const char* message) {
        if (level == AUSPEX_LOG_ERROR) static_cast<Log*>(user_data)->errors.push_back(message);
        EXPECT_EQ(std::strchr(message, '\n'), nullptr) << message;
    }
};

auspex_engine_desc pair_desc(Log* log) {
    auspex_engine_desc desc;
    EXPECT_EQ(auspex_engine_desc_init(&desc, sizeof desc), AUSPEX_OK);
    desc.target_path = AUSPEX_PAIR_DIR "/target";
    desc.draft_path = AUSPEX_PAIR_DIR "/draft";
    desc.max_context = 256;
    desc.max_sequences = 3;
    desc.compile_threads = 4;
    desc.log = Log::write;
    desc.log_user_data = log;
    return desc;
}

class CApiTest : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        const auspex_engine_desc desc = pair_desc(&log_);
        ASSERT_EQ(auspex_engine_create(&desc, &engine_), AUSPEX_OK);
    }
    static void TearDownTestSuite() {
        auspex_engine_destroy(engine_);
        engine_ = nullptr;
    }
    void SetUp() override { log_.errors.clear(); }

    static auspex_sequence_desc prompt(const char* text, uint32_t max_tokens, float temperature = 0, uint64_t seed = 3) {
        auspex_sequence_desc desc;
        EXPECT_EQ(auspex_sequence_desc_init(&desc, sizeof desc), AUSPEX_OK);
        desc.prompt_text = text;
        desc.prompt_text_bytes = std::strlen(text);
        desc.max_tokens = max_tokens;
        desc.temperature = temperature;
        desc.seed = seed;
        desc.ignore_eos = 1;
        return desc;
    }
    static auspex_sequence create(const auspex_sequence_desc& desc) {
        auspex_sequence sequence = {0};
        EXPECT_EQ(auspex_sequence_create(engine_, &desc, &sequence), AUSPEX_OK);
        EXPECT_NE(sequence.id, 0u);
        return sequence;
    }
    static void finish() {
        for (;;) {
            const auspex_status status = auspex_engine_step(engine_, 0, nullptr);
            ASSERT_GE(status, 0);
            if (status == AUSPEX_FINISHED) return;
            ASSERT_GE(auspex_engine_wait(engine_, 10'000), 0);
        }
    }
    static std::vector<auspex_token> tokens_of(auspex_sequence sequence) {
        std::vector<auspex_token> tokens(512);
        size_t count = 0;
        EXPECT_EQ(auspex_sequence_read_tokens(engine_, sequence, tokens.data(), tokens.size(), &count), AUSPEX_OK);
        tokens.resize(count);
        return tokens;
    }
    // An error that the engine could tell of, and did.
    void expect_refused(auspex_status status, auspex_status expected = AUSPEX_ERROR_INVALID_ARGUMENT) {
        EXPECT_EQ(status, expected);
        ASSERT_EQ(log_.errors.size(), 1u) << "an error is told once";
        EXPECT_FALSE(log_.errors[0].empty());
        log_.errors.clear();
    }

    static inline Log log_;
    static inline auspex_engine* engine_ = nullptr;
};

TEST(CApiEngine, WrongDescriptionsGiveNoEngine) {
    auspex_engine* const sentinel = reinterpret_cast<auspex_engine*>(&auspex_version);
    struct Case {
        auspex_status status;
        std::function<void(auspex_engine_desc&)> change;
        bool told = true;
    };
    for (const Case& one : std::vector<Case>{
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.header.type = AUSPEX_TYPE_STEP_RESULT; }, false},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.header.size = 4; }, false},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.target_path = nullptr; }},
             {AUSPEX_ERROR_NOT_FOUND, [](auspex_engine_desc& d) { d.target_path = "/no/such/model"; }},
             {AUSPEX_ERROR_NOT_FOUND, [](auspex_engine_desc& d) { d.draft_path = "/no/such/model"; }},
             {AUSPEX_ERROR_NO_DEVICE, [](auspex_engine_desc& d) { d.device = "no such device"; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.max_sequences = 0; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.max_sequences = 0xffffffffu; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.max_context = 0xffffffffu; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.max_draft_len = AUSPEX_MAX_DRAFT_LEN + 1; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.cache_type = static_cast<auspex_cache_type>(77); }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.compile_threads = 0; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.compile_threads = 257; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.background_threads = 17; }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.tuning = static_cast<auspex_tuning>(2); }},
             {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_engine_desc& d) { d.draft_weights = static_cast<auspex_weight_type>(77); }}}) {
        Log log;
        auspex_engine_desc desc = pair_desc(&log);
        one.change(desc);
        auspex_engine* engine = sentinel;
        EXPECT_EQ(auspex_engine_create(&desc, &engine), one.status) << (log.errors.empty() ? "" : log.errors[0]);
        EXPECT_EQ(engine, nullptr);
        EXPECT_EQ(log.errors.size(), one.told ? 1u : 0u);
    }
    auspex_engine* engine = sentinel;
    EXPECT_EQ(auspex_engine_create(nullptr, &engine), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(engine, nullptr);
    const auspex_engine_desc desc = pair_desc(nullptr);
    EXPECT_EQ(auspex_engine_create(&desc, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    auspex_engine_destroy(nullptr);
}

// A caller compiled against an older header, whose desc ended after max_sequences.
TEST(CApiEngine, ShorterDescriptionsMeanTheDefaults) {
    auspex_engine_desc desc;
    const size_t size = offsetof(auspex_engine_desc, max_context);
    std::memset(&desc, 0xff, sizeof desc);
    ASSERT_EQ(auspex_engine_desc_init(&desc, size), AUSPEX_OK);
    desc.target_path = AUSPEX_PAIR_DIR "/target";
    desc.draft_path = AUSPEX_PAIR_DIR "/draft";
    auspex_engine* engine = nullptr;
    ASSERT_EQ(auspex_engine_create(&desc, &engine), AUSPEX_OK);
    auspex_engine_info info;
    ASSERT_EQ(auspex_engine_info_init(&info, sizeof info), AUSPEX_OK);
    ASSERT_EQ(auspex_engine_get_info(engine, &info), AUSPEX_OK);
    EXPECT_EQ(info.max_sequences, 1u);
    EXPECT_EQ(info.max_draft_len, 8u);
    EXPECT_EQ(info.has_draft, 1u);
    EXPECT_EQ(info.draft_context, info.max_context);
    EXPECT_GE(info.prompt_rows, 16u);
    EXPECT_NE(info.device_name[0], '\0');
    EXPECT_NE(info.numerics_id[0], '\0');
    EXPECT_GT(info.target_weights_bytes, info.draft_weights_bytes);
    EXPECT_GT(info.device_memory_bytes, info.target_weights_bytes);

    // And an older info: only what it has is written.
    auspex_engine_info old;
    std::memset(&old, 0x5a, sizeof old);
    const size_t old_size = offsetof(auspex_engine_info, max_context);
    ASSERT_EQ(auspex_engine_info_init(&old, old_size), AUSPEX_OK);
    ASSERT_EQ(auspex_engine_get_info(engine, &old), AUSPEX_OK);
    EXPECT_EQ(old.vocab_size, info.vocab_size);
    EXPECT_EQ(old.max_context, 0x5a5a5a5au);
    EXPECT_EQ(old.header.size, old_size);
    auspex_engine_destroy(engine);
}

TEST_F(CApiTest, NullArgumentsAreRefused) {
    auspex_sequence sequence = {0};
    const auspex_sequence_desc desc = prompt("A", 1);
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    size_t count = 77;
    char text[8];
    uint32_t ids[8];
    auspex_token tokens[8];
    const auspex_status bad = AUSPEX_ERROR_INVALID_ARGUMENT;
    EXPECT_EQ(auspex_engine_step(nullptr, 0, nullptr), bad);
    EXPECT_EQ(auspex_engine_wait(nullptr, 0), bad);
    EXPECT_EQ(auspex_engine_get_info(nullptr, nullptr), bad);
    EXPECT_EQ(auspex_engine_tokenize(nullptr, "a", 1, 0, ids, 8, &count), bad);
    EXPECT_EQ(auspex_engine_prepare(nullptr, &desc), bad);
    EXPECT_EQ(auspex_sequence_create(nullptr, &desc, &sequence), bad);
    EXPECT_EQ(auspex_sequence_fork(nullptr, sequence, &desc, &sequence), bad);
    EXPECT_EQ(auspex_sequence_destroy(nullptr, sequence), bad);
    EXPECT_EQ(auspex_sequence_cancel(nullptr, sequence), bad);
    EXPECT_EQ(auspex_sequence_set_draft_len(nullptr, sequence, 1), bad);
    EXPECT_EQ(auspex_sequence_read_tokens(nullptr, sequence, tokens, 8, &count), bad);
    EXPECT_EQ(auspex_sequence_read_text(nullptr, sequence, text, 8, &count), bad);
    EXPECT_EQ(auspex_sequence_get_prompt(nullptr, sequence, ids, 8, &count), bad);
    EXPECT_EQ(auspex_sequence_get_stats(nullptr, sequence, &stats), bad);
    EXPECT_TRUE(log_.errors.empty());

    expect_refused(auspex_engine_get_info(engine_, nullptr));
    expect_refused(auspex_engine_tokenize(engine_, nullptr, 1, 0, ids, 8, &count));
    expect_refused(auspex_engine_tokenize(engine_, "a", 1, 0, nullptr, 8, &count));
    expect_refused(auspex_engine_tokenize(engine_, "a", 1, 0, ids, 8, nullptr));
    expect_refused(auspex_engine_prepare(engine_, nullptr));
    expect_refused(auspex_sequence_create(engine_, nullptr, &sequence));
    expect_refused(auspex_sequence_create(engine_, &desc, nullptr));
    const auspex_sequence live = create(desc);
    expect_refused(auspex_sequence_fork(engine_, live, nullptr, &sequence));
    expect_refused(auspex_sequence_fork(engine_, live, &desc, nullptr));
    expect_refused(auspex_sequence_read_tokens(engine_, live, nullptr, 1, &count));
    expect_refused(auspex_sequence_read_tokens(engine_, live, tokens, 1, nullptr));
    expect_refused(auspex_sequence_read_text(engine_, live, nullptr, 1, &count));
    expect_refused(auspex_sequence_read_text(engine_, live, text, 1, nullptr));
    expect_refused(auspex_sequence_get_prompt(engine_, live, nullptr, 1, &count));
    expect_refused(auspex_sequence_get_prompt(engine_, live, ids, 1, nullptr));
    expect_refused(auspex_sequence_get_stats(engine_, live, nullptr));
    EXPECT_EQ(count, 77u);
    EXPECT_EQ(sequence.id, 0u);
    // Nothing to write to, nothing to write: fine.
    EXPECT_EQ(auspex_sequence_read_text(engine_, live, nullptr, 0, &count), AUSPEX_OK);
    EXPECT_EQ(auspex_sequence_read_tokens(engine_, live, nullptr, 0, &count), AUSPEX_OK);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(auspex_sequence_destroy(engine_, live), AUSPEX_OK);
}

TEST_F(CApiTest, StructsOfTheWrongTypeAreRefusedBeforeAnythingIsDone) {
    const auspex_sequence sequence = create(prompt("Once", 5));
    auspex_sequence_stats wrong;
    auspex_sequence_stats_init(&wrong, sizeof wrong);
    expect_refused(auspex_engine_step(engine_, 0, reinterpret_cast<auspex_step_result*>(&wrong)));
    auspex_step_result result;
    auspex_step_result_init(&result, sizeof result);
    expect_refused(auspex_sequence_get_stats(engine_, sequence, reinterpret_cast<auspex_sequence_stats*>(&result)));
    expect_refused(auspex_engine_get_info(engine_, reinterpret_cast<auspex_engine_info*>(&result)));
    auspex_sequence other = {55};
    expect_refused(auspex_sequence_create(engine_, reinterpret_cast<auspex_sequence_desc*>(&result), &other));
    EXPECT_EQ(other.id, 55u);
    // The refused step did nothing: the prompt is still unread.
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    EXPECT_EQ(auspex_sequence_get_stats(engine_, sequence, &stats), AUSPEX_OK);
    EXPECT_LT(stats.prompt_ms, 0.0);
    EXPECT_EQ(auspex_engine_step(engine_, 0, &result), AUSPEX_PENDING);
    EXPECT_EQ(result.n_active, 1u);
    EXPECT_EQ(result.header.size, sizeof result);
    finish();
    EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
}

TEST_F(CApiTest, PreparingNeedsNoPromptAndChecksTheRest) {
    auspex_sequence_desc desc;
    auspex_sequence_desc_init(&desc, sizeof desc);
    desc.draft_len = 1;
    EXPECT_EQ(auspex_engine_prepare(engine_, &desc), AUSPEX_OK);
    desc.draft_len = AUSPEX_MAX_DRAFT_LEN + 1;
    expect_refused(auspex_engine_prepare(engine_, &desc));
    desc.draft_len = 1;
    desc.drafter = AUSPEX_DRAFTER_HOST; // without a callback
    expect_refused(auspex_engine_prepare(engine_, &desc));
}

TEST_F(CApiTest, SequencesThatAreGoneStayGone) {
    const auspex_sequence gone = create(prompt("Once", 3));
    ASSERT_EQ(auspex_sequence_destroy(engine_, gone), AUSPEX_OK);
    const auspex_sequence live = create(prompt("Once", 3)); // takes the slot, not the id
    EXPECT_NE(live.id, gone.id);
    const auspex_sequence_desc fork_desc = [] {
        auspex_sequence_desc desc;
        auspex_sequence_desc_init(&desc, sizeof desc);
        return desc;
    }();
    for (auspex_sequence stale : {gone, auspex_sequence{0}, auspex_sequence{live.id + 1000}, auspex_sequence{~0ull}}) {
        size_t count = 77;
        char text[8];
        uint32_t ids[8];
        auspex_token tokens[8];
        auspex_sequence_stats stats;
        auspex_sequence_stats_init(&stats, sizeof stats);
        auspex_sequence other = {55};
        expect_refused(auspex_sequence_destroy(engine_, stale));
        expect_refused(auspex_sequence_cancel(engine_, stale));
        expect_refused(auspex_sequence_set_draft_len(engine_, stale, 2));
        expect_refused(auspex_sequence_read_tokens(engine_, stale, tokens, 8, &count));
        expect_refused(auspex_sequence_read_text(engine_, stale, text, 8, &count));
        expect_refused(auspex_sequence_get_prompt(engine_, stale, ids, 8, &count));
        expect_refused(auspex_sequence_get_stats(engine_, stale, &stats));
        expect_refused(auspex_sequence_fork(engine_, stale, &fork_desc, &other));
        EXPECT_EQ(count, 77u);
        EXPECT_EQ(other.id, 55u);
        EXPECT_EQ(stats.predicted_n, 0u);
    }
    finish();
    EXPECT_EQ(tokens_of(live).size(), 3u);
    EXPECT_EQ(auspex_sequence_destroy(engine_, live), AUSPEX_OK);
}

TEST_F(CApiTest, WrongRequestsAreRefusedAndTakeNoSlot) {
    uint32_t high[] = {1, 0xffffffffu};
    std::vector<uint32_t> long_prompt(256, 5);
    struct Case {
        auspex_status status;
        std::function<void(auspex_sequence_desc&)> change;
    };
    const auspex_token_bias twice[] = {{5, 1}, {5, 1}}, outside[] = {{0x7fffffff, 1}};
    const char* const no_text[] = {nullptr};
    const char* const empty_text[] = {""};
    const std::vector<Case> cases = {
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.prompt_text_bytes = 0; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.prompt_text = nullptr; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [&](auspex_sequence_desc& d) { d.prompt_tokens = high; }}, // none of them
        {AUSPEX_ERROR_INVALID_ARGUMENT, [&](auspex_sequence_desc& d) { d.prompt_tokens = high, d.prompt_token_count = 2; }},
        {AUSPEX_ERROR_CAPACITY, [&](auspex_sequence_desc& d) { d.prompt_tokens = long_prompt.data(), d.prompt_token_count = 256; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.temperature = -1; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.temperature = NAN; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.temperature = INFINITY; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.draft_len = 9; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.draft_len = 0xfffffffeu; }}, // one more is AUTO
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.drafter = static_cast<auspex_drafter>(8); }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.drafter = AUSPEX_DRAFTER_HOST; }}, // and no callback
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.acceptance = static_cast<auspex_acceptance>(2); }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.lenience = 0; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.lenience = 1.01f; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.lenience = 0.9f, d.temperature = 1, d.acceptance = AUSPEX_ACCEPT_COUPLED; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.ngram_max = 1; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.ngram_max = 17; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.repeat_penalty = 0; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.presence_penalty = NAN; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.frequency_penalty = 101; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.top_p = 1.5f; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.min_p = -0.1f; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [](auspex_sequence_desc& d) { d.bias_count = 1; }}, // and no biases
        {AUSPEX_ERROR_INVALID_ARGUMENT, [&](auspex_sequence_desc& d) { d.biases = twice, d.bias_count = 2; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [&](auspex_sequence_desc& d) { d.biases = outside, d.bias_count = 1; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [&](auspex_sequence_desc& d) { d.stop_texts = no_text, d.stop_text_count = 1; }},
        {AUSPEX_ERROR_INVALID_ARGUMENT, [&](auspex_sequence_desc& d) { d.stop_texts = empty_text, d.stop_text_count = 1; }},
    };
    for (size_t i = 0; i < cases.size(); ++i) {
        auspex_sequence_desc desc = prompt("Once", 3);
        cases[i].change(desc);
        auspex_sequence sequence = {55};
        SCOPED_TRACE(i);
        expect_refused(auspex_sequence_create(engine_, &desc, &sequence), cases[i].status);
        EXPECT_EQ(sequence.id, 55u);
    }
    // All three slots are free; a fourth sequence is one too many.
    std::vector<auspex_sequence> all;
    for (int i = 0; i < 3; ++i) all.push_back(create(prompt("Once", 3)));
    const auspex_sequence_desc desc = prompt("Once", 3);
    auspex_sequence sequence = {55};
    expect_refused(auspex_sequence_create(engine_, &desc, &sequence), AUSPEX_ERROR_CAPACITY);
    expect_refused(auspex_sequence_set_draft_len(engine_, all[0], 9));
    for (auspex_sequence one : all) EXPECT_EQ(auspex_sequence_destroy(engine_, one), AUSPEX_OK);
    // A fork has no prompt of its own.
    const auspex_sequence source = create(prompt("Once", 3));
    expect_refused(auspex_sequence_fork(engine_, source, &desc, &sequence));
    auspex_sequence_desc by_tokens;
    auspex_sequence_desc_init(&by_tokens, sizeof by_tokens);
    by_tokens.prompt_tokens = high;
    expect_refused(auspex_sequence_fork(engine_, source, &by_tokens, &sequence));
    EXPECT_EQ(sequence.id, 55u);
    EXPECT_EQ(auspex_sequence_destroy(engine_, source), AUSPEX_OK);
    finish();
}

TEST_F(CApiTest, EverythingIsCopied) {
    const std::vector<auspex_token> expected = [&] {
        const auspex_sequence sequence = create(prompt("The cat sat", 20));
        finish();
        const std::vector<auspex_token> tokens = tokens_of(sequence);
        auspex_sequence_destroy(engine_, sequence);
        return tokens;
    }();
    ASSERT_EQ(expected.size(), 20u);
    std::string text = "The cat sat";
    auspex_sequence_desc desc = prompt(text.c_str(), 20);
    const auspex_sequence sequence = create(desc);
    text.assign(text.size(), 'x');
    std::memset(&desc, 0xff, sizeof desc);
    finish();
    const std::vector<auspex_token> tokens = tokens_of(sequence);
    ASSERT_EQ(tokens.size(), expected.size());
    for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i].id, expected[i].id);
    EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
}

TEST_F(CApiTest, TokensThatDoNotFitAreCounted) {
    const std::string text = "One day, a girl named Lily went to the park.";
    size_t count = 0, again = 0;
    ASSERT_EQ(auspex_engine_tokenize(engine_, text.data(), text.size(), 1, nullptr, 0, &count), AUSPEX_OK);
    ASSERT_GT(count, 5u);
    std::vector<uint32_t> ids(count), few(3, 0x5a5a5a5a);
    ASSERT_EQ(auspex_engine_tokenize(engine_, text.data(), text.size(), 1, ids.data(), count, &again), AUSPEX_OK);
    EXPECT_EQ(again, count);
    EXPECT_EQ(auspex_engine_tokenize(engine_, text.data(), text.size(), 1, few.data(), 2, &again), AUSPEX_ERROR_CAPACITY);
    EXPECT_EQ(again, count);
    EXPECT_EQ(few, (std::vector<uint32_t>{ids[0], ids[1], 0x5a5a5a5a}));
    const auspex_sequence sequence = create(prompt(text.c_str(), 1));
    EXPECT_EQ(auspex_sequence_get_prompt(engine_, sequence, nullptr, 0, &again), AUSPEX_OK);
    EXPECT_EQ(again, count);
    std::vector<uint32_t> read(count);
    EXPECT_EQ(auspex_sequence_get_prompt(engine_, sequence, read.data(), count - 1, &again), AUSPEX_ERROR_CAPACITY);
    EXPECT_EQ(auspex_sequence_get_prompt(engine_, sequence, read.data(), count, &again), AUSPEX_OK);
    EXPECT_EQ(read, ids);
    EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
    EXPECT_EQ(auspex_engine_tokenize(engine_, nullptr, 0, 0, nullptr, 0, &again), AUSPEX_OK);
    EXPECT_EQ(again, 0u);
}

// Bytes of the whole characters `text` consists of; 0 when it is cut in the middle of one.
bool is_whole(const std::string& text) {
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const size_t n = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
        if (n == 0 || i + n > text.size()) return false;
        for (size_t k = 1; k < n; ++k)
            if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
        i += n;
    }
    return true;
}

// At a high temperature tokens are nearly uniform, byte tokens among them: broken characters become U+FFFD, 3 bytes each.
TEST_F(CApiTest, TextInSmallPiecesNeverSplitsACharacter) {
    auspex_sequence_desc desc = prompt("Once", 150, 50.0f, 12);
    desc.drafter = AUSPEX_DRAFTER_MODEL; // by rejection a seed has the same text only with the same drafts
    desc.draft_len = 4;
    std::string whole;
    size_t told = 0;
    for (size_t capacity : {4096u, 1u, 2u, 3u, 4u, 5u, 7u}) {
        const auspex_sequence sequence = create(desc);
        std::string text;
        size_t room = capacity;
        for (;;) {
            const auspex_status status = auspex_engine_step(engine_, 0, nullptr);
            ASSERT_GE(status, 0);
            for (;;) {
                std::vector<char> piece(room + 1, '\x5a');
                size_t bytes = 0;
                ASSERT_EQ(auspex_sequence_read_text(engine_, sequence, piece.data(), room, &bytes), AUSPEX_OK);
                ASSERT_LE(bytes, room);
                ASSERT_EQ(piece[room], '\x5a');
                const std::string read(piece.data(), bytes);
                ASSERT_TRUE(is_whole(read)) << "split after " << text.size() << " bytes";
                text += read;
                if (bytes > 0) room = capacity;
                else if (room < 4) ++room; // the next character may need more
                else break;
            }
            room = capacity;
            if (status == AUSPEX_FINISHED) break;
            ASSERT_GE(auspex_engine_wait(engine_, 10'000), 0);
        }
        if (whole.empty()) {
            whole = text;
            for (const auspex_token& token : tokens_of(sequence)) told += token.text_bytes;
        }
        EXPECT_EQ(text, whole) << "in pieces of " << capacity;
        EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
    }
    EXPECT_NE(whole.find("\xef\xbf\xbd"), std::string::npos) << "nothing here could have been split";
    EXPECT_LE(told, whole.size()); // the end of the text may be nobody's: what was left of a character
    EXPECT_GE(told + 3, whole.size());
}

TEST_F(CApiTest, TokensComeOnceAndInOrder) {
    const auspex_sequence sequence = create(prompt("A dog", 30));
    std::vector<uint32_t> ids;
    for (;;) {
        const auspex_status status = auspex_engine_step(engine_, 0, nullptr);
        ASSERT_GE(status, 0);
        auspex_token token;
        size_t count = 1;
        while (count == 1) {
            ASSERT_EQ(auspex_sequence_read_tokens(engine_, sequence, &token, 1, &count), AUSPEX_OK);
            if (count == 1) ids.push_back(token.id);
        }
        if (status == AUSPEX_FINISHED) break;
        ASSERT_GE(auspex_engine_wait(engine_, 10'000), 0);
    }
    EXPECT_EQ(ids.size(), 30u);
    const auspex_sequence again = create(prompt("A dog", 30));
    finish();
    const std::vector<auspex_token> tokens = tokens_of(again);
    ASSERT_EQ(tokens.size(), 30u);
    for (size_t i = 0; i < 30; ++i) EXPECT_EQ(tokens[i].id, ids[i]);
    EXPECT_TRUE(tokens_of(again).empty());
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    ASSERT_EQ(auspex_sequence_get_stats(engine_, again, &stats), AUSPEX_OK);
    EXPECT_EQ(stats.predicted_n, 30u);
    EXPECT_EQ(stats.stop_reason, AUSPEX_STOP_LENGTH);
    EXPECT_GT(stats.predicted_ms, 0.0);
    uint32_t accepted = 0, rounds = 0;
    for (uint32_t a = 0; a <= AUSPEX_MAX_DRAFT_LEN; ++a) {
        accepted += a * stats.accepted_histogram[a];
        rounds += stats.accepted_histogram[a];
    }
    EXPECT_EQ(accepted, stats.draft_n_accepted);
    EXPECT_EQ(rounds, stats.rounds);
    for (auspex_sequence one : {sequence, again}) EXPECT_EQ(auspex_sequence_destroy(engine_, one), AUSPEX_OK);
}

// The first round is queued while the prompt is read.
TEST_F(CApiTest, ReadingAPromptIsNoGeneration) {
    std::string text;
    for (int i = 0; i < 7; ++i) text += "The cat saw a dog. ";
    for (uint32_t draft_len : {0u, 3u}) {
        for (int is_warm = 0; is_warm < 2; ++is_warm) { // at first shaders are compiled
            text.insert(0, "A "); // so that nothing of it is in the prefix cache
            auspex_sequence_desc desc = prompt(text.c_str(), 2);
            desc.draft_len = draft_len;
            const auspex_sequence sequence = create(desc);
            finish();
            auspex_sequence_stats stats;
            auspex_sequence_stats_init(&stats, sizeof stats);
            ASSERT_EQ(auspex_sequence_get_stats(engine_, sequence, &stats), AUSPEX_OK);
            EXPECT_GT(stats.prompt_n, 40u);
            EXPECT_LE(stats.prompt_n, 64u) << "in one piece";
            EXPECT_GE(stats.first_token_ms, stats.prompt_ms);
            if (is_warm) {
                EXPECT_GT(stats.prompt_ms, 0.5 * stats.first_token_ms) << draft_len;
            }
            EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
        }
    }
}

TEST_F(CApiTest, AnErrorLeavesARunningSequenceAsItWas) {
    auto run = [&](bool with_errors) {
        auspex_sequence_desc desc = prompt("The bird", 40, 0.8f, 21);
        desc.draft_len = 3; // with an automatic one a seed's text depends on time
        const auspex_sequence sequence = create(desc);
        for (;;) {
            const auspex_status status = auspex_engine_step(engine_, 0, nullptr);
            EXPECT_GE(status, 0);
            if (status == AUSPEX_FINISHED) break;
            if (with_errors) {
                auspex_sequence other = {0};
                size_t count;
                auspex_sequence_desc bad = prompt("x", 1);
                bad.temperature = -1;
                EXPECT_LT(auspex_sequence_create(engine_, &bad, &other), 0);
                EXPECT_LT(auspex_sequence_fork(engine_, sequence, &bad, &other), 0);
                EXPECT_LT(auspex_sequence_set_draft_len(engine_, sequence, 99), 0);
                EXPECT_LT(auspex_sequence_destroy(engine_, {~0ull}), 0);
                EXPECT_LT(auspex_sequence_read_text(engine_, sequence, nullptr, 5, &count), 0);
                EXPECT_LT(auspex_engine_step(engine_, 0, reinterpret_cast<auspex_step_result*>(&bad)), 0);
            }
            EXPECT_GE(auspex_engine_wait(engine_, 10'000), 0);
        }
        std::vector<uint32_t> ids;
        for (const auspex_token& token : tokens_of(sequence)) ids.push_back(token.id);
        EXPECT_EQ(ids.size(), 40u);
        EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
        return ids;
    };
    EXPECT_EQ(run(true), run(false));
}

TEST_F(CApiTest, WaitHonoursItsTimeout) {
    EXPECT_EQ(auspex_engine_wait(engine_, 0), AUSPEX_OK); // nothing under way
    const auspex_sequence sequence = create(prompt("Once", 100));
    ASSERT_EQ(auspex_engine_step(engine_, 0, nullptr), AUSPEX_PENDING);
    const auspex_status status = auspex_engine_wait(engine_, 0);
    EXPECT_TRUE(status == AUSPEX_OK || status == AUSPEX_PENDING);
    EXPECT_EQ(auspex_sequence_cancel(engine_, sequence), AUSPEX_OK);
    finish();
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    EXPECT_EQ(auspex_sequence_get_stats(engine_, sequence, &stats), AUSPEX_OK);
    EXPECT_EQ(stats.stop_reason, AUSPEX_STOP_CANCELLED);
    EXPECT_EQ(auspex_sequence_destroy(engine_, sequence), AUSPEX_OK);
}

} // namespace
} // namespace c_api_test
