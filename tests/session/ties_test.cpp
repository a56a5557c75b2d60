// Planted exact ties: models whose vocabulary repeats itself, so that several ids always have the same logit, in the same
// lane, in other lanes and in other chunks. The lowest id wins, with drafts and without.
#include "model/file_fixtures.h"
#include "session/engine_fixture.h"

#include <nlohmann/json.hpp>

namespace auspex::ties_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 4103, kPeriod = 1994; // ids 2j, 2j + 1 and those a period on are equals

// The row that id's row is a copy of.
uint64_t original(uint64_t id) {
    return id % kPeriod / 2 * 2;
}

// A Hugging Face folder of a random model with repeated rows in embedding and head.
void write_model(const TempFolder& folder, const SyntheticModel& model) {
    auto made = make_synthetic_checkpoint(model);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const LlamaConfig& c = model.config;
    std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight"};
    if (!c.tied_embedding) names.push_back("lm_head.weight");
    for (uint32_t i = 0; i < c.n_layers; ++i)
        for (const char* name : {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                                 "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
            names.push_back("model.layers." + std::to_string(i) + "." + name + ".weight");
    nlohmann::json header;
    std::string data;
    for (const std::string& name : names) {
        const TensorInfo& tensor = *made.value()->find(name);
        std::vector<std::byte> bytes(tensor.bytes);
        ASSERT_TRUE(made.value()->read(tensor, 0, bytes).ok());
        const uint64_t row = tensor.bytes / tensor.shape[0];
        if (tensor.shape[0] == kVocab)
            for (uint64_t id = 0; id < kVocab; ++id) std::memcpy(&bytes[id * row], &bytes[original(id) * row], row);
        header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {data.size(), data.size() + bytes.size()}}};
        data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    folder.write("model.safetensors", safetensors(header.dump(), data));
    const nlohmann::json config = {{"architectures", {"LlamaForCausalLM"}}, {"model_type", "llama"}, {"hidden_size", c.hidden_size},
                                   {"intermediate_size", c.ffn_size}, {"num_hidden_layers", c.n_layers}, {"num_attention_heads", c.n_heads},
                                   {"num_key_value_heads", c.n_kv_heads}, {"head_dim", c.head_dim}, {"vocab_size", c.vocab_size},
                                   {"rms_norm_eps", 1e-6}, {"rope_theta", 10000.0}, {"max_position_embeddings", c.max_position},
                                   {"tie_word_embeddings", c.tied_embedding}, {"bos_token_id", 1}, {"eos_token_id", 2}, {"hidden_act", "silu"}};
    folder.write("config.json", config.dump());
    std::filesystem::copy_file(std::string(AUSPEX_PAIR_DIR) + "/target/tokenizer.model", folder.file("tokenizer.model"));
}

class Ties : public ::testing::TestWithParam<bool> {}; // the draft knows the target's mind: its weights are the target's

TEST_P(Ties, the_lowest_id_wins) {
    TempFolder target, draft;
    const Shape shape = {.d = 40, .heads = 2, .ffn = 50, .vocab = kVocab, .tied = true};
    write_model(target, random_model(shape, 1));
    write_model(draft, random_model(GetParam() ? shape : Shape{.d = 33, .layers = 1, .heads = 1, .ffn = 30, .vocab = kVocab}, GetParam() ? 1 : 2));
    ASSERT_FALSE(HasFatalFailure());
    EngineDesc desc;
    desc.target_path = target.path();
    desc.draft_path = draft.path();
    desc.max_sequences = 4;
    desc.max_context = 200;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    std::vector<Job> plain, speculative;
    for (uint32_t draft_len : {1u, 2u, 4u, 8u}) {
        Job job = {.prompt = random_prompt(3 + 5 * draft_len, 4096, draft_len), .max_tokens = 100};
        plain.push_back(job);
        job.draft_len = draft_len;
        speculative.push_back(job);
    }
    const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, speculative);
    for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens) << "draft_len " << speculative[i].draft_len;
        for (uint32_t token : found[i].tokens) ASSERT_EQ(token, original(token));
        if (GetParam()) { EXPECT_EQ(found[i].stats.draft_n, found[i].stats.draft_n_accepted); }
        else { EXPECT_LT(found[i].stats.draft_n_accepted, found[i].stats.draft_n); }
    }
}

INSTANTIATE_TEST_SUITE_P(same_weights, Ties, ::testing::Bool());

} // namespace
} // namespace auspex::ties_test
