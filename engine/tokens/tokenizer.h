// Text to tokens and back, by the model's own vocabulary. Tokens become text through tokens/text_stream.h.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

// U+2581, which stands for a space in SentencePiece spellings.
inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";

class SpelledTokens;

// The longest text that can be encoded at once: an encoder may take a few hundred bytes for each of text.
inline constexpr size_t kMaxTextBytes = 4u << 20;

// All functions are safe to call from several threads. Ids at or above vocab_size() (padding rows of a model) have an
// empty piece and an empty spelling.
class Tokenizer {
  public:
    virtual ~Tokenizer() = default;
    virtual uint32_t vocab_size() const = 0;
    virtual uint32_t bos_id() const = 0; // 0 when the vocabulary has none; add_bos() is then false
    // tokenizer_config.json add_bos_token. When it does not say: true for SentencePiece models; for tokenizer.json
    // whether its post_processor begins with a special token; GGUF files have a key, true when absent.
    virtual bool add_bos() const = 0;
    // Text is always text: control tokens written in it are not recognised. No BOS is added here. Invalid UTF-8 becomes
    // U+FFFD, byte by byte. invalid_argument above kMaxTextBytes.
    virtual Result<std::vector<uint32_t>> encode(std::string_view text) const = 0;
    // As encode, but spellings of control tokens become those tokens, longest first at each place. The text between two
    // of them is encoded as a text of its own (with the dummy prefix where the vocabulary has one). For prompts that
    // programs wrote, never for what users typed.
    Result<std::vector<uint32_t>> encode_with_controls(std::string_view text) const;
    // The control token of exactly this spelling, e.g. "<|eot_id|>".
    virtual std::optional<uint32_t> control_token(std::string_view spelling) const = 0;
    // Ids that end an answer: those the vocabulary's own file names, and control tokens with well-known spellings
    // ("</s>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>", …). Ascending.
    virtual const std::vector<uint32_t>& end_ids() const = 0;
    // The model's own chat template (Jinja text), or empty.
    virtual const std::string& chat_template() const = 0;
    // The bytes a token stands for ("▁" is a space, "<0x0A>" is one byte); empty for control and unused tokens.
    virtual std::string piece(uint32_t token) const = 0;
    // The vocabulary's own spelling, for messages and for comparing vocabularies; empty for unused tokens.
    virtual std::string spelling(uint32_t token) const = 0;
    // Whether a leading space of the first piece is an artefact of the dummy prefix and is dropped from decoded text.
    virtual bool has_dummy_prefix() const = 0;

  private:
    // What encode_with_controls looks for; null when the vocabulary has no control tokens.
    virtual const SpelledTokens* control_tokens() const { return nullptr; }
};

// The tokenizer of a model, which may lack its weights: a GGUF file (tokenizer.ggml.model "llama" or "gpt2"; of a
// sharded one the first file), or a folder with tokenizer.model (SentencePiece) or else tokenizer.json (byte-level
// BPE). unsupported: any other kind, named in the message. not_found: no tokenizer there.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& model_path);

// `folder`/tokenizer.model (SentencePiece). unsupported when only tokenizer.json exists, when tokenizer.model is
// tiktoken text, or when it is not what Llama models use (BPE, text taken as it is, spaces kept).
Result<std::unique_ptr<Tokenizer>> open_sentencepiece_tokenizer(const std::string& folder);

// What readers say of a vocabulary's file that cannot be right.
inline Status bad_vocabulary(const std::string& path, const std::string& found, const std::string& expected) {
    return {Code::bad_file, path + ": found " + found + ", expected " + expected + "; fetch the file again"};
}

// Whether every id that both vocabularies have means the same in both, whatever kinds of files they came from: the same
// bytes, or both no bytes and the same spelling. A control token that says it is reserved was never trained, and may be
// any control token in the other. An id that is unused in one of them comes from no text and may be anything in the
// other. Either vocabulary may go on where the other ends. mismatch: shows the first id that differs and both texts.
Status check_same_vocabulary(const Tokenizer& target, const std::string& target_name, const Tokenizer& draft,
                             const std::string& draft_name);

} // namespace auspex
