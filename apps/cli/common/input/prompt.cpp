// Prompts in, and conversations' first turns.
#include "cli/common/input/prompt.h"

#include "cli/common/input/text_file.h"
#include "cli/common/system/terminal.h"

#include <array>
#include <cstdio>
#include <optional>

namespace auspex::cli {

namespace {

constexpr size_t kMaxPromptBytes = size_t{16} << 20;

// One line end at the end is the editor's, not the prompt's.
std::string without_line_end(std::string text) {
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

// encoder: a Client or a Tokenizer.
template <typename Encoder>
std::vector<uint32_t> encode_turn_by(Encoder& encoder, const ChatFormat& format, const std::string& user, Place place) {
    const std::string date = format.date.value_or(today());
    auspex_chat_turn turn;
    auspex_chat_turn_init(&turn, sizeof turn);
    turn.first = place == Place::first ? 1 : 0;
    turn.answer_ended = place == Place::after_whole_answer ? 1 : 0;
    turn.system = format.system ? format.system->c_str() : nullptr;
    turn.user = user.c_str();
    turn.date = date.c_str();
    turn.template_name = format.template_name.empty() ? nullptr : format.template_name.c_str();
    try {
        return encoder.encode_chat(turn);
    } catch (const Failure& failure) {
        const std::string line = failure.what();
        const bool lacks_flag = failure.exit_code() == kExitFile && line.find("--chat-template") == std::string::npos;
        throw Failure(failure.exit_code(), lacks_flag ? line + " (--chat-template NAME)" : line);
    }
}

} // namespace

PromptText read_prompt(const PromptOptions& options) {
    if (options.text) return {*options.text, "-p"};
    if (options.file && *options.file != "-")
        return {without_line_end(read_file("-f", *options.file, kMaxPromptBytes)), "-f " + *options.file};
    return {without_line_end(read_stream(stdin, "stdin", kMaxPromptBytes)), "stdin"};
}

void check_text(const PromptText& prompt) {
    if (prompt.text.empty()) throw Failure(kExitUsage, prompt.source + ": the prompt is empty");
    const size_t invalid = find_invalid_utf8(prompt.text);
    if (invalid != std::string::npos)
        throw Failure(kExitUsage, prompt.source + format(": expected UTF-8, found byte 0x%02x at offset %zu",
                                                         static_cast<unsigned char>(prompt.text[invalid]), invalid));
}

void check_spoken(const PromptText& prompt) {
    check_text(prompt);
    const size_t zero = prompt.text.find('\0');
    if (zero != std::string::npos)
        throw Failure(kExitUsage, prompt.source + format(": expected text, found a zero byte at offset %zu", zero));
}

void check_ids(const std::vector<uint32_t>& ids, const std::string& source, uint32_t vocab_size) {
    for (const uint32_t id : ids)
        if (id >= vocab_size)
            throw Failure(kExitUsage, source + format(": token id %u is outside the vocabulary, expected 0 to %u", id,
                                                      vocab_size - 1));
}

std::vector<uint32_t> encode_turn(Client& client, const ChatFormat& format, const std::string& user, Place place) {
    return encode_turn_by(client, format, user, place);
}

void check_speaks(const std::string& model, const ChatFormat& format) {
    std::optional<Tokenizer> tokenizer;
    try {
        tokenizer.emplace(model);
    } catch (const Failure&) {
        return;
    }
    encode_turn_by(*tokenizer, format, "?", Place::first);
}

std::string today() {
    constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const std::tm now = local_time();
    return format("%02d %s %d", now.tm_mday, months[static_cast<size_t>(now.tm_mon)], now.tm_year + 1900);
}

} // namespace auspex::cli
