// Renders conversations in the layouts that Llama-architecture models were trained on, and tells which one a model's
// own template describes. tests/peers/chat_goldens.py holds the Jinja forms; the text here equals what they give.
#include "tokens/chat_template.h"

#include <algorithm>
#include <array>

namespace auspex {
namespace {

struct Layout {
    ChatTemplate chat;
    std::string_view name;
    std::string_view end_of_turn; // the control token after an assistant's words
};
constexpr std::array kLayouts = {
    Layout{ChatTemplate::llama3, "llama3", "<|eot_id|>"},
    Layout{ChatTemplate::llama3_plain, "llama3-plain", "<|eot_id|>"},
    Layout{ChatTemplate::llama2, "llama2", "</s>"},
    Layout{ChatTemplate::zephyr, "zephyr", "</s>"},
    Layout{ChatTemplate::chatml, "chatml", "<|im_end|>"},
};
const Layout& layout_of(ChatTemplate chat) {
    return *std::find_if(kLayouts.begin(), kLayouts.end(), [&](const Layout& layout) { return layout.chat == chat; });
}

constexpr std::string_view kLlama3DefaultDate = "26 Jul 2024";

// What Jinja's trim removes: Python's str.isspace, in UTF-8.
constexpr std::string_view kWhiteSpace[] = {
    " ",
    "\n",
    "\r",
    "\t",
    "\v",
    "\f",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x1f",
    "\xc2\x85",
    "\xc2\xa0",
    "\xe1\x9a\x80",
    "\xe2\x80\x80",
    "\xe2\x80\x81",
    "\xe2\x80\x82",
    "\xe2\x80\x83",
    "\xe2\x80\x84",
    "\xe2\x80\x85",
    "\xe2\x80\x86",
    "\xe2\x80\x87",
    "\xe2\x80\x88",
    "\xe2\x80\x89",
    "\xe2\x80\x8a",
    "\xe2\x80\xa8",
    "\xe2\x80\xa9",
    "\xe2\x80\xaf",
    "\xe2\x81\x9f",
    "\xe3\x80\x80",
};
std::string trimmed(std::string_view text) {
    const auto length_where = [](auto matches) {
        const auto found = std::find_if(std::begin(kWhiteSpace), std::end(kWhiteSpace), matches);
        return found == std::end(kWhiteSpace) ? size_t{0} : found->size();
    };
    while (const size_t n = length_where([&](std::string_view space) { return text.starts_with(space); }))
        text.remove_prefix(n);
    while (const size_t n = length_where([&](std::string_view space) { return text.ends_with(space); }))
        text.remove_suffix(n);
    return std::string(text);
}

class PartWriter {
  public:
    void bos() { parts_.push_back({ChatPart::Kind::bos, {}}); }
    void control(std::string_view spelling) { parts_.push_back({ChatPart::Kind::control, std::string(spelling)}); }
    void text(std::string_view text) {
        if (text.empty()) return;
        if (parts_.empty() || parts_.back().kind != ChatPart::Kind::text) parts_.emplace_back();
        parts_.back().text += text;
    }
    std::vector<ChatPart> finish() { return std::move(parts_); }

  private:
    std::vector<ChatPart> parts_;
};

// A layout: what opens a conversation, a message, and the opening of the assistant's words. A system message is one only
// where it opens the conversation; elsewhere it is written as the published templates write it there.
class LayoutWriter {
  public:
    explicit LayoutWriter(ChatTemplate chat) : chat_(chat) {}

    void begin() {
        switch (chat_) {
        case ChatTemplate::llama3:
        case ChatTemplate::llama3_plain:
            out_.control("<|begin_of_text|>");
            break;
        case ChatTemplate::llama2: // has a BOS before every turn
            break;
        case ChatTemplate::zephyr:
        case ChatTemplate::chatml:
            out_.bos();
            break;
        }
    }

