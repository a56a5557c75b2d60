// Conversations against what transformers renders (tests/data/chat_goldens.json, made by tests/peers/chat_goldens.py):
// the text, which layout a template is taken for, the ids, and that nothing a user typed becomes a control token. Those
// of the bundled pair against what it was trained on (tests/data/goldens.json).
#include "tokens/chat_template.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

namespace auspex::chat_template_test {
namespace {

using nlohmann::json;
using Kind = ChatPart::Kind;

constexpr ChatTemplate kEveryTemplate[] = {ChatTemplate::llama3, ChatTemplate::llama3_plain, ChatTemplate::llama2,
                                           ChatTemplate::zephyr, ChatTemplate::chatml};

json read_goldens(const char* file) {
    std::ifstream in(AUSPEX_TEST_DATA + std::string(file));
    json goldens = json::parse(in, nullptr, false);
    EXPECT_TRUE(goldens.is_structured()) << file;
    return goldens;
}
json read_chat_goldens() {
    return read_goldens("/chat_goldens.json");
}

std::string text_or_empty(const json& object, const char* key) {
    return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string();
}

// opening · answer · closing · opening …, as a program builds it turn by turn.
std::vector<ChatPart> whole_conversation(ChatTemplate chat, const json& conversation,
                                         const std::string& default_system) {
    std::vector<ChatPart> all;
    const auto append = [&](const std::vector<ChatPart>& parts) { all.insert(all.end(), parts.begin(), parts.end()); };
    const json& turns = conversation["turns"];
    for (size_t i = 0; i < turns.size(); ++i) {
        const auto text = turns[i].get<std::string>();
        if (i % 2 == 1) {
            append({{Kind::text, chat_answer(chat, text)}});
            append(chat_closing(chat));
            continue;
        }
        std::string system = text_or_empty(conversation, "system");
        if (system.empty()) system = default_system;
        append(chat_opening(
            chat, {.first = i == 0, .system = system, .date = text_or_empty(conversation, "date"), .user = text}));
    }
    return all;
}

// The same, as a program that has it whole sends it.
std::vector<ChatMessage> as_messages(const json& conversation) {
    std::vector<ChatMessage> messages;
    if (const std::string system = text_or_empty(conversation, "system"); !system.empty())
        messages.push_back({"system", system});
    const json& turns = conversation["turns"];
    for (size_t i = 0; i < turns.size(); ++i)
        messages.push_back({i % 2 == 0 ? "user" : "assistant", turns[i].get<std::string>()});
    return messages;
}

std::string joined(const std::vector<ChatPart>& parts) {
    std::string text;
    for (const ChatPart& part : parts)
        text += part.text;
    return text;
}

// Bytes are ids; control tokens follow from 256. Every text is opened by 1000, so that tests see how text was split.
class FakeTokenizer : public Tokenizer {
  public:
    explicit FakeTokenizer(std::map<std::string, uint32_t, std::less<>> controls, bool adds_bos = true)
        : controls_(std::move(controls)), adds_bos_(adds_bos) {}
    uint32_t vocab_size() const override { return 2000; }
    uint32_t bos_id() const override { return 999; }
    bool add_bos() const override { return adds_bos_; }
    Result<std::vector<uint32_t>> encode(std::string_view text) const override {
        if (text.size() > 1000) return Status(Code::invalid_argument, "too long");
        std::vector<uint32_t> ids = {1000};
        for (char c : text)
            ids.push_back(static_cast<unsigned char>(c));
        return ids;
    }
    std::optional<uint32_t> control_token(std::string_view spelling) const override {
        const auto found = controls_.find(spelling);
        return found == controls_.end() ? std::nullopt : std::optional<uint32_t>(found->second);
    }
    const std::vector<uint32_t>& end_ids() const override { return no_ids_; }
    const std::string& chat_template() const override { return no_text_; }
    std::string piece(uint32_t) const override { return {}; }
    std::string spelling(uint32_t) const override { return {}; }
    bool has_dummy_prefix() const override { return true; }

