// The text a command is given: from a flag, a file or stdin, checked to be text that fits.
#pragma once

#include "cli/common/engine/client.h"

namespace auspex::cli {

struct PromptText {
    std::string text;
    std::string source; // for errors: "-p", "-f story.txt", "stdin"
};

// Without -p and -f from stdin, whatever that is.
PromptText read_prompt(const PromptOptions& options);

void check_text(const PromptText& prompt);   // UTF-8, not empty
void check_spoken(const PromptText& prompt); // and without zero bytes, which a turn of a conversation cannot have
// source: for errors.
void check_ids(const std::vector<uint32_t>& ids, const std::string& source, uint32_t vocab_size);

// Where in a conversation a turn stands.
enum class Place { first, after_whole_answer, after_cut_answer };
// The tokens from the answer before to where the model begins to speak.
std::vector<uint32_t> encode_turn(Client& client, const ChatFormat& format, const std::string& user, Place place);
// Throws what encode_turn would throw of every first turn; reads the model's vocabulary, none of its weights. A model
// that cannot be opened is left to Client, which says more.
void check_speaks(const std::string& model, const ChatFormat& format);
// How templates of Llama 3 write a date: "21 Nov 2026".
std::string today();

} // namespace auspex::cli