    // Null: the conversation brings none. date: of llama3.
    void system(const std::string* text, std::string_view date) {
        switch (chat_) {
        case ChatTemplate::llama3:
            llama3_block("system", "Cutting Knowledge Date: December 2023\nToday Date: " +
                                       std::string(date.empty() ? kLlama3DefaultDate : date) + "\n\n" +
                                       (text ? trimmed(*text) : std::string()));
            break;
        case ChatTemplate::llama2:
            if (text) before_user_ = "<<SYS>>\n" + *text + "\n<</SYS>>\n\n";
            break;
        default:
            if (text) message("system", *text);
        }
    }

    void message(const std::string& role, const std::string& content) {
        switch (chat_) {
        case ChatTemplate::llama3:
        case ChatTemplate::llama3_plain:
            llama3_block(role, trimmed(content));
            break;
        case ChatTemplate::llama2:
            llama2_message(role, content);
            break;
        case ChatTemplate::zephyr:
            out_.text("<|" + role + "|>\n" + content);
            out_.control("</s>");
            out_.text("\n");
            break;
        case ChatTemplate::chatml:
            out_.control("<|im_start|>");
            out_.text(role + "\n" + content);
            out_.control("<|im_end|>");
            out_.text("\n");
            break;
        }
    }

    // The line of the answer before, whose end token is written.
    void end_line() {
        if (chat_ == ChatTemplate::zephyr || chat_ == ChatTemplate::chatml) out_.text("\n");
    }

    void assistant_speaks() {
        switch (chat_) {
        case ChatTemplate::llama3:
        case ChatTemplate::llama3_plain:
            llama3_header("assistant");
            break;
        case ChatTemplate::llama2: // what the user says ends with [/INST], which is all
            break;
        case ChatTemplate::zephyr:
            out_.text("<|assistant|>\n");
            break;
        case ChatTemplate::chatml:
            out_.control("<|im_start|>");
            out_.text("assistant\n");
            break;
        }
    }

    std::vector<ChatPart> finish() { return out_.finish(); }

  private:
    void llama3_header(std::string_view role) {
        out_.control("<|start_header_id|>");
        out_.text(role);
        out_.control("<|end_header_id|>");
        out_.text("\n\n");
    }

    void llama3_block(std::string_view role, const std::string& content) {
        llama3_header(role);
        out_.text(content);
        out_.control("<|eot_id|>");
    }

    void llama2_message(const std::string& role, const std::string& content) {
        if (role == "assistant") {
            out_.text(" " + trimmed(content) + " ");
            out_.control("</s>");
            return;
        }
        // Trimmed together: the system text keeps its spaces, and so does the start of what the user says after it.
        out_.control("<s>");
        out_.text("[INST] " + trimmed(before_user_ + content) + " [/INST]");
        before_user_.clear();
    }

