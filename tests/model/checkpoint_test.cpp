// Opening a Hugging Face folder: the bundled pair, missing and mistaken files, and reading in pieces.
#include "model/checkpoint/checkpoint.h"
#include "model/file_fixtures.h"

#include <cstring>

namespace auspex::checkpoint_test {
namespace {

using namespace test;

std::string file_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Checkpoint, opens_the_bundled_pair) {
    for (const char* half : {"target", "draft"}) {
        const auto opened = open_huggingface_checkpoint(std::string(AUSPEX_PAIR_DIR "/") + half);
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        const Checkpoint& checkpoint = *opened.value();
        const LlamaConfig& config = checkpoint.config();
        EXPECT_EQ(checkpoint.name(), std::string(AUSPEX_PAIR_DIR "/") + half);
        const TensorInfo* embedding = checkpoint.find("model.embed_tokens.weight");
        ASSERT_TRUE(embedding);
        EXPECT_EQ(embedding->dtype, DType::bf16);
        EXPECT_EQ(embedding->shape, (std::vector<uint64_t>{config.vocab_size, config.hidden_size}));
        EXPECT_EQ(embedding->bytes, uint64_t{2} * config.vocab_size * config.hidden_size);
        EXPECT_FALSE(checkpoint.find("lm_head.weight")); // tied
        EXPECT_FALSE(checkpoint.find("model.embed_tokens"));
        uint64_t total = embedding->bytes + checkpoint.find("model.norm.weight")->bytes;
        for (uint32_t i = 0; i < config.n_layers; ++i)
            for (const char* part :
                 {"input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj",
                  "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
                const TensorInfo* tensor =
                    checkpoint.find("model.layers." + std::to_string(i) + "." + part + ".weight");
                ASSERT_TRUE(tensor) << part;
                total += tensor->bytes;
            }
        EXPECT_EQ(total, 2 * config.n_parameters());
    }
}

TEST(Checkpoint, pieces_join_to_the_bytes_of_the_file) {
    const std::string folder = AUSPEX_PAIR_DIR "/draft";
    const auto opened = open_huggingface_checkpoint(folder);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const TensorInfo* tensor = opened.value()->find("model.layers.1.mlp.down_proj.weight");
    ASSERT_TRUE(tensor);
    std::string joined(tensor->bytes, '\0');
    for (size_t at = 0; at < joined.size();) {
        const size_t n = std::min<size_t>(joined.size() - at, 2 * (1 + at % 977));
        ASSERT_TRUE(opened.value()->read(*tensor, at, std::as_writable_bytes(std::span(joined.data() + at, n))).ok());
        at += n;
    }
    EXPECT_NE(file_bytes(folder + "/model.safetensors").find(joined), std::string::npos);
}

TEST(Checkpoint, never_reads_outside_of_a_tensor) {
    const auto opened = open_huggingface_checkpoint(AUSPEX_PAIR_DIR "/draft");
    ASSERT_TRUE(opened.ok());
    const TensorInfo tensor = *opened.value()->find("model.norm.weight");
    std::vector<std::byte> out(tensor.bytes);
    EXPECT_TRUE(opened.value()->read(tensor, 0, out).ok());
    EXPECT_TRUE(opened.value()->read(tensor, tensor.bytes, {}).ok());
    EXPECT_EQ(opened.value()->read(tensor, 2, out).code(), Code::internal);
    EXPECT_EQ(opened.value()->read(tensor, tensor.bytes + 2, {}).code(), Code::internal);
    EXPECT_EQ(opened.value()->read(tensor, ~uint64_t{0}, out).code(), Code::internal);
    TensorInfo stranger = tensor;
    stranger.name = "model.norm.bias";
    EXPECT_EQ(opened.value()->read(stranger, 0, out).code(), Code::internal);
}

TEST(Checkpoint, opens_with_a_tensor_of_integers_that_nobody_reads) {
    TempFolder folder;
    write_tiny_model(folder);
    const auto opened = open_huggingface_checkpoint(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_TRUE(opened.value()->find("lm_head.weight"));
    EXPECT_FALSE(opened.value()->find("ids"));
}

TEST(Checkpoint, refuses_weights_in_a_type_it_cannot_compute_with) {
    TempFolder folder;
    write_tiny_model(folder);
    folder.write("model.safetensors",
                 safetensors(R"({"lm_head.weight":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})", "ab"));
    const Status status = open_huggingface_checkpoint(folder.path()).status();
    expect_refused(status, Code::unsupported, folder.file("model.safetensors"), "f8");
    EXPECT_NE(status.message().find("F8_E4M3 at tensor \"lm_head.weight\""), std::string::npos) << status.message();
}

TEST(Checkpoint, says_what_lies_where_the_weights_should_be) {
    const struct {
        const char* file;
        Code code;
        const char* in_message;
    } cases[] = {
        {nullptr, Code::not_found, "found no such file"},
        {"README.md", Code::not_found, "found no such file"},
        {"Llama-Q4_K_M.gguf", Code::unsupported, "\"Llama-Q4_K_M.gguf\", a GGUF file, instead; to use it, name the file"},
        {"pytorch_model.bin", Code::unsupported, "pickle"},
        {"consolidated.00.pth", Code::unsupported, "pickle"},
        {"a\nb.gguf", Code::unsupported, "a\\x0ab.gguf"},
    };
    for (const auto& one : cases) {
        TempFolder folder;
        if (one.file) folder.write(one.file, "x"); // even without a config.json the weights are what matters
        const Status status = open_huggingface_checkpoint(folder.path()).status();
        expect_refused(status, one.code, folder.file("model.safetensors"), one.in_message);
        EXPECT_NE(status.message().find(one.in_message), std::string::npos) << status.message();
    }
}

TEST(Checkpoint, refuses_missing_folders_and_files_in_the_wrong_place) {
    TempFolder folder;
    expect_refused(open_huggingface_checkpoint(folder.file("none")).status(), Code::not_found, folder.file("none"),
                   "no folder");
    expect_refused(open_huggingface_checkpoint("").status(), Code::not_found, "", "empty name");
    folder.write("m.gguf", "GGUF");
    expect_refused(open_huggingface_checkpoint(folder.file("m.gguf")).status(), Code::unsupported,
                   folder.file("m.gguf"), "gguf");
    folder.write("m.bin", "x");
    expect_refused(open_huggingface_checkpoint(folder.file("m.bin")).status(), Code::not_found, folder.file("m.bin"),
                   "a file");

    write_tiny_model(folder);
    std::filesystem::remove(folder.file("model.safetensors"));
    std::filesystem::create_directory(folder.file("model.safetensors"));
    expect_refused(open_huggingface_checkpoint(folder.path()).status(), Code::not_found,
                   folder.file("model.safetensors"), "a folder");
    std::filesystem::remove(folder.file("model.safetensors"));
    folder.write("model.safetensors", "");
    expect_refused(open_huggingface_checkpoint(folder.path()).status(), Code::bad_file,
                   folder.file("model.safetensors"), "empty");
    std::filesystem::remove(folder.file("config.json"));
    expect_refused(open_huggingface_checkpoint(folder.path()).status(), Code::not_found, folder.file("config.json"),
                   "no config");
}

TEST(Checkpoint, survives_random_damage_to_both_files) {
    Dice dice(5);
    TempFolder folder;
    int accepted = 0;
    for (int i = 0; i < 1500; ++i) {
        write_tiny_model(folder);
        if (i % 2 == 0) folder.write("config.json", mutated(tiny_config(), dice));
        if (i % 2 == 1) folder.write("model.safetensors", safetensors(mutated(tiny_header(), dice), tiny_data()));
        const auto opened = open_huggingface_checkpoint(folder.path());
        accepted += opened.ok();
        if (!opened.ok())
            expect_refused(opened.status(), opened.status().code(), folder.path(), "mutation " + std::to_string(i));
        if (!opened.ok()) continue;
        for (const char* name : {"model.norm.weight", "lm_head.weight", "a"})
            if (const TensorInfo* tensor = opened.value()->find(name)) {
                std::vector<std::byte> out(tensor->bytes);
                EXPECT_TRUE(opened.value()->read(*tensor, 0, out).ok());
            }
    }
    EXPECT_GT(accepted, 10);
}

} // namespace
} // namespace auspex::checkpoint_test
