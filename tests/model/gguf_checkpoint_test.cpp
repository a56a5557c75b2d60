// GGUF as a checkpoint: the tensors of the Hugging Face folder byte by byte, what keys mean, shards, and that whatever is
// not a Llama, or lies about its sizes, is refused in one line.
#include "model/model_files.h"

#include <cmath>
#include <functional>

namespace auspex::gguf_checkpoint_test {
namespace {

using namespace test;

std::unique_ptr<Checkpoint> made(const SyntheticModel& model) {
    return make_synthetic_checkpoint(model).value();
}

Result<std::unique_ptr<Checkpoint>> opened(const TempFolder& folder, const GgufModel& model) {
    folder.write("model.gguf", model.bytes());
    return open_checkpoint(folder.file("model.gguf"));
}

// ---- tensors ----------------------------------------------------------------------------------------------------------

TEST(GgufCheckpoint, gives_the_tensors_of_the_huggingface_folder) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (uint32_t head_dim : {32u, 64u, 128u}) {
            SyntheticModel synthetic = small_llama(dtype);
            synthetic.config.head_dim = head_dim;
            synthetic.config.tied_embedding = head_dim == 64;
            const auto model = made(synthetic);
            TempFolder folder;
            write_huggingface(folder, *model);
            const auto gguf = opened(folder, gguf_model(*model));
            const auto huggingface = open_checkpoint(folder.path());
            ASSERT_TRUE(gguf.ok()) << gguf.status().message();
            ASSERT_TRUE(huggingface.ok()) << huggingface.status().message();
            EXPECT_EQ(gguf.value()->name(), folder.file("model.gguf"));
            for (const auto& [name, gguf_name] : tensor_names(model->config())) {
                const TensorInfo *found = gguf.value()->find(name), *expected = huggingface.value()->find(name);
                ASSERT_TRUE(found && expected) << name;
                EXPECT_EQ(found->name, name);
                EXPECT_EQ(found->dtype, expected->dtype);
                EXPECT_EQ(found->shape, expected->shape);
                EXPECT_EQ(found->bytes, expected->bytes);
                EXPECT_EQ(tensor_bytes(*gguf.value(), name), tensor_bytes(*huggingface.value(), name)) << name;
                EXPECT_FALSE(gguf.value()->find(gguf_name));
            }
            const LlamaConfig &a = gguf.value()->config(), &b = huggingface.value()->config();
            for (const SizeKey& key : kSizeKeys)
                EXPECT_EQ(a.*key.field, b.*key.field) << key.gguf;
            EXPECT_EQ(a.rms_eps, b.rms_eps);
            EXPECT_EQ(a.rope_theta, b.rope_theta);
            EXPECT_EQ(a.tied_embedding, b.tied_embedding);
        }
}

TEST(GgufCheckpoint, pieces_join_to_the_rows_in_order) {
    const auto model = made(small_llama());
    TempFolder folder;
    const auto gguf = opened(folder, gguf_model(*model));
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    Dice dice(3);
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
        const std::string name = "model.layers.1.self_attn." + std::string(part) + ".weight";
        const std::string expected = tensor_bytes(*model, name);
        const TensorInfo& tensor = *gguf.value()->find(name);
        for (int round = 0; round < 20; ++round) {
            std::string joined(expected.size(), '\0');
            for (size_t at = 0; at < joined.size();) { // ends of pieces fall anywhere, also inside of elements
                const size_t n = std::min<size_t>(joined.size() - at, 1 + dice.below(round < 10 ? 100 : 3000));
                ASSERT_TRUE(gguf.value()->read(tensor, at, std::as_writable_bytes(std::span(joined.data() + at, n))).ok());
                at += n;
            }
            ASSERT_EQ(joined, expected) << part;
        }
    }
}

