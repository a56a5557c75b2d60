// Conversations as the text that chat models were trained on. Written as parts, so that what a user typed can never
// become a control token. Built in: the four layouts that Llama-architecture models use.
#pragma once

#include "base/status.h"
#include "tokens/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

enum class ChatTemplate { llama3, llama2, zephyr, chatml };

// "llama3", "llama2", "zephyr", "chatml"; nullopt otherwise.
std::optional<ChatTemplate> chat_template_by_name(std::string_view name);
std::string_view chat_template_name(ChatTemplate chat);

// Which layout a model's own template text (Jinja) describes, by marks that only it contains; nullopt: none of them.
std::optional<ChatTemplate> recognise_chat_template(std::string_view jinja);

struct ChatPart {
    enum class Kind { text, control } kind = Kind::text;
    std::string text; // of a control part: the spelling of one control token, e.g. "<|eot_id|>"
};

struct ChatTurn {
    bool first = true;      // opens the conversation: BOS and system block go before it
    std::string system;     // only read when first; empty: the template's own default, if it has one
    std::string date;       // llama3's "Today Date: …"; empty: the template's default "26 Jul 2024"
    std::string user;
};

// Everything from the end of the previous answer (or from the start) to where the assistant begins to speak.
std::vector<ChatPart> chat_opening(ChatTemplate chat, const ChatTurn& turn);

// What the template puts after an assistant's words, before the next opening; begins with the control token that models
// generate themselves, which is then not repeated.
std::vector<ChatPart> chat_closing(ChatTemplate chat);

// Parts to ids: text parts as text, control parts as their tokens. mismatch: the vocabulary lacks one of the control
// tokens, and names it.
Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const std::vector<ChatPart>& parts);

} // namespace auspex
