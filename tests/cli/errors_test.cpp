// Every bad flag and bad file is one line on stderr that names it, nothing on stdout, and the documented exit code.
#include "cli/model_copy.h"

#include <bit>
#include <filesystem>

namespace auspex::test::errors_test {

namespace {

// The weights with another header, its length adapted.
void edit_header(const ModelCopy& model, const std::string& from, const std::string& to) {
    const std::string bytes = model.read("model.safetensors");
    uint64_t header_bytes = 0;
    for (size_t i = 0; i < 8; ++i)
        header_bytes |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    const std::string header = with(bytes.substr(8, header_bytes), from, to);
    model.write("model.safetensors", safetensors(header, bytes.substr(8 + header_bytes)));
}

} // namespace

TEST(CliErrors, WordsAndFlags) {
    expect_error({"walk"}, kUsage, "walk");
    expect_error({"--bogus"}, kUsage, "--bogus");
    expect_error({"run", "--bogus"}, kUsage, "--bogus");
    expect_error({"run", "stray"}, kUsage, "stray");
    expect_error({"info", "-n", "4"}, kUsage, "-n");
    for (const char* flag : {"-p", "-f", "-n", "-m", "-md", "-s", "-c", "--temp", "--tokens", "--device", "--samples", "--drafter",
                             "--draft-len", "--top-p", "--logit-bias", "--ban", "--stop"})
        expect_error({"run", flag}, kUsage, std::string(flag) + ": expected a value");
}

TEST(CliErrors, Numbers) {
    const std::vector<std::string> junk = {
        "", "x", "1x", "1 2", "0x10", "1.5", "nan", "inf", "-2", "+1", "99999999999999999999"};
    for (const char* flag : {"-n", "-c", "-s", "--draft-len", "--samples"})
        for (const std::string& value : junk)
            expect_error({"run", flag, value}, kUsage, std::string(flag) + " ");
    for (const char* flag : {"-n", "-r", "-c", "-s", "--draft-len"})
        for (const std::string& value : junk)
            expect_error({"bench", flag, value}, kUsage, std::string(flag) + " ");
    for (const char* value : {"", "x", "nan", "inf", "-1", "-0.5", "1e999", "101", "0.0001", "1 2"})
        expect_error({"run", "--temp", value}, kUsage, "--temp");
    expect_error({"run", "-n", "0"}, kUsage, "-n 0");
    expect_error({"run", "--samples", "0"}, kUsage, "--samples 0");
    expect_error({"run", "--draft-len", "16"}, kUsage, "--draft-len 16");
    expect_error({"bench", "--draft-len", "0"}, kUsage, "--draft-len 0");
    expect_error({"bench", "--draft-len", "4,16"}, kUsage, "--draft-len 16");
    expect_error({"bench", "-r", "0"}, kUsage, "-r 0");
    expect_error({"bench", "-n", "8,0"}, kUsage, "-n 0");
    for (const char* flag : {"-p", "-d", "--rows", "--alpha", "--peak"})
        for (const char* value : {"", "x", "-2", "nan"})
            expect_error({"bench", flag, value}, kUsage, std::string(flag) + " ");
    expect_error({"bench", "-p", "Once upon a time"}, kUsage, "--prompt TEXT");
    expect_error({"bench", "--rows", "17"}, kUsage, "--rows 17");
    expect_error({"bench", "--alpha", "1.5"}, kUsage, "--alpha 1.5");
    expect_error({"bench", "--alpha", "0.5", "--acceptance", "coupled"}, kUsage, "--acceptance coupled");
    expect_error({"bench", "--alpha", "0.5", "--lenience", "0.5"}, kUsage, "--lenience");
    expect_error({"bench", "--alpha", "0.5", "--no-draft"}, kUsage, "--no-draft");
    expect_error({"bench", "--prompt", "a", "-f", "b"}, kUsage, "-f");
    expect_error({"bench", "--prompt", "a", "-d", "8"}, kUsage, "-d and --prompt");
}

// A line of a screen or two, whatever was given; the flag, its beginning and what is expected stay.
TEST(CliErrors, LongValuesAreShortened) {
    std::string ids = "5000";
    for (uint32_t id = 0; id < 5000; ++id)
        ids += "," + std::to_string(id);
    const std::string junk(100000, 'x');
    const std::vector<std::vector<std::string>> commands = {
        {"run", "-p", "a", "--ban", ids}, {"run", "-p", "a", "--ban", junk}, {"run", "-p", "a", "--logit-bias", junk},
        {"run", "--tokens", junk},        {"run", "-n", junk},               {"run", "--drafter", junk},
        {"run", "--cache-type", junk},    {"run", junk},                     {"bench", "--shape", junk},
        {"run", "--device", junk},        {"run", "-m", junk},               {"tokenize", "--detokenize", "-p", junk}};
    for (const auto& command : commands) {
        const CliResult result = run_cli(command);
        EXPECT_TRUE(result.exit_code == kUsage || result.exit_code == kFile || result.exit_code == kDevice) << result.err;
        EXPECT_LT(result.err.size(), 700u) << result.err.substr(0, 700);
    }
    expect_error({"run", "-p", "a", "--ban", ids}, kUsage, "tokens in all");
}

TEST(CliErrors, Choices) {
    expect_error({"run", "--top-k", "-1"}, kUsage, "--top-k -1: expected 0 (all tokens) or a whole number from 1");
    EXPECT_EQ(run_cli({"run", "-n", "2", "--quant", "Q8_0", "--cache-type", "F32"}).exit_code, 0);
    expect_error({"run", "--color", "red"}, kUsage, "--color red");
    expect_error({"run", "--cache-type", "q4_0"}, kUsage, "--cache-type q4_0");
    expect_error({"run", "-p", "a", "-f", "b"}, kUsage, "-f");
    expect_error({"run", "-p", "a", "--tokens", "1"}, kUsage, "--tokens");
    expect_error({"run", "--no-draft", "--draft-len", "4"}, kUsage, "--no-draft");
    expect_error({"bench", "-m", kTarget, "--draft-len", "4"}, kUsage, "-md");
    expect_error({"run", "-m", ""}, kUsage, "-m");
    expect_error({"run", "-md", ""}, kUsage, "-md");
    expect_error({"info", "-m", ""}, kUsage, "-m");
    expect_error({"run", "--device", ""}, kUsage, "--device");
}

TEST(CliErrors, WeightTypesAndConversations) {
    expect_error({"run", "--quant", "q5_0"}, kUsage, "--quant q5_0");
    expect_error({"run", "--draft-quant", ""}, kUsage, "--draft-quant");
    expect_error({"chat", "--chat-template", "vicuna"}, kUsage, "llama3|llama3-plain|llama2|zephyr|chatml");
    expect_error({"run", "-p", "a", "--system", "b"}, kUsage, "--chat");
    expect_error({"run", "--chat", "--tokens", "1"}, kUsage, "--tokens");
    expect_error({"run", "--chat"}, kUsage, "-p");
    expect_error({"run", "--chat", "-f", "-"}, kUsage, "zero byte",
                 {.input = std::string("a\0b", 3), .has_input = true});
    expect_error({"run", "--chat", "-p", "a", "--chat-template", "llama3"}, kFile, "<|begin_of_text|>");
    expect_error({"chat", "--no-draft", "--draft-len", "4"}, kUsage, "--no-draft");
    expect_error({"chat", "-m", ""}, kUsage, "-m");
    for (const char* flag : {"-n", "-c", "-s", "--draft-len", "--temp"})
        expect_error({"chat", flag, "x"}, kUsage, std::string(flag) + " x");
}

TEST(CliErrors, Shapes) {
    for (const char* shape :
         {"", "d=64", "d=0,layers=1,ffn=64,heads=2,vocab=100", "colour=3", "d", "d=64,d=x",
          "d=64,layers=1,ffn=64,heads=2,vocab=100,dtype=q4", "d=64,layers=1,ffn=64,heads=2,vocab=100,tied=2",
          "d=64,layers=1,ffn=64,heads=3,kv_heads=2,head_dim=32,vocab=100",
          "d=64,layers=1,ffn=64,heads=2,head_dim=40,vocab=100"}) {
        expect_error({"bench", "--shape", shape}, kUsage, "--shape");
        expect_error({"bench", "--draft-shape", shape}, kUsage, "--draft-shape");
    }
    const std::string shape = "d=64,layers=1,ffn=64,heads=2,vocab=100";
    expect_error({"bench", "--shape", shape, "-m", kTarget}, kUsage, "--shape");
    expect_error({"bench", "--shape", shape, "--prompt", "text"}, kUsage, "--prompt");
    expect_error({"bench", "--shape", shape, "-f", "text"}, kUsage, "-f");
    expect_error({"bench", "--shape", shape + ",dtype=q4_0,on=host"}, kUsage, "on=host");
    expect_error({"bench", "--shape", shape + ",on=moon"}, kUsage, "on=moon");
    expect_error({"bench", "--shape", "llama-3.2-70b"}, kUsage, "llama-3.2-1b");
    expect_error({"bench", "--shape", "llama-3.2-1b,d=0"}, kUsage, "d=");
    expect_error({"bench", "--draft-shape", shape, "-md", kDraft}, kUsage, "--draft-shape");
}

TEST(CliErrors, Prompts) {
    expect_error({"run", "-p", ""}, kUsage, "-p");
    expect_error({"run", "--prompt="}, kUsage, "-p");
    expect_error({"run", "-f", "/dev/null"}, kUsage, "-f /dev/null");
    expect_error({"run", "-f", "-"}, kUsage, "stdin", {.input = "", .has_input = true});
    expect_error({"run", "-m", kTarget}, kUsage, "stdin", {.input = "\n", .has_input = true});
    expect_error({"run", "-p", "caf\xe9"}, kUsage, "-p");
    expect_error({"run", "-p", "\xed\xa0\x80"}, kUsage, "UTF-8"); // a surrogate
    expect_error({"run", "-f", "/nonexistent"}, kFile, "-f /nonexistent");
    expect_error({"run", "-f", "/"}, kFile, "-f /");
    expect_error({"run", "-f", "/dev/zero"}, kFile, "-f /dev/zero");
    for (const char* tokens : {"", "1,,2", "1,", "a", "-1", "1 2,x", "4294967296"})
        expect_error({"run", "--tokens", tokens}, kUsage, "--tokens");
    expect_error({"run", "--tokens", "1,4096"}, kUsage, "--tokens");
}

TEST(CliErrors, PromptThatDoesNotFit) {
    std::string text;
    for (int i = 0; i < 1100; ++i)
        text += " fox";
    expect_error({"run", "-p", text}, kCapacity, "-p");
    expect_error({"run", "-c", "8"}, kCapacity, "-c");
    expect_error({"bench", "-n", "1100"}, kCapacity, "-n 1100");
    expect_error({"bench", "-p", "1024", "-n", "1"}, kCapacity, "-p 1024");
    expect_error({"bench", "-p", "0", "-n", "400", "-d", "700", "--no-draft"}, kCapacity, "-n 400");
}

TEST(CliErrors, ContextBeyondTheModel) {
    expect_error({"run", "-c", "100000"}, kUsage, "-c 100000");
}

TEST(CliErrors, UnknownDevice) {
    expect_error({"run", "--device", "no such device"}, kDevice, "--device no such device");
    expect_error({"run", "--device", "99"}, kDevice, "--device 99");
    expect_error({"bench", "--device", "-1"}, kDevice, "--device -1");
}

// The Vulkan loader finds drivers through these; a file that does not exist leaves none. Installed ones whose hardware is
// not in this machine answer in their own ways.
TEST(CliErrors, NoDriver) {
    std::vector<std::string> files = {"/nonexistent.json"};
    std::error_code error;
    for (std::filesystem::directory_iterator at("/usr/share/vulkan/icd.d", error), end; !error && at != end; at.increment(error)) {
        const std::string path = at->path().string();
        const CliSetting only = {.environment = {{"VK_DRIVER_FILES", path.c_str()}, {"VK_ICD_FILENAMES", path.c_str()}}};
        if (run_cli({"info"}, only).exit_code != 0) files.push_back(path);
    }
    for (const std::string& file : files)
        for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
            const bool is_older = variable == std::string("VK_ICD_FILENAMES");
            const CliSetting none = {.environment = {{"VK_ICD_FILENAMES", file.c_str()},
                                                     {"VK_DRIVER_FILES", is_older ? nullptr : file.c_str()}}};
            for (const char* command : {"run", "info", "bench", "score", "selftest", "tune"}) {
                const CliSetting setting = {.input = "a", .has_input = true, .environment = none.environment};
                expect_error({command}, kDevice, std::string("no Vulkan device was found by ") + variable + "=" + file, setting);
                expect_error({command}, kDevice, "mesa-vulkan-drivers", setting);
                expect_error({command}, kDevice, "group render", setting);
            }
        }
}