    ChatTemplate chat_;
    PartWriter out_;
    std::string before_user_; // llama2's system text goes into what the user says first
};

bool contains(std::string_view text, std::string_view what) {
    return text.find(what) != std::string_view::npos;
}

// "[INST]" written right after the BOS in every turn; Mistral's templates have it once at the start instead.
bool looks_like_llama2(std::string_view jinja) {
    if (!contains(jinja, "<<SYS>>") || !contains(jinja, "[/INST]")) return false;
    constexpr size_t reach = 16; // "bos_token + '"
    for (size_t at = jinja.find("[INST]"); at != std::string_view::npos; at = jinja.find("[INST]", at + 1)) {
        const std::string_view before = jinja.substr(at - std::min(at, reach), std::min(at, reach));
        if (contains(before, "bos_token") || contains(before, "<s>")) return true;
    }
    return false;
}

// What users say ends with </s>. Tulu and Phi have the same marks and end it otherwise.
bool looks_like_zephyr(std::string_view jinja) {
    constexpr std::string_view mark = "<|user|>";
    const size_t at = jinja.find(mark);
    if (at == std::string_view::npos || !contains(jinja, "<|assistant|>")) return false;
    const std::string_view rest = jinja.substr(at + mark.size());
    const std::string_view line = rest.substr(0, rest.find("<|"));
    return contains(line, "eos_token") || contains(line, "</s>");
}

// The layout of that name, or the one that the model's own template describes.
Result<ChatTemplate> choose_layout(const Tokenizer& tokenizer, const std::string& model,
                                   const std::optional<std::string>& name) {
    std::string known;
    for (const Layout& layout : kLayouts)
        known += (known.empty() ? "" : ", ") + std::string(layout.name);
    if (name) {
        if (auto chosen = chat_template_by_name(*name)) return *chosen;
        return Status(Code::invalid_argument,
                      "the chat template is " + in_quotes(*name) + ", expected one of " + known);
    }
    if (auto own = recognise_chat_template(tokenizer.chat_template())) return *own;
    const char* found = tokenizer.chat_template().empty() ? "no chat template" : "a chat template that is not known";
    return Status(Code::unsupported, model + ": found " + found + "; name the one it was trained with: " + known);
}

constexpr const char* kRoles = "expected system, developer, user or assistant";

std::string in_message(size_t index) {
    return "messages[" + std::to_string(index) + "]: ";
}

// Whether the layout can write these roles in this order.
Status check_messages(ChatTemplate chat, std::span<const ChatMessage> messages) {
    if (messages.empty()) return {Code::invalid_argument, "messages are empty, expected at least one"};
    for (size_t i = 0; i < messages.size(); ++i) {
        const std::string& role = messages[i].role;
        if (role == "tool")
            return {Code::unsupported, in_message(i) + "found the role \"tool\", which is not supported yet; " + kRoles};
        if (role != "system" && role != "user" && role != "assistant")
            return {Code::invalid_argument, in_message(i) + "the role is " + in_quotes(role) + "; " + kRoles};
    }
    if (chat != ChatTemplate::llama2) return ok_status();
    const size_t begin = messages.front().role == "system" ? 1 : 0; // opens the conversation
    if (begin == messages.size())
        return {Code::unsupported, in_message(0) + "llama2 writes a system text into what the user says, "
                                                   "expected a message of the user after it"};
    for (size_t i = begin; i < messages.size(); ++i)
        if (const char* expected = (i - begin) % 2 == 0 ? "user" : "assistant"; messages[i].role != expected)
            return {Code::unsupported, in_message(i) + "found " + messages[i].role + ", expected " + expected +
                                           ": in llama2 user and assistant speak in turn"};
    return ok_status();
}

} // namespace

std::optional<ChatTemplate> chat_template_by_name(std::string_view name) {
    for (const Layout& layout : kLayouts)
        if (layout.name == name) return layout.chat;
    return std::nullopt;
}

std::string_view chat_template_name(ChatTemplate chat) {
    return layout_of(chat).name;
}

std::optional<ChatTemplate> recognise_chat_template(std::string_view jinja) {
    std::optional<ChatTemplate> found;
    int n_found = 0;
    const auto take = [&](ChatTemplate chat) {
        found = chat;
        ++n_found;
    };
    if (contains(jinja, "<|start_header_id|>") && contains(jinja, "<|end_header_id|>") &&
        contains(jinja, "<|eot_id|>")) {
        if (!contains(jinja, "Cutting Knowledge Date")) {
            take(ChatTemplate::llama3_plain);
        } else if (contains(jinja, "Cutting Knowledge Date: December 2023") && contains(jinja, "Today Date: ")) {
            take(ChatTemplate::llama3);
        }
    }
    if (looks_like_llama2(jinja)) take(ChatTemplate::llama2);
    if (looks_like_zephyr(jinja)) take(ChatTemplate::zephyr);
    if (contains(jinja, "<|im_start|>") && contains(jinja, "<|im_end|>")) take(ChatTemplate::chatml);
    return n_found == 1 ? found : std::nullopt;
}

std::string default_system_text(std::string_view jinja) {
    constexpr std::string_view opening = "<|im_start|>system";
    for (size_t at = jinja.find(opening); at != std::string_view::npos; at = jinja.find(opening, at + 1)) {
        std::string_view text = jinja.substr(at + opening.size());
        const size_t line_end = text.starts_with("\n") ? 1 : text.starts_with("\\n") ? 2 : 0;
        if (line_end == 0) continue;
        text.remove_prefix(line_end);
        // A literal only: an end of the string or an escape means that the template computes something there.
        const size_t end = text.find_first_of("'\"{}\\<");
        if (end != std::string_view::npos && end > 0 && text.substr(end).starts_with("<|im_end|>"))
            return std::string(text.substr(0, end));
    }
    return {};
}

std::vector<ChatPart> chat_opening(ChatTemplate chat, const ChatTurn& turn) {
    LayoutWriter out(chat);
    if (turn.first) {
        out.begin();
        out.system(turn.system.empty() ? nullptr : &turn.system, turn.date);
    } else {
        out.end_line();
    }
    out.message("user", turn.user);
    out.assistant_speaks();
    return out.finish();
}

Result<std::vector<ChatPart>> chat_prompt(ChatTemplate chat, std::span<const ChatMessage> messages,
                                          const std::string& date, const std::string& own_system) {
    AUSPEX_TRY(check_messages(chat, messages));
    LayoutWriter out(chat);
    out.begin();
    const bool has_system = messages.front().role == "system";
    out.system(has_system ? &messages.front().content : own_system.empty() ? nullptr : &own_system, date);
    for (const ChatMessage& message : messages.subspan(has_system ? 1 : 0))
        out.message(message.role, message.content);
    out.assistant_speaks();
    return out.finish();
}

std::vector<ChatPart> chat_closing(ChatTemplate chat) {
    return {{ChatPart::Kind::control, std::string(layout_of(chat).end_of_turn)}};
}

std::string chat_answer(ChatTemplate chat, std::string_view answer) {
    switch (chat) {
    case ChatTemplate::llama3:
    case ChatTemplate::llama3_plain:
        return trimmed(answer);
    case ChatTemplate::llama2:
        return " " + trimmed(answer) + " ";
    case ChatTemplate::zephyr:
    case ChatTemplate::chatml:
        break;
    }
    return std::string(answer);
}

Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const std::vector<ChatPart>& parts) {
    std::vector<uint32_t> ids;
    std::string text; // of the text parts since the last token
    const auto flush = [&]() -> Status {
        if (text.empty()) return ok_status();
        AUSPEX_TRY_ASSIGN(encoded, tokenizer.encode(text));
        ids.insert(ids.end(), encoded.begin(), encoded.end());
        text.clear();
        return ok_status();
    };
    for (const ChatPart& part : parts) {
        if (part.kind == ChatPart::Kind::text) {
            text += part.text;
            continue;
        }
        AUSPEX_TRY(flush());
        if (part.kind == ChatPart::Kind::bos) {
            if (tokenizer.add_bos()) ids.push_back(tokenizer.bos_id());
            continue;
        }
        const std::optional<uint32_t> token = tokenizer.control_token(part.text);
        if (!token)
            return Status(Code::mismatch, "chat template: found no control token " + in_quotes(part.text) +
                                              " in the vocabulary, expected one; choose another chat template");
        ids.push_back(*token);
    }
    AUSPEX_TRY(flush());
    return ids;
}

Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const std::string& model, ChatRequest request) {
    AUSPEX_TRY_ASSIGN(chosen, choose_layout(tokenizer, model, request.layout));
    if (request.default_system && !request.layout) request.turn.system = default_system_text(tokenizer.chat_template());
    std::vector<ChatPart> parts;
    if (!request.turn.first) {
        parts = chat_closing(chosen);
        // What the answer ended with stands for the token that would end it.
        if (request.answer_ended && !parts.empty() && parts[0].kind == ChatPart::Kind::control)
            parts.erase(parts.begin());
    }
    const std::vector<ChatPart> opening = chat_opening(chosen, request.turn);
    parts.insert(parts.end(), opening.begin(), opening.end());
    return encode_chat(tokenizer, parts);
}

Result<std::vector<uint32_t>> encode_messages(const Tokenizer& tokenizer, const std::string& model,
                                              MessagesRequest request) {
    AUSPEX_TRY_ASSIGN(chosen, choose_layout(tokenizer, model, request.layout));
    for (ChatMessage& message : request.messages)
        if (message.role == "developer") message.role = "system";
    const std::string own_system = request.layout ? std::string() : default_system_text(tokenizer.chat_template());
    AUSPEX_TRY_ASSIGN(parts, chat_prompt(chosen, request.messages, request.date, own_system));
    return encode_chat(tokenizer, parts);
}

} // namespace auspex
