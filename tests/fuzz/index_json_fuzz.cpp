// model.safetensors.index.json beside a good config.json and two good shards.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "model/checkpoint/checkpoint.h"

namespace auspex::test {
namespace {

std::string shard(std::string_view header, std::string_view data) {
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size()); // below 128
    return file.append(header).append(data);
}

} // namespace

void fuzz_index_json(FuzzInput input) {
    constexpr std::string_view config =
        R"({"model_type":"llama","hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,"num_attention_heads":2,)"
        R"("num_key_value_heads":1,"head_dim":32,"vocab_size":16,"max_position_embeddings":64})";
    static const std::string one = shard(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", "abcd");
    static const std::string two = shard(R"({"b":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "efgh");
    clear_files();
    put_file(memory_folder() + "/config.json", config);
    put_file(memory_folder() + "/model.safetensors.index.json", input);
    put_file(memory_folder() + "/1.safetensors", one);
    put_file(memory_folder() + "/2.safetensors", two);
    const auto model = open_huggingface_checkpoint(memory_folder());
    if (!model.ok()) return check_refusal(model.status());
    fuzz_check(model.value()->find("a") || model.value()->find("b"), "a shard's tensors are there");
}

} // namespace auspex::test
