// Whether two models speak of the same tokens. A draft's ids are judged by the target, so every id must mean the same.
#include "tokens/tokenizer.h"

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
        if (target.spelling(id) != draft.spelling(id))
            return differ("token " + std::to_string(id) + " " + shown(draft.spelling(id)), shown(target.spelling(id)));
        if (target.piece(id) != draft.piece(id)) // the same spelling, once as text and once as a control or byte token
            return differ("token " + std::to_string(id) + " standing for " + in_quotes(draft.piece(id)),
                          in_quotes(target.piece(id)));
    }
    if (n != n_draft) return differ(std::to_string(n_draft) + " tokens", std::to_string(n));
    return ok_status();
}

} // namespace auspex
