// Which models an engine takes and what it makes of them: padded vocabularies, GGUF files beside folders, weights in other
// types, progress, end tokens, and conversion to GGUF and back.
#include "base/resident_memory.h"
#include "formats/gguf_writer.h"
#include "model/bpe_folder.h"
#include "model/model_files.h"
#include "session/engine_fixture.h"
#include "session/models/quantize_model.h"

#include <filesystem>

namespace auspex::models_test {
namespace {

using namespace test;

constexpr uint32_t kTokens = 4096; // of the bundled tokenizer

// A model whose rows after the vocabulary shout: their logits beat all others nearly always.
class Loud : public Checkpoint {
  public:
    explicit Loud(const SyntheticModel& model) : model_(make_synthetic_checkpoint(model).value()) {}
    const LlamaConfig& config() const override { return model_->config(); }
    const std::string& name() const override { return model_->name(); }
    const TensorInfo* find(std::string_view name) const override { return model_->find(name); }
    Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
        AUSPEX_TRY(model_->read(tensor, offset, out)); // whole tensors of f32
        if (tensor.shape[0] != config().vocab_size) return ok_status();
        float* values = reinterpret_cast<float*>(out.data());
        for (uint64_t i = kTokens * tensor.shape[1]; i < out.size() / 4; ++i) values[i] *= 50;
        return ok_status();
    }

