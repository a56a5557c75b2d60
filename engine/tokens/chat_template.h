// Conversations as the text that chat models were trained on. Written as parts, so that what a user typed can never
// become a control token. Built in: the layouts that Llama-architecture models use; other Jinja text is not run.
//
// A conversation is opening(first) · answer · closing · opening · answer · closing · opening …, where the answers are
// the tokens that the model generated (or chat_answer of text from elsewhere).
#pragma once

#include "base/status.h"
#include "tokens/tokenizer.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

enum class ChatTemplate {
    llama3,       // Llama 3.1, 3.2, 3.3: a system block with two dates always opens the conversation
    llama3_plain, // Llama 3: the same blocks, no dates, no system block unless there is a system text
    llama2,       // [INST] <<SYS>> … [/INST], BOS before every turn
    zephyr,       // TinyLlama-Chat: <|user|> and its like are text, </s> is a control token
    chatml,       // <|im_start|>user … <|im_end|>
};

// "llama3", "llama3-plain", "llama2", "zephyr", "chatml"; nullopt otherwise.
std::optional<ChatTemplate> chat_template_by_name(std::string_view name);
std::string_view chat_template_name(ChatTemplate chat);

inline constexpr uint64_t kMaxTemplateBytes = 1u << 20; // of a model's own template text; Llama 3.2: 4 KB

// Which layout a model's own template text (Jinja) describes, by marks that only it contains; nullopt: none of them, or
// more than one. Strict, because a layout that is almost right quietly makes answers worse.
std::optional<ChatTemplate> recognise_chat_template(std::string_view jinja);

// The system text that a chatml template writes where a conversation brings none (SmolLM does); empty: it writes none.
std::string default_system_text(std::string_view jinja);

struct ChatPart {
    enum class Kind {
        text,
        control, // one control token, spelled by `text`, e.g. "<|eot_id|>"
        bos,     // the vocabulary's BOS if it adds one, else nothing; `text` is empty
    } kind = Kind::text;
    std::string text;
};

struct ChatTurn {
    bool first = true;       // opens the conversation: BOS and system block go before it
    std::string system = {}; // only read when first; empty: the conversation brings none
    std::string date = {};   // llama3's "Today Date: …"; empty: the template's default "26 Jul 2024"
    std::string user = {};
};

// Everything from the end of the previous answer (or from the start) to where the assistant begins to speak. No two
// text parts follow each other.
std::vector<ChatPart> chat_opening(ChatTemplate chat, const ChatTurn& turn);

// What follows an assistant's words: the control token that models generate themselves, and that is then not repeated.
std::vector<ChatPart> chat_closing(ChatTemplate chat);

// An answer that comes as text (a request's history) as the template writes it: trimmed or padded. Answers that were
// generated keep their tokens instead.
std::string chat_answer(ChatTemplate chat, std::string_view answer);

// What somebody said.
struct ChatMessage {
    std::string role = {}; // system, user, assistant
    std::string content = {};
};

// A whole conversation, as the layout's template writes it, and the opening of the assistant's next words; equals the
// turns built one by one. A system message that opens it counts as such even if it is empty. Where the assistant spoke
// last its next turn follows: no message is continued. date: as ChatTurn's; own_system: for what brings no system text.
// invalid_argument: no messages, no such role; unsupported: a tool's, or an order that the layout has no words for.
Result<std::vector<ChatPart>> chat_prompt(ChatTemplate chat, std::span<const ChatMessage> messages,
                                          const std::string& date, const std::string& own_system = {});

// Parts to ids: text parts as text, neighbouring ones as one text; control parts as their tokens. Every text counts as
// a text of its own, with the dummy prefix where the vocabulary has one, as SentencePiece models are trained. mismatch:
// the vocabulary lacks one of the control tokens, and names it.
Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const std::vector<ChatPart>& parts);

// What is said next in a conversation, and how the model wants it written.
struct ChatRequest {
    ChatTurn turn = {};
    std::optional<std::string> layout = {}; // its name; none: the one that the model's own template describes
    bool default_system = false; // without a layout by name: the template's own system text takes turn.system's place
    bool answer_ended = false;   // unless first: the answer before has its end token
};
// The tokens from the end of the answer before to the assistant's words. model: its name, for messages.
// invalid_argument: no such layout; unsupported: the model's own is not known.
Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const std::string& model, ChatRequest request);

// A conversation that comes as a whole.
struct MessagesRequest {
    std::vector<ChatMessage> messages = {}; // developer is another word for system
    std::optional<std::string> layout = {}; // as ChatRequest's; none: the template's own system text opens what brings none
    std::string date = {};
};
// The tokens of the conversation to the assistant's words. As encode_chat, and as chat_prompt.
Result<std::vector<uint32_t>> encode_messages(const Tokenizer& tokenizer, const std::string& model,
                                              MessagesRequest request);

} // namespace auspex
