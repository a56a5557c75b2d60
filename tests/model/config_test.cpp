// config.json and generation_config.json: what is read, what absent keys mean, and that every wrong value is refused in
// one line that names the file and the key.
#include "model/file_fixtures.h"
#include "model/llama_config.h"

#include <cmath>
#include <limits>

namespace auspex::config_test {
namespace {

using namespace test;

Result<LlamaConfig> read(const std::string& text) {
    TempFolder folder;
    folder.write("config.json", text);
    return read_llama_config(folder.path());
}

TEST(LlamaConfig, reads_the_bundled_pair) {
    const auto target = read_llama_config(AUSPEX_PAIR_DIR "/target");
    const auto draft = read_llama_config(AUSPEX_PAIR_DIR "/draft");
    ASSERT_TRUE(target.ok()) << target.status().message();
    ASSERT_TRUE(draft.ok()) << draft.status().message();
    const LlamaConfig& c = target.value();
    EXPECT_EQ(c.hidden_size, 256u);
    EXPECT_EQ(c.n_layers, 8u);
    EXPECT_EQ(c.n_heads, 4u);
    EXPECT_EQ(c.n_kv_heads, 2u);
    EXPECT_EQ(c.head_dim, 64u);
    EXPECT_EQ(c.ffn_size, 768u);
    EXPECT_EQ(c.vocab_size, 4096u);
    EXPECT_EQ(c.max_position, 1024u);
    EXPECT_EQ(c.rms_eps, 1e-5f);
    EXPECT_EQ(c.rope_theta, 10000.0f);
    EXPECT_TRUE(c.tied_embedding);
    EXPECT_EQ(c.bos_id, 1u);
    EXPECT_EQ(c.eos_ids, std::vector<uint32_t>{2});
    EXPECT_EQ(c.n_parameters(), 7344384u);
    EXPECT_EQ(draft.value().n_parameters(), 918144u);
}

TEST(LlamaConfig, absent_keys_have_the_defaults_of_transformers) {
    const auto config = read(R"({"model_type": "llama", "hidden_size": 128, "intermediate_size": 12, "vocab_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 64})");
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().head_dim, 32u);
    EXPECT_EQ(config.value().n_kv_heads, 4u);
    EXPECT_EQ(config.value().rope_theta, 10000.0f);
    EXPECT_EQ(config.value().rms_eps, 1e-6f);
    EXPECT_FALSE(config.value().tied_embedding);
    EXPECT_EQ(config.value().bos_id, 1u);
    EXPECT_EQ(config.value().eos_ids, std::vector<uint32_t>{2});
}

TEST(LlamaConfig, null_means_absent_except_that_null_eos_means_none) {
    const auto config = read(with(with(tiny_config(), R"("rope_theta": 10000.0)", R"("rope_theta": null)"),
                                  R"("eos_token_id": 2)", R"("eos_token_id": null)"));
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().rope_theta, 10000.0f);
    EXPECT_TRUE(config.value().eos_ids.empty());
}

TEST(LlamaConfig, end_tokens_are_the_union_of_both_files) {
    TempFolder folder;
    folder.write("config.json", with(tiny_config(), R"("eos_token_id": 2)", R"("eos_token_id": 9)"));
    folder.write("generation_config.json", R"({"eos_token_id": [3, 9, 2], "temperature": 0.6})");
    const auto config = read_llama_config(folder.path());
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().eos_ids, (std::vector<uint32_t>{2, 3, 9}));
}

TEST(LlamaConfig, reads_the_rope_object_of_newer_transformers) {
    const auto plain = read(with(tiny_config(), R"("rope_theta": 10000.0)",
                                 R"("rope_parameters": {"rope_type": "default", "rope_theta": 500000})"));
    ASSERT_TRUE(plain.ok()) << plain.status().message();
    EXPECT_EQ(plain.value().rope_theta, 500000.0f);
}

// The spellings that transformers 4 and 5 write; theta and scaling replace the two keys of tiny_config().
const char llama3_fields[] = R"("factor": 8.0, "low_freq_factor": 1, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192)";
std::string rope_config(const std::string& theta_key, const std::string& scaling_key) {
    return with(with(tiny_config(), R"("rope_theta": 10000.0,)", theta_key + (theta_key.empty() ? "" : ",")),
                R"("rope_scaling": null)", scaling_key);
}

