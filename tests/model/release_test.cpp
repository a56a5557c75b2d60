// Tensors that were read give their files' pages back, in every kind of checkpoint over a file, and can be read again.
#ifdef __linux__
#include "base/resident_memory.h"
#include "model/model_files.h"

namespace auspex::release_test {
namespace {

using namespace test;

constexpr uint64_t kEnds = 2 * 65536; // pages that a tensor shares with its neighbours stay

class Release : public testing::Test {
  protected:
    Release() {
        SyntheticModel wide = small_llama();
        wide.config.hidden_size = 512;
        wide.config.ffn_size = 2048;
        const auto model = make_synthetic_checkpoint(wide).value();
        write_huggingface(folder_, *model);
        folder_.write("model.gguf", gguf_model(*model).bytes());
    }

    void expect_released(const Checkpoint& checkpoint, const std::string& file) {
        for (const auto& [name, gguf_name] : tensor_names(checkpoint.config()))
            tensor_bytes(checkpoint, name);
        for (const std::string name :
             {"model.layers.0.mlp.down_proj.weight", "model.layers.1.self_attn.q_proj.weight"}) {
            const std::string bytes = tensor_bytes(checkpoint, name);
            const uint64_t in_file = checkpoint.find(name)->shape[0] * checkpoint.find(name)->shape[1] * 2; // f16
            const uint64_t before = resident_bytes(file);
            ASSERT_GT(before, in_file);
            checkpoint.release(*checkpoint.find(name));
            EXPECT_LE(resident_bytes(file), before - in_file + kEnds) << name;
            EXPECT_EQ(tensor_bytes(checkpoint, name), bytes);
        }
    }

    TempFolder folder_;
};

TEST_F(Release, huggingface_folder) {
    expect_released(*open_checkpoint(folder_.path()).value(), folder_.file("model.safetensors"));
}

TEST_F(Release, gguf_file) {
    expect_released(*open_checkpoint(folder_.file("model.gguf")).value(), folder_.file("model.gguf"));
}

TEST_F(Release, converted_while_it_is_read) {
    auto source = open_checkpoint(folder_.path()).value();
    expect_released(*quantize_checkpoint(std::move(source), DType::q8_0).value(), folder_.file("model.safetensors"));
}

} // namespace
} // namespace auspex::release_test
#endif