TEST(GgufCheckpoint, never_reads_outside_of_a_tensor) {
    TempFolder folder;
    const auto gguf = opened(folder, gguf_model(*made(small_llama())));
    ASSERT_TRUE(gguf.ok());
    for (const char* name : {"model.norm.weight", "model.layers.0.self_attn.q_proj.weight"}) {
        TensorInfo tensor = *gguf.value()->find(name);
        std::vector<std::byte> out(tensor.bytes);
        EXPECT_TRUE(gguf.value()->read(tensor, 0, out).ok());
        EXPECT_TRUE(gguf.value()->read(tensor, tensor.bytes, {}).ok());
        EXPECT_EQ(gguf.value()->read(tensor, 2, out).code(), Code::internal);
        EXPECT_EQ(gguf.value()->read(tensor, tensor.bytes + 2, {}).code(), Code::internal);
        EXPECT_EQ(gguf.value()->read(tensor, ~uint64_t{0}, out).code(), Code::internal);
        tensor.name = "blk.0.attn_q.weight";
        EXPECT_EQ(gguf.value()->read(tensor, 0, out).code(), Code::internal);
    }
}

// Blocks go through as they are, whole rows at a time; types may differ from tensor to tensor.
TEST(GgufCheckpoint, gives_quantised_rows_as_they_are) {
    SyntheticModel synthetic = small_llama();
    synthetic.config.hidden_size = 256;
    synthetic.config.ffn_size = 512;
    synthetic.config.n_layers = 1;
    const auto model = made(synthetic);
    Dice dice(4);
    const DType types[] = {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                           DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k};
    GgufModel file = gguf_model(*model);
    std::map<std::string, DType> expected_type;
    std::map<std::string, std::string> expected; // with rows in Hugging Face's order
    size_t next = 0;
    for (const auto& [name, gguf_name] : tensor_names(model->config())) {
        GgufPart& part = file.part(gguf_name);
        if (part.shape.size() == 1) continue;
        const uint64_t cols = part.shape[1];
        const DType type = types[next++ % std::size(types)];
        std::string rows(part.shape[0] * file_row_bytes(type, cols), '\0');
        for (char& c : rows)
            c = static_cast<char>(dice.below(256));
        part.type = static_cast<uint32_t>(dtype_info(type).ggml_id);
        part.data = name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight") ? rotated_in_pairs(rows, part.shape[0], 32) : rows;
        expected_type[name] = type;
        expected[name] = std::move(rows);
    }
    TempFolder folder;
    const auto gguf = opened(folder, file);
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    for (const auto& [name, bytes] : expected) {
        const TensorInfo& tensor = *gguf.value()->find(name);
        EXPECT_EQ(tensor.dtype, expected_type[name]) << name;
        EXPECT_EQ(tensor.bytes, bytes.size());
        EXPECT_EQ(tensor_bytes(*gguf.value(), name), bytes) << name;
    }
    EXPECT_GE(next, std::size(types) - 1);
}

// ---- keys -------------------------------------------------------------------------------------------------------------

LlamaConfig config_of(const std::function<void(GgufModel&)>& change) {
    GgufModel file = gguf_model(*made(small_llama()));
    change(file);
    TempFolder folder;
    const auto gguf = opened(folder, file);
    EXPECT_TRUE(gguf.ok()) << gguf.status().message();
    return gguf.ok() ? gguf.value()->config() : LlamaConfig{};
}