TEST(CliErrors, MissingModels) {
    for (const char* path : {"/nonexistent", "/nonexistent.gguf", "meta-llama/Llama-3.2-1B"}) {
        const std::string named = std::string(path) + ": found no such file or folder", from = "huggingface.co";
        for (const char* command : {"run", "bench", "info", "tokenize", "score", "selftest", "tune", "chat"}) {
            expect_error({command, "-m", path}, kFile, named, {.input = "a", .has_input = true});
            expect_error({command, "-m", path}, kFile, from, {.input = "a", .has_input = true});
        }
        expect_error({"run", "-md", path}, kFile, named);
        expect_error({"quantize", path, "out.gguf", "--type", "q8_0"}, kFile, named);
    }
    expect_error({"run", "-m", kTarget + "/config.json"}, kFile, "config.json");
    for (const char* name : {"config.json", "model.safetensors"}) {
        const ModelCopy model(kDraft);
        model.remove(name);
        expect_error({"run", "-n", "2", "-m", model.path()}, kFile, model.file(name));
    }
    const ModelCopy model(kDraft);
    model.remove("tokenizer.model"); // other files would do as well
    expect_error({"run", "-n", "2", "-m", model.path()}, kFile, model.path() + ": found neither tokenizer.model");
    for (const char* command : {"tokenize", "score", "info"})
        expect_error({command, "-m", kTarget + "/config.json"}, kFile, "config.json",
                     {.input = "a", .has_input = true});
}