TEST(LlamaConfig, reads_every_spelling_of_rope) {
    const std::string llama3 = llama3_fields;
    const RopeScaling none, linear = {RopeScaling::Kind::linear, 2.5f}, meta = {RopeScaling::Kind::llama3, 8.0f, 1.0f, 4.0f, 8192};
    const struct {
        std::string theta, scaling;
        float expected_theta;
        RopeScaling expected;
    } cases[] = {
        {"", R"("x": 0)", 10000.0f, none},
        {R"("rope_theta": 500000)", R"("rope_scaling": null)", 500000.0f, none},
        {R"("rope_theta": 500000)", R"("rope_scaling": {})", 500000.0f, none},
        {R"("rope_theta": 500000)", R"("rope_scaling": {"type": "default"})", 500000.0f, none},
        {R"("rope_theta": 500000.0)", R"("rope_scaling": {"rope_type": "llama3", )" + llama3 + "}", 500000.0f, meta},
        {R"("rope_theta": 500000.0)", R"("rope_scaling": {"type": "llama3", )" + llama3 + "}", 500000.0f, meta},
        {"", R"("rope_scaling": {"type": "llama3", "rope_type": "llama3", )" + llama3 + "}", 10000.0f, meta},
        {"", R"("rope_scaling": {"type": "linear", "factor": 2.5})", 10000.0f, linear},
        {"", R"("rope_scaling": {"rope_type": "linear", "type": null, "factor": 2.5})", 10000.0f, linear},
        {"", R"("rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, )" + llama3 + "}", 500000.0f, meta},
        {R"("rope_theta": 5e5)", R"("rope_parameters": {"rope_type": "linear", "factor": 2.5})", 500000.0f, linear},
        {R"("rope_theta": 5e5)", R"("rope_parameters": {"rope_theta": 500000})", 500000.0f, none},
        {R"("rope_theta": 5e5)", R"("rope_parameters": {"rope_theta": 500000, "partial_rotary_factor": 1})", 500000.0f, none},
        {R"("rope_theta": 5e5)", R"("rope_scaling": {"type": "llama3", )" + llama3 +
         R"(}, "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, )" + llama3 + "}", 500000.0f, meta},
    };
    for (const auto& one : cases) {
        const auto config = read(rope_config(one.theta, one.scaling));
        ASSERT_TRUE(config.ok()) << one.scaling << ": " << config.status().message();
        EXPECT_EQ(config.value().rope_theta, one.expected_theta) << one.scaling;
        EXPECT_TRUE(config.value().rope_scaling == one.expected) << one.scaling;
        EXPECT_TRUE(config.value().rope_divisors.empty());
    }
}

