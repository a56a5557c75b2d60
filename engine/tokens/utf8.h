// The one place that knows which byte sequences are UTF-8 (RFC 3629: no overlong forms, no surrogates).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace auspex {

// Length in bytes of the character at the start of `text` (not empty); 0 when no character starts so; -1 when the text
// ends before the character does.
inline int utf8_length(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    const int length = lead >= 0xc2 && lead <= 0xdf   ? 2
                       : lead >= 0xe0 && lead <= 0xef ? 3
                       : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                      : 0;
    if (length == 0) return 0;
    // The second byte alone excludes overlong forms, surrogates and values above U+10FFFF.
    const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < static_cast<size_t>(length); ++i) {
        if (i == text.size()) return -1;
        if (byte(i) < (i == 1 ? least : 0x80) || byte(i) > (i == 1 ? most : 0xbf)) return 0;
    }
    return length;
}

inline bool valid_utf8(std::string_view text) {
    while (!text.empty()) {
        const int length = utf8_length(text);
        if (length <= 0) return false;
        text.remove_prefix(static_cast<size_t>(length));
    }
    return true;
}

// Each byte that is not part of a character becomes U+FFFD, as SentencePiece does it.
inline std::string with_replacements(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const int length = utf8_length(text);
        out += length > 0 ? text.substr(0, static_cast<size_t>(length)) : "\xef\xbf\xbd";
        text.remove_prefix(length > 0 ? static_cast<size_t>(length) : 1);
    }
    return out;
}

} // namespace auspex