TEST(GgufCheckpoint, absent_keys_have_the_defaults_of_the_format) {
    const LlamaConfig c = config_of([](GgufModel& m) {
        for (const char* key : {"llama.vocab_size", "llama.rope.freq_base", "llama.rope.dimension_count", "llama.attention.value_length",
                                "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "general.name"})
            m.keys.erase(key);
    });
    EXPECT_EQ(c.vocab_size, 24u); // rows of the embedding
    EXPECT_EQ(c.rope_theta, 10000.0f);
    EXPECT_TRUE(c.rope_scaling == RopeScaling{});

    SyntheticModel all_heads = small_llama();
    all_heads.config.hidden_size = 128;
    all_heads.config.n_kv_heads = 4;
    GgufModel file = gguf_model(*made(all_heads));
    for (const char* key : {"llama.attention.head_count_kv", "llama.attention.key_length", "llama.attention.value_length"})
        file.keys.erase(key);
    TempFolder folder;
    const auto gguf = opened(folder, file);
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    EXPECT_EQ(gguf.value()->config().n_kv_heads, 4u);
    EXPECT_EQ(gguf.value()->config().head_dim, 32u);
}

// They are read with the vocabulary, where "none" can be told from a wrong id: once, by one rule.
TEST(GgufCheckpoint, ids_of_special_tokens_are_the_vocabularys_affair) {
    for (const char* name : {"bos", "eos", "eot", "eom"})
        for (uint32_t id : {9u, 24u, 0xffffffffu}) {
            const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
            const LlamaConfig c = config_of([&](GgufModel& m) { m.keys.set(key, id); });
            EXPECT_EQ(c.vocab_size, 24u) << key << " " << id;
            EXPECT_TRUE(c.eos_ids.empty()) << key << " " << id;
        }
}

TEST(GgufCheckpoint, reads_what_files_say) {
    EXPECT_EQ(config_of([](GgufModel& m) { m.keys.set("llama.rope.freq_base", 500000.0f); }).rope_theta, 500000.0f);
    EXPECT_EQ(config_of([](GgufModel& m) { m.keys.set("llama.context_length", uint64_t{131072}); }).max_position, 131072u);
    // One value for each layer, all the same.
    EXPECT_EQ(config_of([](GgufModel& m) { m.keys.set("llama.attention.head_count_kv", std::vector<int32_t>{2, 2}); }).n_kv_heads, 2u);
    EXPECT_EQ(config_of([](GgufModel& m) { m.keys.set("llama.feed_forward_length", std::vector<uint32_t>{64, 64}); }).ffn_size, 64u);
    EXPECT_EQ(config_of([](GgufModel& m) { m.keys.set("llama.expert_count", 0u).set("llama.attention.causal", true); }).n_layers, 2u);
    EXPECT_EQ(config_of([](GgufModel& m) { m.keys.set("llama.attention.sliding_window", 128u); }).n_layers, 2u);
    EXPECT_EQ(config_of([](GgufModel& m) { m.keys.set("llama.rope.scaling.attn_factor", 1.0f); }).n_layers, 2u);
    // A list of frequencies that older converters left in.
    EXPECT_EQ(config_of([](GgufModel& m) { m.parts.push_back({"blk.0.attn_rot_embd.weight", 0, {16}, std::string(64, 'x')}); }).n_layers, 2u);
    EXPECT_TRUE(config_of([](GgufModel& m) { m.remove("output.weight"); }).tied_embedding);
}

TEST(GgufCheckpoint, reads_rope_scaling_and_divisors) {
    const RopeScaling linear = {RopeScaling::Kind::linear, 4.0f};
    EXPECT_TRUE(config_of([](GgufModel& m) {
                    m.keys.set("llama.rope.scaling.type", "linear").set("llama.rope.scaling.factor", 4.0f);
                }).rope_scaling == linear);
    EXPECT_TRUE(config_of([](GgufModel& m) { m.keys.set("llama.rope.scaling.factor", 4.0f); }).rope_scaling == linear);
    EXPECT_TRUE(config_of([](GgufModel& m) { m.keys.set("llama.rope.scale_linear", 4.0f); }).rope_scaling == linear);
    EXPECT_TRUE(config_of([](GgufModel& m) {
                    m.keys.set("llama.rope.scaling.type", "none").set("llama.rope.scaling.factor", 4.0f);
                }).rope_scaling == RopeScaling{});
    std::string divisors;
    for (int i = 0; i < 16; ++i)
        divisors += le(1.0f + static_cast<float>(i));
    const LlamaConfig c = config_of([&](GgufModel& m) { m.parts.push_back({"rope_freqs.weight", 0, {16}, divisors}); });
    ASSERT_EQ(c.rope_divisors.size(), 16u);
    for (size_t i = 0; i < 16; ++i)
        EXPECT_EQ(c.rope_divisors[i], 1.0f + static_cast<float>(i));
    const std::vector<double> frequencies = rope_frequencies(c);
    EXPECT_EQ(frequencies[0], 1.0);
    EXPECT_NEAR(frequencies[15], std::pow(10000.0, -30.0 / 32) / 16, 1e-15);
}

// ---- refusals ---------------------------------------------------------------------------------------------------------

struct Wrong {
    const char* what;
    std::function<void(GgufModel&)> change;
    Code code;
    const char* in_message;
};

template <typename T> std::function<void(GgufModel&)> key(const char* name, T value) {
    return [=](GgufModel& m) { m.keys.set(name, value); };
}
std::function<void(GgufModel&)> no_key(const char* name) {
    return [=](GgufModel& m) { m.keys.erase(name); };
}
std::function<void(GgufModel&)> type(const char* name, uint32_t id) {
    return [=](GgufModel& m) { m.part(name).type = id; };
}
std::function<void(GgufModel&)> shape(const char* name, std::vector<uint64_t> dims) {
    return [=](GgufModel& m) { m.part(name).shape = dims; };
}
std::function<void(GgufModel&)> extra(const char* name, uint32_t id, std::vector<uint64_t> dims, size_t bytes) {
    return [=](GgufModel& m) { m.parts.push_back({name, id, dims, std::string(bytes, '\0')}); };
}
std::function<void(GgufModel&)> divisors(float value) {
    return [=](GgufModel& m) {
        std::string data;
        for (int i = 0; i < 16; ++i)
            data += le(value);
        m.parts.push_back({"rope_freqs.weight", 0, {16}, data});
    };
}

std::vector<Wrong> wrong_keys() {
    const float nan = std::nanf("");
    return {
        {"no architecture", no_key("general.architecture"), Code::bad_file, "no general.architecture"},
        {"number as architecture", key("general.architecture", 7u), Code::bad_file, "general.architecture 7, expected a text"},
        {"another architecture", key("general.architecture", "qwen2"), Code::unsupported, "general.architecture \"qwen2\", expected \"llama\""},
        {"control characters", key("general.architecture", "evil\n\x1b[31m"), Code::unsupported, "evil\\x0a\\x1b[31m"},
        {"adapter", key("general.type", "adapter"), Code::unsupported, "general.type \"adapter\""},
        {"experts", key("llama.expert_count", 8u), Code::unsupported, "llama.expert_count 8"},
        {"experts as text", key("llama.expert_count", "8"), Code::unsupported, "mixtures of experts"},
        {"soft caps", key("llama.final_logit_softcapping", 30.0f), Code::unsupported, "softcapping 30.0"},
        {"scaled logits", key("llama.logit_scale", 0.5f), Code::unsupported, "logit_scale 0.5"},
        {"attention factor", key("llama.rope.scaling.attn_factor", 1.25f), Code::unsupported, "attn_factor 1.25"},
        {"not causal", key("llama.attention.causal", false), Code::unsupported, "causal false"},
        {"sliding window", key("llama.attention.sliding_window", 64u), Code::unsupported, "sliding_window 64"},
        {"no width", no_key("llama.embedding_length"), Code::bad_file, "no llama.embedding_length, expected an integer from 1 to 65536"},
        {"width 0", key("llama.embedding_length", 0u), Code::bad_file, "embedding_length 0"},
        {"width -1", key("llama.embedding_length", -1), Code::bad_file, "embedding_length -1"},
        {"width as real", key("llama.embedding_length", 32.0f), Code::bad_file, "embedding_length 32.0"},
        {"width as text", key("llama.embedding_length", "32"), Code::bad_file, "embedding_length the text \"32\""},
        {"width as bool", key("llama.embedding_length", true), Code::bad_file, "embedding_length true"},
        {"width 2^32 + 32", key("llama.embedding_length", (uint64_t{1} << 32) + 32), Code::bad_file, "embedding_length 4294967328"},
        {"width 2^64 - 1", key("llama.embedding_length", ~uint64_t{0}), Code::bad_file, "embedding_length 18446744073709551615"},
        {"layers 0", key("llama.block_count", 0u), Code::bad_file, "block_count 0"},
        {"layers 1025", key("llama.block_count", 1025u), Code::bad_file, "block_count 1025"},
        {"no heads", no_key("llama.attention.head_count"), Code::bad_file, "no llama.attention.head_count"},
        {"heads 3 on 2", key("llama.attention.head_count", 3u), Code::bad_file, "a multiple"},
        {"heads by layer", key("llama.attention.head_count_kv", std::vector<int32_t>{2, 1}), Code::unsupported, "head_count_kv with different values by layer"},
        {"heads of one layer", key("llama.attention.head_count_kv", std::vector<int32_t>{2}), Code::bad_file, "a list of 1, expected 2 integers"},
        {"heads in reals", key("llama.attention.head_count_kv", std::vector<float>{2, 2}), Code::bad_file, "a list of 2"},
        {"heads 0 by layer", key("llama.attention.head_count_kv", std::vector<int32_t>{0, 0}), Code::bad_file, "head_count_kv 0 for each layer"},
        {"heads -1 by layer", key("llama.attention.head_count_kv", std::vector<int32_t>{-1, -1}), Code::bad_file, "head_count_kv -1"},
        {"head size 80", [](GgufModel& m) {
             m.keys.set("llama.attention.key_length", 80u).set("llama.attention.value_length", 80u).set("llama.rope.dimension_count", 80u);
         }, Code::unsupported, "head_dim 80, expected 32, 64 or 128"},
        {"other value size", key("llama.attention.value_length", 64u), Code::unsupported, "value_length 64, expected 32"},
        {"rotated in part", key("llama.rope.dimension_count", 16u), Code::unsupported, "dimension_count 16, expected 32"},
        {"no head size", [](GgufModel& m) {
             m.keys.erase("llama.attention.key_length");
             m.keys.set("llama.embedding_length", 34u);
         }, Code::bad_file, "no llama.attention.key_length, and llama.embedding_length 34 with"},
        {"context 0", key("llama.context_length", 0u), Code::bad_file, "context_length 0"},
        {"no eps", no_key("llama.attention.layer_norm_rms_epsilon"), Code::bad_file, "no llama.attention.layer_norm_rms_epsilon"},
        {"eps 0", key("llama.attention.layer_norm_rms_epsilon", 0.0f), Code::bad_file, "epsilon 0.0, expected a number from"},
        {"eps NaN", key("llama.attention.layer_norm_rms_epsilon", nan), Code::bad_file, "epsilon nan"},
        {"eps as integer", key("llama.attention.layer_norm_rms_epsilon", 1u), Code::bad_file, "epsilon 1 of type u32, expected a number from"},
        {"theta as integer", key("llama.rope.freq_base", uint64_t{10000}), Code::bad_file, "freq_base 10000 of type u64, expected a number from 1.0 to 1000000000000.0 of type f32 or f64"},
        {"factor as text", key("llama.rope.scaling.factor", "2.0"), Code::bad_file, "factor the text \"2.0\", expected a number"},
        {"layers as real", key("llama.block_count", 2.0f), Code::bad_file, "block_count 2.0 of type f32, expected an integer"},
        {"theta infinite", key("llama.rope.freq_base", 1e30f * 1e30f), Code::bad_file, "freq_base inf"},
        {"yarn", key("llama.rope.scaling.type", "yarn"), Code::unsupported, "\"yarn\""},
        {"scaling as number", key("llama.rope.scaling.type", 1u), Code::bad_file, "scaling.type 1"},
        {"linear without factor", key("llama.rope.scaling.type", "linear"), Code::bad_file, "no llama.rope.scaling.factor"},
        {"factor 0", key("llama.rope.scaling.factor", 0.0f), Code::bad_file, "scaling.factor 0.0"},
    };
}

std::vector<Wrong> wrong_tensors() {
    const char *q = "blk.0.attn_q.weight", *norm = "blk.1.ffn_norm.weight", *down = "blk.1.ffn_down.weight";
    return {
        {"no embedding", [](GgufModel& m) { m.remove("token_embd.weight"); }, Code::bad_file, "no tensor \"token_embd.weight\", expected one of shape (24, 32)"},
        {"no embedding nor size", [](GgufModel& m) {
             m.remove("token_embd.weight");
             m.keys.erase("llama.vocab_size");
         }, Code::bad_file, "no tensor \"token_embd.weight\""},
        {"no q", [=](GgufModel& m) { m.remove(q); }, Code::bad_file, "no tensor \"blk.0.attn_q.weight\", expected one of shape (128, 32)"},
        {"no last norm", [](GgufModel& m) { m.remove("output_norm.weight"); }, Code::bad_file, "no tensor \"output_norm.weight\""},
        {"more layers claimed", key("llama.block_count", 3u), Code::bad_file, "no tensor \"blk.2.attn_norm.weight\""},
        {"fewer layers claimed", key("llama.block_count", 1u), Code::unsupported, "blk.1."},
        {"other vocabulary", key("llama.vocab_size", 25u), Code::bad_file, "shape (24, 32) at tensor \"token_embd.weight\", expected (25, 32)"},
        {"shape swapped", shape(q, {32, 128}), Code::bad_file, "shape (32, 128)"},
        {"shape of a vector", shape(q, {4096}), Code::bad_file, "shape (4096)"},
        {"shape with a third", shape(q, {1, 128, 32}), Code::bad_file, "shape (1, 128, 32)"},
        {"norm as matrix", shape(norm, {1, 32}), Code::bad_file, "shape (1, 32)"},
        {"giant shape", shape(q, {uint64_t{1} << 40, uint64_t{1} << 22}), Code::bad_file, "shape (1099511627776, 4194304)"},
        {"giant embedding", [](GgufModel& m) {
             m.keys.erase("llama.vocab_size");
             m.part("token_embd.weight").shape = {(uint64_t{1} << 32) + 24, 32};
         }, Code::bad_file, "vocab_size"},
        {"IQ4_XS", type(down, 23), Code::unsupported, "type IQ4_XS (23) at tensor \"blk.1.ffn_down.weight\""},
        {"MXFP4", type(down, 39), Code::unsupported, "MXFP4 (39)"},
        {"unknown type", type(down, 4), Code::unsupported, "type number 4 at"},
        {"unknown giant type", type(down, ~uint32_t{0}), Code::unsupported, "type number 4294967295"},
        {"type of integers", type(down, 26), Code::unsupported, "I32 (26)"},
        {"quantised vector", type(norm, 8), Code::unsupported, "type q8_0 at tensor \"blk.1.ffn_norm.weight\""},
        {"rows of broken blocks", type(q, 12), Code::bad_file, "rows of 32 elements at tensor \"blk.0.attn_q.weight\", expected a multiple of 256 for q4_k"},
        {"larger than its place", type(q, 0), Code::bad_file, "room for 8192 bytes at the tensor \"blk.0.attn_q.weight\""},
        {"last one cut off", [](GgufModel& m) { m.part("output.weight").data.pop_back(); }, Code::bad_file, "room for 1535 bytes"},
        {"bias", extra("blk.0.attn_q.bias", 0, {128}, 512), Code::unsupported, "\"blk.0.attn_q.bias\", expected only those of a Llama; biases"},
        {"experts", extra("blk.0.ffn_gate_exps.weight", 1, {4, 64, 32}, 16384), Code::unsupported, "mixtures of experts"},
        {"stranger", extra("v.patch_embd.weight", 0, {4}, 16), Code::unsupported, "\"v.patch_embd.weight\""},
        {"divisors of another length", extra("rope_freqs.weight", 0, {32}, 128), Code::bad_file, "shape (32) at tensor \"rope_freqs.weight\", expected (16)"},
        {"divisors in f16", extra("rope_freqs.weight", 1, {16}, 32), Code::bad_file, "expected f32"},
        {"divisor 0", divisors(0.0f), Code::bad_file, "rope divisor [0] 0.0"},
        {"divisor NaN", divisors(std::nanf("")), Code::bad_file, "rope divisor [0] nan"},
        {"divisors and linear", [](GgufModel& m) {
             divisors(2.0f)(m);
             m.keys.set("llama.rope.scaling.factor", 4.0f);
         }, Code::unsupported, "rope divisors beside another"},
    };
}

void expect_all_refused(const std::vector<Wrong>& cases) {
    const GgufModel good = gguf_model(*made(small_llama()));
    TempFolder folder;
    ASSERT_TRUE(opened(folder, good).ok());
    for (const Wrong& wrong : cases) {
        GgufModel file = good;
        wrong.change(file);
        const auto gguf = opened(folder, file);
        ASSERT_FALSE(gguf.ok()) << wrong.what;
        expect_refused(gguf.status(), wrong.code, folder.file("model.gguf"), wrong.what);
        EXPECT_NE(gguf.status().message().find(wrong.in_message), std::string::npos)
            << wrong.what << ": " << wrong.in_message << " in: " << gguf.status().message();
    }
}

TEST(GgufCheckpoint, refuses_every_wrong_key_by_name) {
    expect_all_refused(wrong_keys());
}

TEST(GgufCheckpoint, refuses_every_wrong_tensor_by_name) {
    expect_all_refused(wrong_tensors());
}

TEST(GgufCheckpoint, refuses_tensors_that_overlap) {
    GgufModel file = gguf_model(*made(small_llama()));
    file.remove("output.weight");
    // Its 1536 bytes would begin in the middle of the first tensor.
    GgufBuilder keys = file.keys;
    for (const GgufPart& part : file.parts)
        keys.tensor(part.name, part.type, part.shape, part.data);
    keys.tensor_at("output.weight", 1, {24, 32}, 64);
    TempFolder folder;
    folder.write("model.gguf", keys.bytes());
    const Status status = open_checkpoint(folder.file("model.gguf")).status();
    expect_refused(status, Code::bad_file, folder.file("model.gguf"), "overlap");
    EXPECT_NE(status.message().find("room for 64 bytes at the tensor \"token_embd.weight\", expected 1536"), std::string::npos) << status.message();
}

// ---- shards -----------------------------------------------------------------------------------------------------------

struct Shard {
    std::string name;
    GgufBuilder keys; // without tensors
    size_t begin, end;
};

// The model in three files as gguf-split makes them: only the first has the keys of the model.
std::vector<Shard> three_shards(const GgufModel& model) {
    std::vector<Shard> shards;
    for (uint16_t i = 0; i < 3; ++i) {
        Shard shard = {"big-0000" + std::to_string(i + 1) + "-of-00003.gguf", i == 0 ? model.keys : GgufBuilder(), i * model.parts.size() / 3,
                       (i + 1u) * model.parts.size() / 3};
        shard.keys.set("split.no", i).set("split.count", uint16_t{3}).set("split.tensors.count", static_cast<int32_t>(model.parts.size()));
        shards.push_back(std::move(shard));
    }
    return shards;
}

void write_shards(const TempFolder& folder, const GgufModel& model, const std::vector<Shard>& shards) {
    for (const Shard& shard : shards)
        folder.write(shard.name, model.bytes(shard.begin, shard.end, shard.keys));
}

TEST(GgufCheckpoint, finds_shards_beside_the_first) {
    const auto model = made(small_llama());
    const GgufModel file = gguf_model(*model);
    TempFolder folder;
    write_shards(folder, file, three_shards(file));
    const auto gguf = open_checkpoint(folder.file("big-00001-of-00003.gguf"));
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    for (const auto& [name, gguf_name] : tensor_names(model->config()))
        EXPECT_EQ(tensor_bytes(*gguf.value(), name), tensor_bytes(*model, name)) << name;

    GgufModel single = file; // what llama.cpp writes when all fits into one
    single.keys.set("split.no", uint16_t{0}).set("split.count", uint16_t{1});
    EXPECT_TRUE(opened(folder, single).ok());
    single.keys.set("split.count", uint16_t{0});
    EXPECT_TRUE(opened(folder, single).ok());
}

TEST(GgufCheckpoint, names_the_shard_that_is_missing_or_wrong) {
    const GgufModel file = gguf_model(*made(small_llama()));
    const struct {
        const char* what;
        std::function<void(std::vector<Shard>&)> change;
        size_t named_shard; // the one whose name the message starts with
        Code code;
        const char* in_message;
    } cases[] = {
        {"missing", [](auto& s) { s.erase(s.begin() + 1); }, 1, Code::not_found, "expected shard 2 of 3 beside the first"},
        {"other number inside", [](auto& s) { s[2].keys.set("split.no", uint16_t{1}); }, 2, Code::bad_file, "found shard 2 of 3"},
        {"other count inside", [](auto& s) { s[2].keys.set("split.count", uint16_t{4}); }, 2, Code::bad_file, "found shard 3 of 4"},
        {"no split keys inside", [](auto& s) { s[1].keys = GgufBuilder(); }, 1, Code::bad_file, "found shard 1 of 1"},
        {"first says 4", [](auto& s) { s[0].keys.set("split.count", uint16_t{4}); }, 0, Code::bad_file, "\"-00001-of-00004.gguf\""},
        {"number beyond", [](auto& s) { s[0].keys.set("split.no", uint16_t{3}); }, 0, Code::bad_file, "no split.no below split.count 3"},
        {"no number", [](auto& s) { s[0].keys.erase("split.no"); }, 0, Code::bad_file, "no split.no"},
        {"count as text", [](auto& s) { s[0].keys.set("split.count", "3"); }, 0, Code::bad_file, "split.count"},
        {"giant count", [](auto& s) { s[0].keys.set("split.count", 65535u); }, 0, Code::bad_file, "up to 1024"},
        {"negative count", [](auto& s) { s[0].keys.set("split.count", -3); }, 0, Code::bad_file, "split.count"},
        {"other number of tensors", [](auto& s) { s[0].keys.set("split.tensors.count", 20); }, 0, Code::bad_file, "in all shards, expected 20"},
        {"no number of tensors", [](auto& s) { s[0].keys.erase("split.tensors.count"); }, 0, Code::bad_file, "split.tensors.count"},
        {"twice the same tensors", [](auto& s) {
             s[2].begin = s[1].begin, s[2].end = s[1].end;
             s[0].keys.set("split.tensors.count", static_cast<int32_t>(s[0].end + 2 * (s[1].end - s[1].begin)));
         }, 2, Code::bad_file, "also in"},
        {"a tensor left out", [](auto& s) {
             s[2].begin += 1;
             s[0].keys.set("split.tensors.count", static_cast<int32_t>(s[2].end - 1));
         }, 0, Code::bad_file, "found no tensor"},
    };
    for (const auto& one : cases) {
        TempFolder folder;
        std::vector<Shard> shards = three_shards(file);
        const std::string named = shards[one.named_shard].name;
        one.change(shards);
        write_shards(folder, file, shards);
        const Status status = open_checkpoint(folder.file("big-00001-of-00003.gguf")).status();
        expect_refused(status, one.code, folder.file(named), one.what);
        EXPECT_NE(status.message().find(one.in_message), std::string::npos) << one.what << ": " << status.message();
    }
}

TEST(GgufCheckpoint, wants_the_first_shard_under_its_name) {
    const GgufModel file = gguf_model(*made(small_llama()));
    TempFolder folder;
    write_shards(folder, file, three_shards(file));
    const Status status = open_checkpoint(folder.file("big-00002-of-00003.gguf")).status();
    expect_refused(status, Code::invalid_argument, folder.file("big-00002-of-00003.gguf"), "second");
    EXPECT_NE(status.message().find("name " + folder.file("big-00001-of-00003.gguf")), std::string::npos) << status.message();
    std::filesystem::rename(folder.file("big-00001-of-00003.gguf"), folder.file("model.gguf"));
    expect_refused(open_checkpoint(folder.file("model.gguf")).status(), Code::bad_file, folder.file("model.gguf"), "renamed");
}

// ---- damage -----------------------------------------------------------------------------------------------------------

TEST(GgufCheckpoint, survives_random_damage_and_cuts) {
    const GgufModel model = gguf_model(*made(small_llama()));
    const std::string good = model.bytes();
    const size_t header = GgufBuilder(model.keys).header().size() + model.parts.size() * 50; // edits hit keys and tensor entries
    Dice dice(9);
    TempFolder folder;
    int accepted = 0;
    for (int i = 0; i < 800; ++i) {
        std::string file = good;
        if (i % 4 == 3) {
            file.resize(dice.below(file.size()));
        } else {
            for (uint64_t edits = 1 + dice.below(3); edits > 0; --edits) {
                char& c = file[dice.below(header)];
                c = static_cast<char>(dice.below(2) ? dice.below(256) : uint64_t(c) ^ uint64_t{1} << dice.below(8));
            }
        }
        folder.write("model.gguf", file);
        const auto gguf = open_checkpoint(folder.file("model.gguf"));
        accepted += gguf.ok();
        if (!gguf.ok()) {
            expect_refused(gguf.status(), gguf.status().code(), folder.file("model.gguf"), "mutation " + std::to_string(i));
            continue;
        }
        EXPECT_TRUE(check_llama_config(gguf.value()->config(), "here").ok());
        for (const auto& [name, gguf_name] : tensor_names(gguf.value()->config()))
            tensor_bytes(*gguf.value(), name);
    }
    EXPECT_GT(accepted, 10);
    EXPECT_LT(accepted, 500);
}

} // namespace
} // namespace auspex::gguf_checkpoint_test