TEST(LlamaConfig, refuses_rope_that_it_would_get_wrong) {
    const std::string llama3 = R"({"rope_type": "llama3", )" + std::string(llama3_fields) + "}";
    const auto changed = [&](const char* from, const char* to) { return R"("rope_scaling": )" + with(llama3, from, to); };
    const struct {
        std::string scaling;
        Code code;
        const char* in_message;
    } cases[] = {
        {R"("rope_scaling": {"type": "dynamic", "factor": 2.0})", Code::unsupported, "rope_scaling of kind \"dynamic\", expected"},
        {R"("rope_scaling": {"rope_type": "yarn", "factor": 2.0})", Code::unsupported, "\"yarn\""},
        {R"("rope_parameters": {"rope_type": "longrope"})", Code::unsupported, "rope_parameters of kind \"longrope\""},
        {R"("rope_parameters": {"factor": 2.0})", Code::unsupported, "no named kind"},
        {R"("rope_scaling": {"rope_type": 3})", Code::bad_file, "rope_scaling.rope_type 3"},
        {R"("rope_scaling": {"rope_type": "linear", "type": "llama3", "factor": 2.0})", Code::bad_file, "with type"},
        {R"("rope_scaling": "linear")", Code::bad_file, "rope_scaling the text \"linear\", expected an object"},
        {R"("rope_scaling": [])", Code::bad_file, "rope_scaling a list"},
        {R"("rope_parameters": {"full_attention": {"rope_type": "default"}})", Code::unsupported, "full_attention"},
        {R"("rope_scaling": {"type": "linear"})", Code::bad_file, "rope_scaling without factor, expected a number from 1.0"},
        {R"("rope_scaling": {"type": "linear", "factor": null})", Code::bad_file, "without factor"},
        {R"("rope_scaling": {"type": "linear", "factor": 0.5})", Code::bad_file, "rope_scaling.factor 0.5"},
        {R"("rope_scaling": {"type": "linear", "factor": "2"})", Code::bad_file, "rope_scaling.factor the text"},
        {R"("rope_scaling": {"type": "linear", "factor": 1e300})", Code::bad_file, "rope_scaling.factor 1e+300"},
        {R"("partial_rotary_factor": 0.5)", Code::unsupported, "partial_rotary_factor 0.5"},
        {R"("rope_parameters": {"partial_rotary_factor": 0.25})", Code::unsupported, "partial_rotary_factor 0.25"},
        {changed(R"("factor": 8.0)", R"("factor": 0)"), Code::bad_file, "rope_scaling.factor 0"},
        {changed(R"("low_freq_factor": 1,)", ""), Code::bad_file, "without low_freq_factor"},
        {changed(R"("low_freq_factor": 1,)", R"("low_freq_factor": 0,)"), Code::bad_file, "rope_scaling.low_freq_factor 0"},
        {changed(R"("low_freq_factor": 1,)", R"("low_freq_factor": 4,)"), Code::bad_file, "high_freq_factor 4.0, expected more than"},
        {changed(R"("low_freq_factor": 1,)", R"("low_freq_factor": -1,)"), Code::bad_file, "low_freq_factor -1"},
        {changed(R"("high_freq_factor": 4.0,)", ""), Code::bad_file, "without high_freq_factor"},
        {changed(R"("high_freq_factor": 4.0,)", R"("high_freq_factor": NaN,)"), Code::bad_file, "high_freq_factor"},
        {changed(": 8192", ": 8192.5"), Code::bad_file, "rope_scaling.original_max_position_embeddings 8192.5"},
        {changed(": 8192", ": 0"), Code::bad_file, "original_max_position_embeddings 0"},
        {changed(": 8192", ": null"), Code::bad_file, "original_max_position_embeddings null"},
        {R"("rope_scaling": )" + llama3 + R"(, "rope_parameters": {"rope_type": "default"})", Code::bad_file,
         "rope_parameters and rope_scaling with different scalings"},
        {R"("rope_scaling": )" + llama3 + R"(, "rope_parameters": )" + with(llama3, "8.0", "32.0"), Code::bad_file, "different scalings"},
        {R"("rope_parameters": {"rope_theta": 500000})", Code::bad_file, "rope_parameters and rope_theta with different rope_theta"},
    };
    for (const auto& one : cases) {
        const auto config = read(rope_config(R"("rope_theta": 10000.0)", one.scaling));
        ASSERT_FALSE(config.ok()) << one.scaling;
        expect_refused(config.status(), one.code, "/config.json", one.scaling);
        EXPECT_NE(config.status().message().find(one.in_message), std::string::npos)
            << one.in_message << " in: " << config.status().message();
    }
}

struct Wrong {
    const char* from; // part of tiny_config()
    const char* to;
    Code code;
    const char* in_message; // the key, or what was found
};

