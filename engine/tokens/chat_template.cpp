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

void write_llama3_header(PartWriter& out, std::string_view role) {
    out.control("<|start_header_id|>");
    out.text(role);
    out.control("<|end_header_id|>");
    out.text("\n\n");
}

void write_llama3_block(PartWriter& out, std::string_view role, const std::string& content) {
    write_llama3_header(out, role);
    out.text(content);
    out.control("<|eot_id|>");
}

void write_llama3(PartWriter& out, const ChatTurn& turn, bool dated) {
    if (turn.first) {
        out.control("<|begin_of_text|>");
        std::string system = trimmed(turn.system);
        if (dated) {
            const std::string date(turn.date.empty() ? kLlama3DefaultDate : std::string_view(turn.date));
            system = "Cutting Knowledge Date: December 2023\nToday Date: " + date + "\n\n" + system;
        }
        if (dated || !turn.system.empty()) write_llama3_block(out, "system", system);
    }
    write_llama3_block(out, "user", trimmed(turn.user));
    write_llama3_header(out, "assistant");
}

void write_llama2(PartWriter& out, const ChatTurn& turn) {
    const bool with_system = turn.first && !turn.system.empty();
    // Trimmed together: the system text keeps its spaces, and so does the start of what the user says after it.
    const std::string content = with_system ? "<<SYS>>\n" + turn.system + "\n<</SYS>>\n\n" + turn.user : turn.user;
    out.control("<s>");
    out.text("[INST] " + trimmed(content) + " [/INST]");
}

void write_zephyr(PartWriter& out, const ChatTurn& turn) {
    if (turn.first) {
        out.bos();
    } else {
        out.text("\n"); // ends the line of the previous </s>
    }
    if (turn.first && !turn.system.empty()) {
        out.text("<|system|>\n" + turn.system);
        out.control("</s>");
        out.text("\n");
    }
    out.text("<|user|>\n" + turn.user);
    out.control("</s>");
    out.text("\n<|assistant|>\n");
}

void write_chatml(PartWriter& out, const ChatTurn& turn) {
    const auto block = [&](const std::string& role, const std::string& content) {
        out.control("<|im_start|>");
        out.text(role + "\n" + content);
        out.control("<|im_end|>");
        out.text("\n");
    };
    if (turn.first) {
        out.bos();
        if (!turn.system.empty()) block("system", turn.system);
    } else {
        out.text("\n");
    }
    block("user", turn.user);
    out.control("<|im_start|>");
    out.text("assistant\n");
}

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
    PartWriter out;
    switch (chat) {
    case ChatTemplate::llama3:
    case ChatTemplate::llama3_plain:
        write_llama3(out, turn, chat == ChatTemplate::llama3);
        break;
    case ChatTemplate::llama2:
        write_llama2(out, turn);
        break;
    case ChatTemplate::zephyr:
        write_zephyr(out, turn);
        break;
    case ChatTemplate::chatml:
        write_chatml(out, turn);
        break;
    }
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

} // namespace auspex