  private:
    std::unique_ptr<Checkpoint> model_;
};

void write_with_tokenizer(const TempFolder& folder, const Checkpoint& model) {
    write_huggingface(folder, model);
    std::filesystem::copy_file(std::string(AUSPEX_PAIR_DIR) + "/target/tokenizer.model", folder.file("tokenizer.model"));
}

SyntheticModel small(uint32_t vocab, uint64_t seed, bool tied) {
    return random_model({.d = 32, .layers = 1, .heads = 2, .ffn = 48, .vocab = vocab, .tied = tied, .scale = 0.3f}, seed);
}

TEST(Models, rows_after_the_vocabulary_do_not_exist) {
    for (bool tied : {false, true}) {
        TempFolder target, draft, twin;
        write_with_tokenizer(target, Loud(small(kTokens + 40, 1, tied)));
        write_with_tokenizer(draft, Loud(small(kTokens + 7, 2, tied)));
        write_with_tokenizer(twin, Loud(small(kTokens + 1, 1, tied))); // rows are a function of their number: the target's
        for (const std::string& draft_path : {draft.path(), twin.path()}) {
            EngineDesc desc;
            desc.target_path = target.path();
            desc.draft_path = draft_path;
            desc.max_sequences = 4;
            desc.max_context = 100;
            auto engine = make_engine(desc);
            ASSERT_TRUE(engine);
            EXPECT_EQ(engine->target().config().vocab_size, kTokens);
            EXPECT_EQ(engine->draft()->config().vocab_size, kTokens);
            EXPECT_EQ(engine->create_sequence({{kTokens}, 1, {}, 0, true}).status().code(), Code::invalid_argument);
            std::vector<Job> jobs;
            for (float temperature : {0.0f, 5.0f})
                for (uint32_t draft_len : {0u, 4u})
                    jobs.push_back({.prompt = random_prompt(9, kTokens, 3), .max_tokens = 30, .draft_len = draft_len, .temperature = temperature});
            const auto answers = run_jobs(*engine, jobs);
            for (size_t i = 0; i < jobs.size(); ++i)
                for (uint32_t token : answers[i].tokens) ASSERT_LT(token, kTokens) << "job " << i;
            EXPECT_EQ(answers[0].tokens, answers[1].tokens);
            if (draft_path != twin.path()) continue;
            for (const Answer& answer : answers) EXPECT_EQ(answer.stats.draft_n, answer.stats.draft_n_accepted);
        }
    }
}

TEST(Models, vocabularies_that_do_not_fit_are_refused) {
    TempFolder good, few_rows;
    write_with_tokenizer(good, Loud(small(kTokens, 1, true)));
    write_with_tokenizer(few_rows, Loud(small(kTokens - 1, 1, true)));
    auto refused = [](const std::string& target, const std::string& draft, std::optional<SyntheticModel> synthetic = {}) {
        EngineDesc desc;
        desc.target_path = target;
        desc.draft_path = draft;
        desc.draft_synthetic = synthetic;
        const auto made = Engine::create(desc, {});
        EXPECT_FALSE(made.ok());
        EXPECT_EQ(made.status().message().find('\n'), std::string::npos);
        return made.status().code();
    };
    EXPECT_EQ(refused(few_rows.path(), ""), Code::mismatch);
    EXPECT_EQ(refused(good.path(), few_rows.path()), Code::mismatch);
    EXPECT_EQ(refused("", ""), Code::invalid_argument);
}

// As files have them: control tokens, and an end among them, after what the draft knows; rows of padding after either.
TEST(Models, a_target_keeps_the_tokens_that_its_draft_lacks) {
    constexpr uint32_t n_draft = kBpeTokens;
    TempFolder longer, shorter;
    write_bpe_model(longer, 1, {"<|tool|>", "<|im_end|>"}, 7);
    write_bpe_model(shorter, 1, {}, 5);
    Job job = {.prompt = {1, n_draft, n_draft + 1, 7}, .max_tokens = 30};
    job.transforms.biases = {{n_draft, 6.0f}};
    std::vector<uint32_t> alone;
    for (const auto& [target, draft] : {std::pair(longer.path(), std::string()), std::pair(longer.path(), shorter.path()), std::pair(shorter.path(), longer.path())}) {
        EngineDesc desc;
        desc.target_path = target;
        desc.draft_path = draft;
        desc.max_context = 64;
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        const bool is_longer = target == longer.path();
        EXPECT_EQ(engine->target().config().vocab_size, n_draft + (is_longer ? 2 : 0));
        EXPECT_EQ(std::ranges::count(engine->end_ids(), n_draft + 1), is_longer ? 1 : 0);
        if (engine->draft()) { EXPECT_EQ(engine->draft()->config().vocab_size, n_draft); }
        if (!is_longer) continue;
        job.draft_len = engine->draft() ? 4 : 0;
        const Answer answer = run_job(*engine, job);
        if (alone.empty()) alone = answer.tokens;
        EXPECT_EQ(answer.tokens, alone);
        EXPECT_GT(std::ranges::count(answer.tokens, n_draft), 3);
    }
}

TEST(Models, end_tokens_are_those_of_all_files) {
    TempFolder folder;
    SyntheticModel model = small(kTokens + 3, 1, true);
    write_with_tokenizer(folder, Loud(model));
    folder.write("config.json", with(config_json(make_synthetic_checkpoint(model).value()->config()), "\"eos_token_id\": 2", "\"eos_token_id\": [7, 40]"));
    EngineDesc desc;
    desc.target_path = folder.path();
    desc.max_context = 32;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->end_ids(), (std::vector<uint32_t>{2, 7, 40})); // </s> is the vocabulary's
}

TEST(Models, weights_are_converted_and_progress_is_told) {
    const Job plain = {.prompt = {1, 403, 2501, 263, 931}, .max_tokens = 24};
    Job speculative = plain;
    speculative.draft_len = 4;
    std::vector<uint32_t> as_is;
    uint64_t whole = 0;
    for (auto [target, draft] : std::initializer_list<std::pair<std::optional<DType>, std::optional<DType>>>{
             {{}, {}}, {{}, DType::q4_0}, {DType::q8_0, DType::q4_k}}) {
        EngineDesc desc = bundled_pair(1, 128);
        desc.target_type = target;
        desc.draft_type = draft;
        std::vector<float> told;
        desc.progress = [&](float fraction) { told.push_back(fraction); };
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        // Joined matrices arrive in one piece: six tensors a layer, the embedding, the last norm.
        ASSERT_GE(told.size(), 6 * (engine->target().config().n_layers + engine->draft()->config().n_layers) + 4u);
        EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
        EXPECT_EQ(told.back(), 1.0f);
        EXPECT_LT(told[told.size() - 2], 1.0f);
        const double target_bytes = static_cast<double>(engine->target().weights().bytes()), draft_bytes = static_cast<double>(engine->draft()->weights().bytes());
        EXPECT_NEAR(told.front(), static_cast<double>(engine->target().weights().embedding.bytes()) / (target_bytes + draft_bytes), 0.02);
        const Answer answer = run_job(*engine, plain), drafted = run_job(*engine, speculative);
        EXPECT_EQ(drafted.tokens, answer.tokens);
        EXPECT_GT(drafted.stats.draft_n_accepted, 4u);
        if (!target) {
            if (as_is.empty()) as_is = answer.tokens;
            EXPECT_EQ(answer.tokens, as_is); // a draft's precision changes nothing
        }
        if (!target && !draft) whole = engine->draft()->weights().bytes();
        if (draft == DType::q4_0) { EXPECT_LT(engine->draft()->weights().bytes(), whole * 4 / 10); }
    }
    EngineDesc desc = bundled_pair(1, 128);
    desc.target_type = DType::q5_k; // read, never written
    EXPECT_EQ(Engine::create(desc, {}).status().code(), Code::unsupported);
}