const Wrong wrong_values[] = {
    {R"("hidden_size": 8)", R"("hidden_size": NaN)", Code::bad_file, "hidden_size"},
    {R"("hidden_size": 8)", R"("hidden_size": -8)", Code::bad_file, "hidden_size -8, expected an integer from 1"},
    {R"("hidden_size": 8)", R"("hidden_size": 8.5)", Code::bad_file, "hidden_size 8.5, expected"},
    {R"("hidden_size": 8)", R"("hidden_size": 8.0)", Code::bad_file, "hidden_size 8.0"},
    {R"("hidden_size": 8)", R"("hidden_size": "8")", Code::bad_file, "hidden_size the text \"8\""},
    {R"("hidden_size": 8)", R"("hidden_size": 0)", Code::bad_file, "hidden_size 0"},
    {R"("hidden_size": 8)", R"("hidden_size": 65537)", Code::bad_file, "65537, expected an integer from 1 to 65536"},
    {R"("hidden_size": 8)", R"("hidden_size": 18446744073709551624)", Code::bad_file, "hidden_size"},
    {R"("hidden_size": 8)", R"("hidden_size": 4294967304)", Code::bad_file, "hidden_size 4294967304"},
    {R"("hidden_size": 8)", R"("hidden_size": 1e999)", Code::bad_file, "hidden_size"},
    {R"("hidden_size": 8)", R"("hidden_size": true)", Code::bad_file, "hidden_size true"},
    {R"("hidden_size": 8)", R"("hidden_size": [8])", Code::bad_file, "hidden_size a list"},
    {R"("hidden_size": 8)", R"("hidden_size": null)", Code::bad_file, "no hidden_size"},
    {R"("hidden_size": 8,)", "", Code::bad_file, "no hidden_size"},
    {R"("hidden_size": 8)", R"("hidden_size": 8, "hidden_size": 16)", Code::bad_file, "\"hidden_size\" twice"},
    {R"("num_hidden_layers": 1)", R"("num_hidden_layers": 1025)", Code::bad_file, "num_hidden_layers 1025"},
    {R"("num_attention_heads": 2)", R"("num_attention_heads": 0)", Code::bad_file, "num_attention_heads 0"},
    {R"("num_key_value_heads": 1)", R"("num_key_value_heads": 0)", Code::bad_file, "num_key_value_heads 0"},
    {R"("num_key_value_heads": 1)", R"("num_key_value_heads": 3)", Code::bad_file, "num_attention_heads 2 with"},
    {R"("head_dim": 32)", R"("head_dim": 80)", Code::unsupported, "head_dim 80, expected 32, 64 or 128"},
    {R"("head_dim": 32,)", R"("x": 0,)", Code::unsupported, "head_dim 4"},
    {"2,\n  \"num_key_value_heads\": 1,\n  \"head_dim\": 32,", "3,", Code::bad_file, "no head_dim"},
    {R"("intermediate_size": 12)", R"("intermediate_size": 1e3)", Code::bad_file, "intermediate_size 1000.0"},
    {R"("vocab_size": 16)", R"("vocab_size": 1048577)", Code::bad_file, "vocab_size 1048577"},
    {R"("max_position_embeddings": 64)", R"("max_position_embeddings": 0)", Code::bad_file, "max_position_embeddings"},
    {R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": NaN)", Code::bad_file, "rms_norm_eps"},
    {R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": Infinity)", Code::bad_file, "rms_norm_eps"},
    {R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": 0)", Code::bad_file,
     "rms_norm_eps 0, expected a number from 1e-12 to 0.1"},
    {R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": -1e-5)", Code::bad_file, "rms_norm_eps -1e-05"},
    {R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": "1e-5")", Code::bad_file, "rms_norm_eps the text"},
    {R"("rope_theta": 10000.0)", R"("rope_theta": 1e300)", Code::bad_file, "rope_theta 1e+300"},
    {R"("rope_theta": 10000.0)", R"("rope_theta": 0.5)", Code::bad_file, "rope_theta 0.5"},
    {R"("rope_scaling": null)", R"("rope_scaling": {"factor": 2.0})", Code::unsupported, "no named kind"},
    {R"("rope_scaling": null)", R"("rope_parameters": {"rope_type": "yarn"})", Code::unsupported, "\"yarn\""},
    {R"("rope_scaling": null)", R"("rope_parameters": 7)", Code::bad_file, "rope_parameters 7"},
    {R"("hidden_act": "silu")", R"("hidden_act": "gelu")", Code::unsupported, "hidden_act \"gelu\""},
    {R"("hidden_act": "silu")", R"("hidden_act": 3)", Code::bad_file, "hidden_act 3"},
    {R"("attention_bias": false)", R"("attention_bias": true)", Code::unsupported, "attention_bias true"},
    {R"("mlp_bias": false)", R"("mlp_bias": true)", Code::unsupported, "mlp_bias true"},
    {R"("mlp_bias": false)", R"("mlp_bias": 0)", Code::bad_file, "mlp_bias 0, expected true or false"},
    {R"("tie_word_embeddings": false)", R"("tie_word_embeddings": "no")", Code::bad_file, "tie_word_embeddings"},
    {R"(["LlamaForCausalLM"])", R"(["MistralForCausalLM"])", Code::unsupported, "\"MistralForCausalLM\""},
    {R"(["LlamaForCausalLM"])", R"([])", Code::bad_file, "architectures a list"},
    {R"(["LlamaForCausalLM"])", R"([17])", Code::bad_file, "architectures 17"},
    {R"("model_type": "llama")", R"("model_type": "qwen2")", Code::unsupported, "\"qwen2\""},
    {R"("model_type": "llama")", R"("model_type": "evil\nline\u001b[31m")", Code::unsupported,
     "evil\\x0aline\\x1b[31m"},
    {R"("bos_token_id": 1)", R"("bos_token_id": 16)", Code::bad_file,
     "bos_token_id 16, expected an integer from 0 to 15"},
    {R"("bos_token_id": 1)", R"("bos_token_id": -1)", Code::bad_file, "bos_token_id -1"},
    {R"("eos_token_id": 2)", R"("eos_token_id": [2, "x"])", Code::bad_file, "eos_token_id the text"},
    {R"("eos_token_id": 2)", R"("eos_token_id": [2, 16])", Code::bad_file, "eos_token_id 16"},
    {R"("eos_token_id": 2)", R"("eos_token_id": {})", Code::bad_file, "eos_token_id an object"},
    {R"("torch_dtype": "bfloat16")", R"("quantization_config": {"quant_method": "gptq"})", Code::unsupported,
     "\"gptq\""},
    {R"("torch_dtype": "bfloat16")", R"("torch_dtype": "bfloat16",)", Code::bad_file, "expected JSON"},
};

TEST(LlamaConfig, refuses_every_wrong_value_by_name) {
    for (const Wrong& wrong : wrong_values) {
        TempFolder folder;
        folder.write("config.json", with(tiny_config(), wrong.from, wrong.to));
        const auto config = read_llama_config(folder.path());
        ASSERT_FALSE(config.ok()) << wrong.to;
        expect_refused(config.status(), wrong.code, folder.file("config.json"), wrong.to);
        EXPECT_NE(config.status().message().find(wrong.in_message), std::string::npos)
            << wrong.in_message << " in: " << config.status().message();
    }
}

TEST(LlamaConfig, refuses_what_is_no_config_at_all) {
    const std::string texts[] = {"",
                                 " ",
                                 "{",
                                 "{}",
                                 "[]",
                                 "7",
                                 "null",
                                 "\"text\"",
                                 std::string(1, '\0'),
                                 "\xff\xfe{",
                                 "{\"a\":\xc3\x28}",
                                 tiny_config() + "}",
                                 tiny_config() + std::string(2, '\0'),
                                 std::string(100000, '['),
                                 "{\"a\":" + std::string(65, '[') + std::string(65, ']') + "}",
                                 std::string(100000, '{'),
                                 "{\"architectures\": [\"LlamaForCausalLM\"]}"};
    for (const std::string& text : texts) {
        TempFolder folder;
        folder.write("config.json", text);
        const auto config = read_llama_config(folder.path());
        ASSERT_FALSE(config.ok());
        expect_refused(config.status(), Code::bad_file, folder.file("config.json"), text.substr(0, 40));
    }
    // Nested as deep as allowed and one deeper, in a key that nobody reads.
    const auto nested = [](size_t depth) {
        return with(tiny_config(), R"("torch_dtype": "bfloat16")",
                    "\"x\": " + std::string(depth - 1, '[') + std::string(depth - 1, ']'));
    };
    EXPECT_TRUE(read(nested(64)).ok());
    EXPECT_NE(read(nested(65)).status().message().find("nested deeper than 64"), std::string::npos);
}

TEST(LlamaConfig, refuses_missing_files_folders_and_giants) {
    TempFolder folder;
    expect_refused(read_llama_config(folder.path()).status(), Code::not_found, folder.file("config.json"), "missing");
    std::filesystem::create_directory(folder.file("config.json"));
    expect_refused(read_llama_config(folder.path()).status(), Code::not_found, folder.file("config.json"), "a folder");
    std::filesystem::remove(folder.file("config.json"));
    folder.write("config.json", std::string((1u << 20) + 1, ' '));
    expect_refused(read_llama_config(folder.path()).status(), Code::bad_file, folder.file("config.json"), "too large");
}

TEST(LlamaConfig, refuses_a_wrong_generation_config_by_its_own_name) {
    for (const char* text :
         {"", "[", "[1]", R"({"eos_token_id": 16})", R"({"eos_token_id": -1})", R"({"eos_token_id": NaN})"}) {
        TempFolder folder;
        folder.write("config.json", tiny_config());
        folder.write("generation_config.json", text);
        expect_refused(read_llama_config(folder.path()).status(), Code::bad_file, folder.file("generation_config.json"),
                       text);
    }
}

TEST(LlamaConfig, checks_configs_made_in_memory_alike) {
    const LlamaConfig good = read(tiny_config()).value();
    EXPECT_TRUE(check_llama_config(good, "here").ok());
    const auto refused = [&](auto change, Code code) {
        LlamaConfig config = good;
        change(config);
        expect_refused(check_llama_config(config, "here"), code, "here: found ", "in memory");
    };
    refused([](LlamaConfig& c) { c.rms_eps = std::numeric_limits<float>::quiet_NaN(); }, Code::bad_file);
    refused([](LlamaConfig& c) { c.rope_theta = std::numeric_limits<float>::infinity(); }, Code::bad_file);
    refused([](LlamaConfig& c) { c.n_layers = 0; }, Code::bad_file);
    refused([](LlamaConfig& c) { c.n_heads = 1025; }, Code::bad_file);
    refused([](LlamaConfig& c) { c.n_kv_heads = 3; }, Code::bad_file);
    refused([](LlamaConfig& c) { c.head_dim = 48; }, Code::unsupported);
    refused([](LlamaConfig& c) { c.bos_id = 16; }, Code::bad_file);
    const RopeScaling llama3 = {RopeScaling::Kind::llama3, 8.0f, 1.0f, 4.0f, 8192};
    const auto scaling_refused = [&](auto change) {
        refused([&](LlamaConfig& c) { change(c.rope_scaling = llama3); }, Code::bad_file);
    };
    scaling_refused([](RopeScaling& s) { s.factor = std::numeric_limits<float>::quiet_NaN(); });
    scaling_refused([](RopeScaling& s) { s.factor = 0.5f; });
    scaling_refused([](RopeScaling& s) { s.low_freq_factor = 0.0f; });
    scaling_refused([](RopeScaling& s) { s.high_freq_factor = std::numeric_limits<float>::infinity(); });
    scaling_refused([](RopeScaling& s) { s.high_freq_factor = s.low_freq_factor; });
    scaling_refused([](RopeScaling& s) { s.original_max_position = 0; });
    refused([](LlamaConfig& c) { c.rope_divisors.assign(15, 1.0f); }, Code::bad_file);
    refused([](LlamaConfig& c) { c.rope_divisors.assign(16, 0.0f); }, Code::bad_file);
    refused([&](LlamaConfig& c) { c.rope_divisors.assign(16, 1.0f), c.rope_scaling = llama3; }, Code::unsupported);
    refused([](LlamaConfig& c) { c.eos_ids = {2, 16}; }, Code::bad_file);
}

TEST(LlamaConfig, survives_random_damage) {
    Dice dice(11);
    TempFolder folder;
    int accepted = 0;
    for (int i = 0; i < 2000; ++i) {
        const std::string text = mutated(tiny_config(), dice);
        folder.write("config.json", text);
        const auto config = read_llama_config(folder.path());
        accepted += config.ok();
        if (config.ok()) {
            EXPECT_TRUE(check_llama_config(config.value(), "here").ok()) << text;
        } else {
            expect_refused(config.status(), config.status().code(), folder.file("config.json"), text);
            EXPECT_TRUE(config.status().code() == Code::bad_file || config.status().code() == Code::unsupported)
                << text;
        }
    }
    EXPECT_GT(accepted, 20); // harmless edits are among them, or the test would only see syntax errors
    EXPECT_LT(accepted, 1000);
}

} // namespace
} // namespace auspex::config_test