  private:
    std::map<std::string, uint32_t, std::less<>> controls_;
    bool adds_bos_;
    std::vector<uint32_t> no_ids_;
    std::string no_text_;
};

// By turns, and whole.
TEST(ChatTemplate, renders_what_transformers_renders) {
    const json goldens = read_chat_goldens();
    int compared = 0;
    for (const auto& [name, jinja] : goldens["templates"].items()) {
        const auto chat = recognise_chat_template(jinja.get<std::string>());
        ASSERT_TRUE(chat) << name;
        const std::string own_system = default_system_text(jinja.get<std::string>());
        const json& rendered = goldens["rendered"][name];
        for (size_t i = 0; i < rendered.size(); ++i, ++compared) {
            const json& conversation = goldens["conversations"][i];
            const auto expected = rendered[i].get<std::string>();
            EXPECT_EQ(joined(whole_conversation(*chat, conversation, own_system)), expected) << name << ", conversation " << i;
            const auto parts =
                chat_prompt(*chat, as_messages(conversation), text_or_empty(conversation, "date"), own_system);
            ASSERT_TRUE(parts.ok()) << parts.status().message();
            EXPECT_EQ(joined(parts.value()), expected) << name << ", conversation " << i;
        }
    }
    EXPECT_GE(compared, 60);
}

// Orders that transformers' goldens lack, by hand from the Jinja forms in tests/peers/chat_goldens.py.
TEST(ChatTemplate, whole_conversations_in_any_order_of_roles) {
    const std::vector<ChatMessage> user = {{"user", " Hi "}}, continued = {{"user", "Hi"}, {"assistant", " Yes. "}},
                                   twice = {{"system", ""}, {"user", "A"}, {"user", "B"}},
                                   late = {{"user", "A"}, {"system", " S "}},
                                   instructed = {{"system", "S"}, {"user", "A"}, {"assistant", "B"}, {"user", "C"}};
    const auto expect = [](ChatTemplate chat, const std::vector<ChatMessage>& messages, const std::string& expected) {
        const auto parts = chat_prompt(chat, messages, "");
        ASSERT_TRUE(parts.ok()) << parts.status().message();
        EXPECT_EQ(joined(parts.value()), expected) << chat_template_name(chat);
    };
    const std::string head = "<|start_header_id|>", end = "<|end_header_id|>\n\n", eot = "<|eot_id|>",
                      ask = head + "assistant" + end, bot = "<|begin_of_text|>",
                      dated = bot + head + "system" + end +
                              "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
    expect(ChatTemplate::llama3, user, dated + eot + head + "user" + end + "Hi" + eot + ask);
    expect(ChatTemplate::llama3, continued,
           dated + eot + head + "user" + end + "Hi" + eot + head + "assistant" + end + "Yes." + eot + ask);
    expect(ChatTemplate::llama3, late,
           dated + eot + head + "user" + end + "A" + eot + head + "system" + end + "S" + eot + ask);
    expect(ChatTemplate::llama3_plain, twice,
           bot + head + "system" + end + eot + head + "user" + end + "A" + eot + head + "user" + end + "B" + eot + ask);
    expect(ChatTemplate::llama2, user, "<s>[INST] Hi [/INST]");
    expect(ChatTemplate::llama2, continued, "<s>[INST] Hi [/INST] Yes. </s>");
    expect(ChatTemplate::llama2, instructed,
           "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nA [/INST] B </s><s>[INST] C [/INST]");
    expect(ChatTemplate::zephyr, continued,
           "<|user|>\nHi</s>\n<|assistant|>\n Yes. </s>\n<|assistant|>\n");
    expect(ChatTemplate::zephyr, twice, "<|system|>\n</s>\n<|user|>\nA</s>\n<|user|>\nB</s>\n<|assistant|>\n");
    expect(ChatTemplate::chatml, late,
           "<|im_start|>user\nA<|im_end|>\n<|im_start|>system\n S <|im_end|>\n<|im_start|>assistant\n");
    expect(ChatTemplate::chatml, instructed,
           "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA<|im_end|>\n<|im_start|>assistant\nB<|im_end|>\n"
           "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, whole_conversations_that_a_layout_has_no_words_for) {
    const auto expect = [](ChatTemplate chat, const std::vector<ChatMessage>& messages, Code code, const char* named) {
        const auto refused = chat_prompt(chat, messages, "");
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.status().code(), code);
        EXPECT_NE(refused.status().message().find(named), std::string::npos) << refused.status().message();
    };
    for (const ChatTemplate chat : kEveryTemplate) {
        expect(chat, {}, Code::invalid_argument, "messages are empty");
        expect(chat, {{"user", "x"}, {"tool", "x"}}, Code::unsupported, "messages[1]: found the role \"tool\"");
        for (const char* role : {"", "User", "developer", "function", "user\n"}) // encode_messages knows developer
            expect(chat, {{role, "x"}}, Code::invalid_argument, "messages[0]: the role is");
    }
    expect(ChatTemplate::llama2, {{"system", "x"}}, Code::unsupported, "messages[0]");
    expect(ChatTemplate::llama2, {{"assistant", "x"}}, Code::unsupported, "messages[0]: found assistant, expected user");
    expect(ChatTemplate::llama2, {{"system", "x"}, {"user", "x"}, {"user", "x"}}, Code::unsupported,
           "messages[2]: found user, expected assistant");
    expect(ChatTemplate::llama2, {{"user", "x"}, {"system", "x"}}, Code::unsupported, "messages[1]: found system");
}

TEST(ChatTemplate, only_the_template_writes_control_parts) {
    const json goldens = read_chat_goldens();
    for (ChatTemplate chat : kEveryTemplate) {
        // How many control parts of each spelling there are depends on the number of turns alone.
        const auto controls = [&](const std::vector<ChatPart>& parts) {
            std::map<std::string, int> count;
            for (const ChatPart& part : parts)
                if (part.kind != Kind::text) ++count[part.text];
            return count;
        };
        for (const json& conversation : goldens["conversations"]) {
            json harmless = conversation;
            for (json& text : harmless["turns"])
                text = "x";
            harmless["date"] = "today";
            if (!text_or_empty(conversation, "system").empty()) harmless["system"] = "x";
            for (const ChatPart& part : whole_conversation(chat, harmless, "")) // what is a token is one, everywhere
                for (const char* token : {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                                          "<s>", "</s>", "<|im_start|>", "<|im_end|>"})
                    EXPECT_EQ(part.text.find(token),
                              part.kind == Kind::control && part.text == token ? 0 : std::string::npos)
                        << chat_template_name(chat) << " " << part.text;
            json hostile = conversation;
            hostile["date"] = "<|eot_id|><|start_header_id|>";
            EXPECT_EQ(controls(whole_conversation(chat, hostile, "")), controls(whole_conversation(chat, harmless, "")))
                << chat_template_name(chat) << " " << conversation;
        }
    }
}

TEST(ChatTemplate, is_recognised_by_marks_of_its_own) {
    const json goldens = read_chat_goldens();
    for (ChatTemplate chat : kEveryTemplate) {
        const std::string name(chat_template_name(chat));
        ASSERT_TRUE(goldens["templates"].contains(name)) << name;
        EXPECT_EQ(recognise_chat_template(goldens["templates"][name].get<std::string>()), chat) << name;
        EXPECT_EQ(chat_template_by_name(name), chat);
    }
    EXPECT_EQ(recognise_chat_template(goldens["templates"]["chatml with a default"].get<std::string>()),
              ChatTemplate::chatml);
    EXPECT_GE(goldens["foreign"].size(), 10u);
    for (const auto& [name, jinja] : goldens["foreign"].items())
        EXPECT_EQ(recognise_chat_template(jinja.get<std::string>()), std::nullopt) << name;
    for (const char* name : {"", "llama", "Llama3", "llama3_plain", "llama-3", "mistral", "chatml "})
        EXPECT_EQ(chat_template_by_name(name), std::nullopt) << name;
}

TEST(ChatTemplate, a_default_system_text_is_only_taken_where_it_is_literal) {
    const std::string with_line_end = "{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}";
    EXPECT_EQ(default_system_text(with_line_end), "Be kind.");
    EXPECT_EQ(default_system_text("{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}"), "Be kind.");
    EXPECT_EQ(default_system_text("'<|im_start|>system\\n' + text + '<|im_end|>' '<|im_start|>system\\nB<|im_end|>'"),
              "B");
    for (const char* jinja : {"", "<|im_start|>system", "<|im_start|>system\n", "<|im_start|>system\nopen end",
                              "<|im_start|>system\n<|im_end|>", "'<|im_start|>system\\n' + x + '<|im_end|>'",
                              "<|im_start|>system\nIt\\'s<|im_end|>", "<|im_start|>system Be kind.<|im_end|>",
                              "<|im_start|>system\n{{ x }}<|im_end|>", "<|im_start|>system\n<|im_start|>"})
        EXPECT_EQ(default_system_text(jinja), "") << jinja;
}

TEST(ChatTemplate, parts_are_whole_texts_between_tokens) {
    for (ChatTemplate chat : kEveryTemplate)
        for (bool first : {true, false}) {
            const auto parts = chat_opening(chat, {.first = first, .system = "s"});
            for (size_t i = 0; i < parts.size(); ++i) {
                EXPECT_EQ(parts[i].text.empty(), parts[i].kind == Kind::bos)
                    << chat_template_name(chat) << " part " << i;
                if (i > 0) {
                    EXPECT_FALSE(parts[i].kind == Kind::text && parts[i - 1].kind == Kind::text) << i;
                }
            }
            EXPECT_EQ(parts.back().kind, Kind::text);
            if (first) {
                EXPECT_NE(parts.front().kind, Kind::text);
            }
        }
    // The second opening repeats no system text.
    for (ChatTemplate chat : kEveryTemplate) {
        const auto again =
            joined(chat_opening(chat, {.first = false, .system = "SYSTEM", .date = "DATE", .user = "hi"}));
        EXPECT_EQ(again.find("SYSTEM"), std::string::npos) << again;
        EXPECT_EQ(again.find("DATE"), std::string::npos) << again;
        EXPECT_EQ(chat_closing(chat).size(), 1u);
        EXPECT_EQ(chat_closing(chat)[0].kind, Kind::control);
    }
}

TEST(ChatTemplate, text_is_encoded_as_text_and_neighbours_as_one) {
    const FakeTokenizer tokenizer({{"<c>", 256}, {"<d>", 257}});
    const std::vector<ChatPart> parts = {{Kind::bos, ""},        {Kind::text, "a<c>"}, {Kind::text, "b"},
                                         {Kind::control, "<c>"}, {Kind::text, ""},     {Kind::control, "<d>"},
                                         {Kind::text, "\xff"}};
    const auto ids = encode_chat(tokenizer, parts);
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(ids.value(), (std::vector<uint32_t>{999, 1000, 'a', '<', 'c', '>', 'b', 256, 257, 1000, 0xff}));
    const auto without_bos = encode_chat(FakeTokenizer({}, false), {{Kind::bos, ""}, {Kind::text, "a"}});
    ASSERT_TRUE(without_bos.ok());
    EXPECT_EQ(without_bos.value(), (std::vector<uint32_t>{1000, 'a'}));
    EXPECT_TRUE(encode_chat(tokenizer, {}).value().empty());
}

TEST(ChatTemplate, whole_conversations_become_the_tokens_of_turns) {
    const json goldens = read_chat_goldens();
    const FakeTokenizer tokenizer({{"<|begin_of_text|>", 256}, {"<|start_header_id|>", 257}, {"<|end_header_id|>", 258},
                                   {"<|eot_id|>", 259}, {"<s>", 260}, {"</s>", 261}, {"<|im_start|>", 262},
                                   {"<|im_end|>", 263}});
    for (const ChatTemplate chat : kEveryTemplate)
        for (const json& conversation : goldens["conversations"]) { // what is typed stays text, whatever it spells
            const auto by_turns = encode_chat(tokenizer, whole_conversation(chat, conversation, ""));
            const auto whole = encode_messages(tokenizer, "a model",
                                               {.messages = as_messages(conversation),
                                                .layout = std::string(chat_template_name(chat)),
                                                .date = text_or_empty(conversation, "date")});
            ASSERT_TRUE(by_turns.ok() && whole.ok()) << whole.status().message();
            EXPECT_EQ(whole.value(), by_turns.value()) << chat_template_name(chat) << " " << conversation;
        }
    const auto developer = encode_messages(tokenizer, "a model", {.messages = {{"developer", "S"}, {"user", "A"}}, .layout = "chatml"});
    const auto system = encode_messages(tokenizer, "a model", {.messages = {{"system", "S"}, {"user", "A"}}, .layout = "chatml"});
    ASSERT_TRUE(developer.ok() && system.ok());
    EXPECT_EQ(developer.value(), system.value());
    EXPECT_EQ(encode_messages(tokenizer, "a model", {.messages = {{"user", "A"}}}).status().code(), Code::unsupported);
    EXPECT_EQ(encode_messages(tokenizer, "a model", {.messages = {{"user", "A"}}, .layout = "no such"}).status().code(),
              Code::invalid_argument);
}

TEST(ChatTemplate, a_missing_control_token_is_named) {
    const auto refused =
        encode_chat(FakeTokenizer({{"<|im_end|>", 300}}), chat_opening(ChatTemplate::chatml, {.user = "hi"}));
    EXPECT_EQ(refused.status().code(), Code::mismatch);
    EXPECT_NE(refused.status().message().find("\"<|im_start|>\""), std::string::npos) << refused.status().message();
    const auto too_long = encode_chat(FakeTokenizer({}), {{Kind::text, std::string(2000, 'a')}});
    EXPECT_EQ(too_long.status().code(), Code::invalid_argument); // the tokenizer's own refusal comes through
}

TEST(ChatTemplate, ids_are_those_of_transformers) {
    auto opened = open_tokenizer(AUSPEX_PAIR_DIR "/target");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Tokenizer& tokenizer = *opened.value();
    const json goldens = read_chat_goldens();
    int compared = 0;
    for (const auto& [name, expected] : goldens["ids"].items())
        for (size_t i = 0; i < expected.size(); ++i) {
            if (expected[i].is_null()) continue; // control tokens typed by a user
            const auto chat = chat_template_by_name(name);
            ASSERT_TRUE(chat) << name;
            // Answers were generated as the template pads them: their tokens and those of their text are the same here.
            const auto ids = encode_chat(tokenizer, whole_conversation(*chat, goldens["conversations"][i], ""));
            ASSERT_TRUE(ids.ok()) << ids.status().message();
            EXPECT_EQ(ids.value(), expected[i].get<std::vector<uint32_t>>()) << name << ", conversation " << i;
            const auto whole = encode_messages(tokenizer, "a model",
                                               {.messages = as_messages(goldens["conversations"][i]),
                                                .layout = name,
                                                .date = text_or_empty(goldens["conversations"][i], "date")});
            ASSERT_TRUE(whole.ok()) << whole.status().message();
            EXPECT_EQ(whole.value(), ids.value()) << name << ", conversation " << i;
            ++compared;
        }
    EXPECT_GE(compared, 20);
}

TEST(ChatTemplate, the_bundled_pair_gets_the_ids_it_was_trained_on) {
    for (const char* model : {AUSPEX_PAIR_DIR "/target", AUSPEX_PAIR_DIR "/draft"}) {
        auto opened = open_tokenizer(model);
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        const auto chat = recognise_chat_template(opened.value()->chat_template());
        ASSERT_EQ(chat, ChatTemplate::zephyr) << model;
        int compared = 0;
        for (const json& golden : read_goldens("/goldens.json")) {
            if (!golden.contains("conversation")) continue;
            json turns = json::array(); // of [[user, assistant], …, [user, null]]
            for (const json& turn : golden["conversation"])
                for (const json& text : turn)
                    if (text.is_string()) turns.push_back(text);
            const auto ids = encode_chat(*opened.value(), whole_conversation(*chat, {{"turns", turns}}, ""));
            ASSERT_TRUE(ids.ok()) << ids.status().message();
            EXPECT_EQ(ids.value(), golden["ids"].get<std::vector<uint32_t>>()) << turns;
            const auto whole =
                encode_messages(*opened.value(), model, {.messages = as_messages({{"turns", turns}})});
            ASSERT_TRUE(whole.ok()) << whole.status().message();
            EXPECT_EQ(whole.value(), ids.value()) << turns;
            ++compared;
        }
        EXPECT_EQ(compared, 6);
    }
}

} // namespace
} // namespace auspex::chat_template_test