// What is written is what the engine would have made of the same files, read back.
TEST(Models, conversion_keeps_every_weight_and_token) {
    const std::string source = std::string(AUSPEX_PAIR_DIR) + "/target";
    TempFolder folder;
    const Job job = {.prompt = {1, 403, 2501, 263, 931}, .max_tokens = 20};
    for (std::optional<DType> type : {std::optional<DType>(), std::optional(DType::q4_k)}) {
        const std::string path = folder.file("model.gguf"), again = folder.file("again.gguf");
        std::vector<float> told;
        const Status status = quantize_model(source, path, type, [&](float fraction) { told.push_back(fraction); }, {});
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(told.back(), 1.0f);
        auto expected = open_huggingface_checkpoint(source).value();
        if (type) expected = quantize_checkpoint(std::move(expected), *type).value();
        auto found = open_checkpoint(path);
        ASSERT_TRUE(found.ok()) << found.status().message();
        for (const auto& [name, gguf] : tensor_names(expected->config())) {
            if (expected->find(name)->shape.size() == 1) continue; // norms became f32
            EXPECT_EQ(found.value()->find(name)->dtype, expected->find(name)->dtype) << name;
            EXPECT_TRUE(tensor_bytes(*found.value(), name) == tensor_bytes(*expected, name)) << name;
        }
        EngineDesc from_folder, from_file;
        from_folder.target_path = source;
        from_folder.target_type = type;
        from_file.target_path = path;
        from_folder.max_context = from_file.max_context = 96;
        auto a = make_engine(from_folder), b = make_engine(from_file);
        ASSERT_TRUE(a && b);
        EXPECT_EQ(run_job(*a, job).tokens, run_job(*b, job).tokens);
        EXPECT_EQ(a->end_ids(), b->end_ids());
        for (const char* text : {"Once upon a time", "  two  spaces\n\tx = 1", "日本 🙂 </s> <s>"}) EXPECT_EQ(a->tokenize(text, true).value(), b->tokenize(text, true).value());
        EXPECT_TRUE(check_same_vocabulary(*a->tokenizer(), "folder", *b->tokenizer(), "file").ok());
        // A file made of a file is that file, but for the order of its keys.
        ASSERT_TRUE(quantize_model(path, again, type, {}, {}).ok());
        EXPECT_EQ(std::filesystem::file_size(again), std::filesystem::file_size(path));
        auto twice = open_checkpoint(again);
        ASSERT_TRUE(twice.ok());
        for (const auto& [name, gguf] : tensor_names(expected->config())) EXPECT_TRUE(tensor_bytes(*twice.value(), name) == tensor_bytes(*found.value(), name)) << name;
    }
    EXPECT_EQ(quantize_model("/no/such/model", folder.file("x.gguf"), {}, {}, {}).code(), Code::not_found);
    EXPECT_EQ(quantize_model(source, folder.file("x.gguf"), DType::q2_k, {}, {}).code(), Code::unsupported);
    EXPECT_FALSE(std::filesystem::exists(folder.file("x.gguf")));
}

