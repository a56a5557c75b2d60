// Makes the tokenizer of a byte-level BPE vocabulary. Which file it came from is the business of the readers.
#pragma once

#include "tokens/bpe/bpe_model.h"
#include "tokens/open_tokenizer.h"
#include "tokens/tokenizer.h"

#include <memory>

namespace auspex {

// bos: a control token, or nullopt. The split pattern is Llama 3's.
Result<std::unique_ptr<Tokenizer>> make_bpe_tokenizer(BpeModel model, VocabularyTraits traits);

} // namespace auspex
