// Tokens to UTF-8 text as they arrive: only complete characters leave, so that text handed out is final and valid.
#pragma once

#include "tokens/tokenizer.h"

#include <string>

namespace auspex {

class TextStream {
  public:
    // at_start: the first token begins a text, so a dummy-prefix space is dropped. Continuations of a prompt keep it.
    TextStream(const Tokenizer& tokenizer, bool at_start) : tokenizer_(&tokenizer), at_start_(at_start) {}

    // Complete characters that this token finishes; an invalid byte becomes U+FFFD.
    std::string push(uint32_t token);
    // What is left at the end of the text: incomplete bytes as U+FFFD, one for each as SentencePiece does.
    std::string finish();

  private:
    const Tokenizer* tokenizer_; // must outlive the stream
    bool at_start_;
    std::string pending_; // bytes of an unfinished character, at most 3
};

} // namespace auspex