// Whose it is and under which licence stays true of a copy; what the file says of its weights does not.
TEST(Models, conversion_keeps_what_a_file_says_of_its_origin) {
    TempFolder folder;
    ASSERT_TRUE(quantize_model(std::string(AUSPEX_PAIR_DIR) + "/draft", folder.file("a.gguf"), {}, {}, {}).ok());
    {
        const auto a = GgufFile::open(folder.file("a.gguf"));
        ASSERT_TRUE(a.ok());
        GgufWriter writer(folder.file("b.gguf"));
        for (const auto& entry : a.value().contents().entries) writer.copy(entry);
        writer.set_text("general.license", "apache-2.0");
        writer.set_texts("general.tags", std::vector<std::string>{"text", "story"});
        for (const auto& tensor : a.value().contents().tensors) writer.add_tensor(tensor.name, tensor.type, tensor.shape, tensor.room);
        ASSERT_TRUE(writer.begin().ok());
        for (const auto& tensor : a.value().contents().tensors)
            ASSERT_TRUE(writer.write(a.value().tensor_bytes(tensor, tensor.room).value()).ok());
        ASSERT_TRUE(writer.finish().ok());
    }
    const Status status = quantize_model(folder.file("b.gguf"), folder.file("c.gguf"), DType::q8_0, {}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    const auto c = GgufFile::open(folder.file("c.gguf"));
    ASSERT_TRUE(c.ok()) << c.status().message();
    EXPECT_EQ(c.value().contents().text_value("general.license"), "apache-2.0");
    ASSERT_TRUE(c.value().contents().array_value("general.tags", GgufType::string));
    EXPECT_EQ(c.value().contents().unsigned_value("general.file_type"), 7u); // q8_0
}

// tokenizer.model of 4096 pieces, two tokens beside it, and a model of some more rows: what the words are for reaches the
// engine, and a file that is made of the folder.
TEST(Models, tokens_beside_the_vocabulary_are_the_models_too) {
    TempFolder folder;
    std::filesystem::copy_file(std::string(AUSPEX_PAIR_DIR) + "/target/tokenizer.model", folder.file("tokenizer.model"));
    const auto model = make_synthetic_checkpoint(small(kTokens + 4, 3, false)).value();
    write_huggingface(folder, *model);
    const auto with_eos = [&](const char* ids) {
        folder.write("config.json", with(config_json(model->config()), "\"eos_token_id\": 2", std::string("\"eos_token_id\": ") + ids));
        EngineDesc desc;
        desc.target_path = folder.path();
        desc.max_context = 64;
        return Engine::create(desc, {});
    };
    const auto refused = [&](const char* ids, const char* part) {
        const Status status = with_eos(ids).status();
        expect_refused(status, Code::bad_file, folder.path(), ids);
        EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    };
    refused("4096", "eos_token_id 4096");
    refused("[2, 4099]", "eos_token_id 4099");
    folder.write("generation_config.json", R"({"eos_token_id": 4097})");
    refused("2", "eos_token_id 4097");
    std::filesystem::remove(folder.file("generation_config.json"));
    EXPECT_TRUE(with_eos("2").ok()) << "rows of padding";

    folder.write("added_tokens.json", R"({"<|im_end|>": 4096, "<|im_start|>": 4098})");
    refused("4097", "eos_token_id 4097"); // between the two
    auto opened = with_eos("4096");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(opened.value()->end_ids(), (std::vector<uint32_t>{2, 4096}));
    EXPECT_EQ(opened.value()->target().config().vocab_size, 4099u);
    const Status written = quantize_model(folder.path(), folder.file("model.gguf"), DType::f16, {}, {});
    ASSERT_TRUE(written.ok()) << written.message();
    EngineDesc desc;
    desc.target_path = folder.file("model.gguf");
    desc.max_context = 64;
    auto file = Engine::create(desc, {});
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file.value()->end_ids(), opened.value()->end_ids());
    EXPECT_EQ(file.value()->tokenizer()->control_token("<|im_start|>"), 4098u);

    // A control word that has no row is never said; a word of text would be, and an end is missed.
    folder.write("added_tokens.json", R"({"<pad>": 4100})");
    opened = with_eos("2");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(opened.value()->target().config().vocab_size, kTokens + 4);
    for (const char* added : {R"({"a word": 4100})", R"({"<|im_end|>": 4100})"}) {
        folder.write("added_tokens.json", added);
        EXPECT_EQ(with_eos("2").status().code(), Code::mismatch) << added;
    }
}