TEST(CliErrors, DamagedConfig) {
    const auto expect_refused = [](const std::string& from, const std::string& to) {
        const ModelCopy model(kDraft);
        model.edit("config.json", from, to);
        expect_error({"run", "-n", "2", "-m", model.path()}, kFile, model.path());
    };
    expect_refused("\"hidden_size\": 128", "\"hidden_size\": NaN");
    expect_refused("\"hidden_size\": 128", "\"hidden_size\": -128");
    expect_refused("\"hidden_size\": 128", "\"hidden_size\": 1e30");
    expect_refused("\"hidden_size\": 128", "\"hidden_size\": 256");
    expect_refused("\"hidden_size\": 128", "\"hidden_size\": 128,,");
    expect_refused("LlamaForCausalLM", "GPT2LMHeadModel");
}

TEST(CliErrors, DamagedWeights) {
    const auto expect_refused = [](const ModelCopy& model) {
        expect_error({"run", "-n", "2", "-m", model.path()}, kFile, model.file("model.safetensors"));
    };
    for (const size_t n_bytes : {size_t{0}, size_t{7}, size_t{8}, size_t{500}, size_t{1000000}}) {
        const ModelCopy model(kDraft);
        model.write("model.safetensors", model.read("model.safetensors").substr(0, n_bytes));
        expect_refused(model);
    }
    for (const size_t byte : {size_t{0}, size_t{3}, size_t{7}}) { // the header's length
        const ModelCopy model(kDraft);
        std::string bytes = model.read("model.safetensors");
        bytes[byte] = '\x7f';
        model.write("model.safetensors", bytes);
        expect_refused(model);
    }
    for (const auto& [from, to] : {std::pair{"\"BF16\"", "\"F32\""}, std::pair{"[4096,128]", "[4096,129]"},
                                   std::pair{"\"data_offsets\":[0,", "\"data_offsets\":[2,"}}) {
        const ModelCopy model(kDraft);
        edit_header(model, from, to);
        expect_refused(model);
    }
    const ModelCopy model(kDraft);
    model.write("model.safetensors", model.read("model.safetensors") + "more");
    expect_refused(model);
}

