// Whether two models speak of the same tokens. A draft's ids are judged by the target, so every id that both have must mean the
// same. Those that one of them lacks nobody judges: the target says its own alone, and the draft's are left out.
#include "tokens/tokenizer.h"

#include <algorithm>

namespace auspex {
namespace {

// A spelling for people: its own characters, except control characters (ASCII and the C1 set, C2 80 to C2 9F).
std::string shown(const std::string& spelling) {
    std::string out;
    for (size_t i = 0; i < spelling.size(); ++i) {
        const auto byte = static_cast<unsigned char>(spelling[i]);
        const bool control =
            byte < ' ' || byte == 0x7f ||
            (byte == 0xc2 && i + 1 < spelling.size() && static_cast<unsigned char>(spelling[i + 1]) < 0xa0);
        out += control ? '?' : spelling[i];
        if (control && byte == 0xc2) ++i;
    }
    return '"' + out + '"';
}

// "<|reserved_special_token_5|>" and its like: named later, or never, so no model has learned what it means.
bool is_reserved(const std::string& spelling) {
    return spelling.find("reserved") != std::string::npos;
}

// Spellings may differ where the bytes do not: one word reads differently in different kinds of files. An unused token
// has neither.
bool same_token(const Tokenizer& a, const Tokenizer& b, uint32_t id) {
    const std::string spelling = a.spelling(id), other = b.spelling(id);
    if (spelling.empty() || other.empty()) return true;
    if (a.piece(id) != b.piece(id)) return false;
    if (!a.piece(id).empty()) return true;
    return spelling == other || is_reserved(spelling) || is_reserved(other);
}

} // namespace

Status check_same_vocabulary(const Tokenizer& target, const std::string& target_name, const Tokenizer& draft,
                             const std::string& draft_name) {
    const auto differ = [&](const std::string& in_draft, const std::string& in_target) {
        return Status(Code::mismatch, draft_name + ": found " + in_draft + ", expected " + in_target +
                                          " as in target " + target_name +
                                          "; target and draft must share a vocabulary");
    };
    const uint32_t n = target.vocab_size(), n_draft = draft.vocab_size();
    for (uint32_t id = 0; id < n && id < n_draft; ++id) {
        if (same_token(target, draft, id)) continue;
        if (target.spelling(id) != draft.spelling(id))
            return differ("token " + std::to_string(id) + " " + shown(draft.spelling(id)), shown(target.spelling(id)));
        // The same spelling, once as text and once as a control token.
        return differ("token " + std::to_string(id) + " standing for " + in_quotes(draft.piece(id)),
                      in_quotes(target.piece(id)));
    }
    return ok_status();
}

} // namespace auspex
