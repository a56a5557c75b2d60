// Safetensors in shards: the same tensors as from one file, and an index that lies.
#include "model/model_files.h"

namespace auspex::sharded_test {
namespace {

using namespace test;

std::unique_ptr<Checkpoint> small() {
    return make_synthetic_checkpoint(small_llama()).value();
}

constexpr const char* kIndexFile = "model.safetensors.index.json";

TEST(ShardedFolder, gives_the_tensors_of_one_file) {
    const auto model = make_synthetic_checkpoint(small_llama()).value();
    for (size_t n_shards : {1u, 2u, 5u}) {
        TempFolder folder;
        write_huggingface(folder, *model, n_shards);
        const auto opened = open_checkpoint(folder.path());
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        for (const auto& [name, gguf] : tensor_names(model->config())) {
            const TensorInfo *found = opened.value()->find(name), *expected = model->find(name);
            ASSERT_TRUE(found) << name;
            EXPECT_EQ(found->dtype, expected->dtype);
            EXPECT_EQ(found->shape, expected->shape);
            EXPECT_EQ(tensor_bytes(*opened.value(), name), tensor_bytes(*model, name)) << name;
        }
        EXPECT_FALSE(opened.value()->find("model.norm"));
        std::byte one;
        const TensorInfo norm = *opened.value()->find("model.norm.weight");
        EXPECT_EQ(opened.value()->read(norm, norm.bytes, {&one, 1}).code(), Code::internal);
    }
}

TEST(ShardedFolder, one_whole_file_comes_before_shards) {
    TempFolder folder;
    write_huggingface(folder, *small(), 2);
    folder.write(kIndexFile, "not read");
    write_huggingface(folder, *small());
    EXPECT_TRUE(open_checkpoint(folder.path()).ok());
}

// transformers reads whatever the named shards hold.
TEST(ShardedFolder, tensors_that_the_index_does_not_name_count) {
    TempFolder folder;
    write_huggingface(folder, *small(), 2);
    folder.write(kIndexFile, R"({"weight_map": {"model.norm.weight": ")" + shard_name(1, 2) + R"(", "lm_head.weight": ")" +
                                 shard_name(2, 2) + "\"}}");
    const auto model = small();
    const auto norm_shard = safetensors_of(*model, {"model.norm.weight", "model.embed_tokens.weight"});
    folder.write(shard_name(1, 2), norm_shard);
    folder.write(shard_name(2, 2), safetensors_of(*model, {"lm_head.weight"}));
    const auto opened = open_checkpoint(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(tensor_bytes(*opened.value(), "model.embed_tokens.weight"), tensor_bytes(*model, "model.embed_tokens.weight"));
}

TEST(ShardedFolder, refuses_an_index_that_is_none) {
    const std::string good = R"({"weight_map": {"model.norm.weight": "a.safetensors"}})";
    const struct {
        std::string text;
        const char* in_message;
    } cases[] = {
        {"", "JSON"},
        {"[]", "a list"},
        {"{}", "no weight_map"},
        {R"({"weight_map": 7})", "weight_map 7"},
        {R"({"weight_map": {}, "weight_map": {}})", "twice"},
        {R"({"weight_map": {}})", "0 shards"},
        {with(good, R"("a.safetensors")", "3"), "found 3 as the file of tensor \"model.norm.weight\""},
        {with(good, "a.s", "../a.s"), "../a.safetensors"},
        {with(good, "a.s", "/etc/a.s"), "/etc/a.safetensors"},
        {with(good, "a.s", "sub/a.s"), "sub/a.safetensors"},
        {with(good, "a.s", R"(..\\a.s)"), "as the file of"},
        {with(good, "a.s", "C:a.s"), "C:a"},
        {with(good, "a.s", ".s"), "\".safetensors\""},
        {with(good, "a.s", "a\\u0000.s"), "a\\x00"},
        {with(good, "a.safetensors", "pytorch_model.bin"), "pytorch_model.bin"},
        {with(good, "a.safetensors", ""), "the text \"\""},
        {with(good, "a.s", std::string(256, 'a') + ".s"), "aaaa"},
    };
    for (const auto& one : cases) {
        TempFolder folder;
        write_huggingface(folder, *small(), 2);
        folder.write(kIndexFile, one.text);
        const Status status = open_checkpoint(folder.path()).status();
        expect_refused(status, Code::bad_file, folder.file(kIndexFile), one.text);
        EXPECT_NE(status.message().find(one.in_message), std::string::npos) << one.in_message << " in: " << status.message();
    }
    TempFolder folder;
    write_huggingface(folder, *small(), 2);
    folder.write(kIndexFile, std::string((2u << 20) + 1, ' '));
    expect_refused(open_checkpoint(folder.path()).status(), Code::bad_file, folder.file(kIndexFile), "too large");
    std::string map;
    for (int i = 0; i < 1025; ++i)
        map += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"" + std::to_string(i) + ".safetensors\"";
    folder.write(kIndexFile, R"({"weight_map": {)" + map + "}}");
    expect_refused(open_checkpoint(folder.path()).status(), Code::bad_file, folder.file(kIndexFile), "too many shards");
}

TEST(ShardedFolder, names_the_shard_that_is_missing_or_wrong) {
    const auto model = small();
    {
        TempFolder folder;
        write_huggingface(folder, *model, 3);
        std::filesystem::remove(folder.file(shard_name(2, 3)));
        const Status status = open_checkpoint(folder.path()).status();
        expect_refused(status, Code::not_found, folder.file(shard_name(2, 3)), "missing");
        EXPECT_NE(status.message().find("download is complete"), std::string::npos) << status.message();
    }
    {
        TempFolder folder; // the index says that the second shard holds a tensor of the first
        write_huggingface(folder, *model, 2);
        folder.write(shard_name(2, 2), safetensors_of(*model, {"lm_head.weight"}));
        const Status status = open_checkpoint(folder.path()).status();
        expect_refused(status, Code::bad_file, folder.file(shard_name(2, 2)), "lacks a tensor");
        EXPECT_NE(status.message().find("found no tensor \""), std::string::npos) << status.message();
    }
    {
        TempFolder folder; // both shards hold all tensors
        write_huggingface(folder, *model, 2);
        std::vector<std::string> all;
        for (const auto& [name, gguf] : tensor_names(model->config()))
            all.push_back(name);
        folder.write(shard_name(1, 2), safetensors_of(*model, all));
        folder.write(shard_name(2, 2), safetensors_of(*model, all));
        const Status status = open_checkpoint(folder.path()).status();
        expect_refused(status, Code::bad_file, folder.file(shard_name(1, 2)), "twice");
        EXPECT_NE(status.message().find(folder.file(shard_name(2, 2))), std::string::npos) << status.message();
    }
    {
        TempFolder folder;
        write_huggingface(folder, *model, 2);
        std::filesystem::resize_file(folder.file(shard_name(2, 2)), 1000);
        expect_refused(open_checkpoint(folder.path()).status(), Code::bad_file, folder.file(shard_name(2, 2)), "cut off");
    }
    {
        TempFolder folder;
        write_huggingface(folder, *model, 2);
        std::filesystem::remove(folder.file("config.json"));
        expect_refused(open_checkpoint(folder.path()).status(), Code::not_found, folder.file("config.json"), "no config");
    }
    {
        TempFolder folder;
        write_huggingface(folder, *model);
        folder.write("model.safetensors", safetensors(R"({"model.layers.0.mlp.up_proj.qweight":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
        expect_refused(open_checkpoint(folder.path()).status(), Code::unsupported, folder.file("model.safetensors"), "GPTQ");
    }
}

TEST(ShardedFolder, survives_random_damage_to_the_index) {
    Dice dice(7);
    TempFolder folder;
    write_huggingface(folder, *small(), 2);
    std::ifstream in(folder.file(kIndexFile));
    const std::string good{std::istreambuf_iterator<char>(in), {}};
    int accepted = 0;
    for (int i = 0; i < 300; ++i) {
        folder.write(kIndexFile, mutated(good, dice));
        const auto opened = open_checkpoint(folder.path());
        accepted += opened.ok();
        if (!opened.ok()) expect_refused(opened.status(), opened.status().code(), folder.path(), "mutation " + std::to_string(i));
    }
    EXPECT_GT(accepted, 3);
    EXPECT_LT(accepted, 200);
}

// ---- which reader a path is for -----------------------------------------------------------------------------------------

TEST(OpenCheckpoint, says_what_to_name_instead) {
    TempFolder folder;
    folder.write("model.safetensors", "x");
    folder.write("model.safetensors.index.json", "x");
    folder.write("config.json", "{}");
    folder.write("pytorch_model.bin", "PK");
    folder.write("consolidated.00.pth", "PK");
    folder.write("notes.txt", "hello");
    folder.write("nothing", "");
    folder.write("wrong.gguf", "GGML....");
    folder.write("blob", "GGUF");
    const struct {
        const char* name;
        Code code;
        std::string in_message;
    } cases[] = {
        {"model.safetensors", Code::invalid_argument, "name " + folder.path()},
        {"model.safetensors.index.json", Code::invalid_argument, "name " + folder.path()},
        {"config.json", Code::invalid_argument, "name " + folder.path()},
        {"pytorch_model.bin", Code::unsupported, "pickle"},
        {"consolidated.00.pth", Code::unsupported, "pickle"},
        {"notes.txt", Code::bad_file, "found \"hell\" at its start"},
        {"nothing", Code::bad_file, "an empty file"},
        {"wrong.gguf", Code::bad_file, "GGML"},
        {"blob", Code::bad_file, "blob: found only 0 bytes left"},
        {"none", Code::not_found, "no such file or folder"},
        {"none.gguf", Code::not_found, "no such file or folder"},
    };
    for (const auto& one : cases) {
        const Status status = open_checkpoint(folder.file(one.name)).status();
        expect_refused(status, one.code, folder.file(one.name), one.name);
        EXPECT_NE(status.message().find(one.in_message), std::string::npos) << one.in_message << " in: " << status.message();
    }
    expect_refused(open_checkpoint("").status(), Code::not_found, "", "empty path");
}

TEST(OpenCheckpoint, names_the_gguf_file_that_lies_in_a_folder) {
    TempFolder folder;
    folder.write("b-00002-of-00002.gguf", "x");
    folder.write("b-00001-of-00002.gguf", "x");
    folder.write("consolidated.00.pth", "x");
    const Status status = open_checkpoint(folder.path()).status();
    expect_refused(status, Code::unsupported, folder.path(), "gguf in a folder");
    EXPECT_NE(status.message().find("\"b-00001-of-00002.gguf\""), std::string::npos) << status.message();
}

} // namespace
} // namespace auspex::sharded_test