// A model whose logits are no numbers says nothing, whatever is asked of it: every command that reads logits tells.
TEST(CliErrors, LogitsThatAreNotFinite) {
    for (const uint16_t bits : std::initializer_list<uint16_t>{0x7fc0, 0x7f80, 0xff80, 0x7f7f}) { // NaN, +inf, -inf, the largest finite number, in bf16
        const ModelCopy model(kTarget);
        model.fill("model.norm.weight", bits);
        const std::string named = model.path() + ": found logits";
        std::vector<std::vector<std::string>> commands = {{"run", "-n", "8", "-p", "Once", "--temp", "1", "-s", "1"},
                                                          {"score", "-p", "Once upon a time"}};
        if (bits == 0x7fc0)
            commands.insert(commands.end(), {{"run", "-n", "8", "-p", "Once"},
                                             {"run", "-n", "8", "-p", "Once", "--json"},
                                             {"run", "-n", "8", "-p", "Once", "--top-k", "5", "--temp", "1"},
                                             {"run", "-n", "8", "-p", "Once", "--samples", "2", "--temp", "1"},
                                             {"run", "-n", "8", "-p", "Once", "-md", kDraft, "--draft-len", "2"},
                                             {"bench", "-n", "8", "-r", "1", "--no-draft"},
                                             {"selftest"}});
        for (std::vector<std::string> command : commands) {
            command.insert(command.begin() + 1, {"-m", model.path()});
            const CliResult result = run_cli(command);
            EXPECT_EQ(result.exit_code, kFile) << command[0] << " " << bits << ": " << result.out << result.err;
            EXPECT_NE(result.err.find(named), std::string::npos) << command[0] << " " << bits << ": " << result.err;
        }
        if (bits != 0x7fc0) continue;
        const CliResult chat = run_cli({"chat", "-m", model.path(), "--chat-template", "zephyr"}, {.input = "Hello\n", .has_input = true});
        EXPECT_EQ(chat.exit_code, kFile) << chat.err;
        // A draft of that kind is another matter: its proposals come to nothing.
        const std::vector<std::string> pair = {"run", "-n", "8", "-p", "Once", "-m", kTarget, "-md", model.path(), "--draft-len", "2"};
        EXPECT_EQ(run_cli(pair).exit_code, 0);
    }
}

TEST(CliErrors, MismatchedPair) {
    const ModelCopy draft(kDraft);
    // Two pieces of equal length change places: the same sizes, another vocabulary.
    std::string bytes = draft.read("tokenizer.model");
    const size_t was = bytes.find("\xe2\x96\x81was"), his = bytes.find("\xe2\x96\x81his");
    ASSERT_NE(was, std::string::npos);
    ASSERT_NE(his, std::string::npos);
    for (size_t i = 0; i < 6; ++i)
        std::swap(bytes[was + i], bytes[his + i]);
    draft.write("tokenizer.model", bytes);
    expect_error({"run", "-n", "2", "-m", kTarget, "-md", draft.path()}, kFile, draft.path());
}

} // namespace auspex::test::errors_test