#ifdef __linux__
// A model larger than the memory can be converted: what was written is not kept.
TEST(Models, conversion_gives_back_what_it_has_read) {
    TempFolder folder;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(AUSPEX_PAIR_DIR) + "/target"))
        std::filesystem::copy_file(entry.path(), folder.file(entry.path().filename().string()));
    const std::string weights = folder.file("model.safetensors");
    for (std::optional<DType> type : {std::optional<DType>(), std::optional(DType::q8_0)}) {
        uint64_t most = 0, last = 0;
        const auto watch = [&](float) { most = std::max(most, last = resident_bytes(weights)); };
        const Status status = quantize_model(folder.path(), folder.file("model.gguf"), type, watch, {});
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_LT(most, std::filesystem::file_size(weights) / 2);
        EXPECT_LT(last, std::filesystem::file_size(weights) / 4);
    }
}
#endif

// Byte-level BPE with its merges and added tokens, and Llama 3's rope as a tensor of divisors.
TEST(Models, conversion_of_llama3_folders) {
    TempFolder folder;
    const std::string data = std::string(AUSPEX_TEST_DATA) + "/bpe/";
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) std::filesystem::copy_file(data + name, folder.file(name));
    auto source = open_tokenizer(folder.path());
    ASSERT_TRUE(source.ok()) << source.status().message();
    SyntheticModel shape = small(source.value()->vocab_size() + 5, 3, true);
    shape.scale = 0.5f;
    auto model = make_synthetic_checkpoint(shape).value();
    write_huggingface(folder, *model);
    folder.write("config.json", with(config_json(model->config()), "\"rms_norm_eps\"",
                                     R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, "rms_norm_eps")"));
    const std::string path = folder.file("model.gguf");
    const Status status = quantize_model(folder.path(), path, DType::f16, {}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    auto found = open_tokenizer(path);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(check_same_vocabulary(*source.value(), "folder", *found.value(), "file").ok());
    EXPECT_EQ(found.value()->vocab_size(), source.value()->vocab_size()); // padding rows stay behind
    EXPECT_EQ(found.value()->bos_id(), source.value()->bos_id());
    EXPECT_EQ(found.value()->add_bos(), source.value()->add_bos());
    EXPECT_EQ(found.value()->end_ids(), source.value()->end_ids());
    EXPECT_EQ(found.value()->chat_template(), source.value()->chat_template());
    for (const char* text : {"Hello, world! It's 12345 o'clock.", "  the  the\n\n\t end", "日本語 🙂 naïve"}) EXPECT_EQ(found.value()->encode(text).value(), source.value()->encode(text).value()) << text;
    const LlamaConfig config = open_checkpoint(path).value()->config(), expected = open_checkpoint(folder.path()).value()->config();
    EXPECT_EQ(expected.rope_scaling.kind, RopeScaling::Kind::llama3);
    EXPECT_EQ(config.rope_divisors.size(), config.head_dim / 2);
    const auto frequencies = rope_frequencies(config), wanted = rope_frequencies(expected);
    ASSERT_EQ(frequencies.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(frequencies[i] / wanted[i], 1.0, 1e-6) << i;
    EngineDesc from_folder, from_file;
    from_folder.target_path = folder.path();
    from_folder.target_type = DType::f16;
    from_file.target_path = path;
    from_folder.max_context = from_file.max_context = 100;
    auto a = make_engine(from_folder), b = make_engine(from_file);
    ASSERT_TRUE(a && b);
    const Job job = {.prompt = random_prompt(20, source.value()->vocab_size(), 1), .max_tokens = 40};
    EXPECT_EQ(run_job(*a, job).tokens, run_job(*b, job).tokens);
}

} // namespace
} // namespace auspex::models_test
