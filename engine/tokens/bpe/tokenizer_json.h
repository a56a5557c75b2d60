// tokenizer.json (Hugging Face) as far as Llama 3 uses it: a byte-level BPE vocabulary and its added tokens.
#pragma once

#include "base/status.h"
#include "tokens/bpe/bpe_model.h"
#include "tokens/open_tokenizer.h"

#include <cstddef>
#include <span>
#include <string>

namespace auspex {

struct TokenizerJson {
    BpeModel model;
    std::string opening_token; // spelling of the special token that post_processor puts first; empty: none
};

// bad_file: not JSON, or a vocabulary that breaks the guarantees of BpeModel. unsupported: another model type, another
// split pattern, a normalizer, added tokens that take the space around them: named in the message. Memory grows with
// the vocabulary, not with the file. `path` is for messages. settings: what lies beside it. Words that it adds after
// the file's own become tokens; of ids that the file knows, its own word counts.
Result<TokenizerJson> parse_tokenizer_json(std::span<const std::byte> file, const std::string& path,
                                           const TokenizerSettings& settings = {});

} // namespace auspex
