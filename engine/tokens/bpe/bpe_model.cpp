// Every promise of the vocabulary is checked once, here, so that encoding needs no checks. Look-ups are by binary
// search in sorted lists: no file can make them slow, as it could with a hash table.
#include "tokens/bpe/bpe_model.h"

#include "tokens/spelled_tokens.h"
#include "tokens/tokenizer.h"

#include <algorithm>
#include <bitset>
#include <set>

namespace auspex {
namespace {

constexpr uint64_t kMaxMerges = 1u << 22;
constexpr size_t kMaxSpellingBytes = 4096; // longest in Llama 3: 256

// Which character stands for each byte, and back (-1: none).
struct Alphabet {
    std::array<uint16_t, 256> of_byte{};
    std::array<int16_t, 0x144> of_character{};
};
constexpr Alphabet make_alphabet() {
    Alphabet out;
    out.of_character.fill(-1);
    uint16_t next = 0x100;
    for (uint16_t byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
        out.of_byte[byte] = printable ? byte : next++;
        out.of_character[out.of_byte[byte]] = static_cast<int16_t>(byte);
    }
    return out;
}
constexpr Alphabet kAlphabet = make_alphabet();

std::string name_of(const BpeParts::Token& token, size_t id) {
    return in_quotes(token.spelling) + " as token " + std::to_string(id);
}

uint32_t first_two(std::string_view bytes) {
    const auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u; };
    return byte(0) << 8 | byte(1);
}

Status check_ids_and_spellings(const BpeParts& parts, const std::string& path) {
    for (size_t id = 0; id < parts.tokens.size(); ++id)
        if (parts.tokens[id].kind == BpeKind::absent)
            return bad_vocabulary(path, "no token with id " + std::to_string(id),
                       "one for each id below " + std::to_string(parts.tokens.size()));
    std::vector<std::string_view> spellings;
    spellings.reserve(parts.tokens.size());
    for (const auto& token : parts.tokens)
        if (token.kind != BpeKind::unused) spellings.push_back(token.spelling);
    std::sort(spellings.begin(), spellings.end());
    const auto twice = std::adjacent_find(spellings.begin(), spellings.end());
    if (twice != spellings.end()) return bad_vocabulary(path, "the token " + in_quotes(*twice) + " twice", "once");
    return ok_status();
}

// Users must not end an answer or speak for somebody else. A word that merges lead to is one, though, whatever it means
// to other models: "</s>" in a vocabulary that has seen web pages.
void make_control_words(BpeParts& parts) {
    std::set<std::string> merged;
    for (size_t rank = 0; rank < parts.merge_ends.size(); ++rank) {
        std::string word(parts.merge(rank));
        if (const size_t space = word.find(' '); space != std::string::npos) word.erase(space, 1);
        if (is_control_spelling(word)) merged.insert(std::move(word));
    }
    for (auto& token : parts.tokens) {
        const bool is_word = token.kind == BpeKind::user_defined || token.kind == BpeKind::normal;
        if (!is_word || !is_control_spelling(token.spelling)) continue;
        if (token.kind == BpeKind::user_defined || !merged.contains(token.spelling)) token.kind = BpeKind::control;
    }
}

Status take_tokens(BpeParts& parts, const std::string& path, BpeModel& model) {
    make_control_words(parts);
    model.tokens.reserve(parts.tokens.size());
    for (size_t id = 0; id < parts.tokens.size(); ++id) {
        auto& token = parts.tokens[id];
        std::string bytes = token.spelling;
        if (token.kind == BpeKind::normal) {
            auto decoded = bytes_of_alphabet(token.spelling);
            if (!decoded)
                return bad_vocabulary(path, name_of(token, id), "characters of GPT-2's byte alphabet, or an added token");
            bytes = std::move(*decoded);
        }
        model.tokens.push_back({std::move(bytes), token.kind});
    }
    return ok_status();
}

Status index_tokens(const std::string& path, BpeModel& model) {
    for (uint32_t id = 0; id < model.tokens.size(); ++id) {
        const BpeKind kind = model.tokens[id].kind;
        if (kind == BpeKind::normal || kind == BpeKind::user_defined) model.by_bytes.push_back(id);
    }
    // A normal and a user-defined token may stand for the same bytes; the normal one comes first and is found.
    std::sort(model.by_bytes.begin(), model.by_bytes.end(), [&](uint32_t a, uint32_t b) {
        const auto &left = model.tokens[a], &right = model.tokens[b];
        return left.bytes != right.bytes ? left.bytes < right.bytes : left.kind < right.kind;
    });
    model.bucket.assign(65537, static_cast<uint32_t>(model.by_bytes.size()));
    for (size_t i = model.by_bytes.size(); i-- > 0;)
        model.bucket[first_two(model.tokens[model.by_bytes[i]].bytes)] = static_cast<uint32_t>(i);
    for (size_t i = 65536; i-- > 0;)
        model.bucket[i] = std::min(model.bucket[i], model.bucket[i + 1]);
    for (uint32_t byte = 0; byte < 256; ++byte) {
        const auto id = model.find(std::string(1, static_cast<char>(byte)));
        if (!id) return bad_vocabulary(path, "no token for byte " + std::to_string(byte), "one for each of the 256 bytes");
        model.of_byte[byte] = *id;
    }
    return ok_status();
}

Status index_merges(const BpeParts& parts, const std::string& path, BpeModel& model) {
    struct Row {
        uint32_t left;
        BpeModel::Merge merge;
    };
    std::vector<Row> rows;
    rows.reserve(parts.merge_ends.size());
    for (uint32_t rank = 0; rank < parts.merge_ends.size(); ++rank) {
        const std::string_view text = parts.merge(rank);
        const size_t space = text.find(' ');
        const std::string what = "the merge " + in_quotes(text) + " (number " + std::to_string(rank) + ")";
        if (space == std::string_view::npos) return bad_vocabulary(path, what, "two tokens with a space between");
        const auto left = bytes_of_alphabet(text.substr(0, space)), right = bytes_of_alphabet(text.substr(space + 1));
        const auto left_id = left ? model.find(*left) : std::nullopt,
                   right_id = right ? model.find(*right) : std::nullopt;
        if (!left_id || !right_id) return bad_vocabulary(path, what, "two tokens of the vocabulary");
        const auto result = model.find(*left + *right);
        if (!result) return bad_vocabulary(path, what, "the two together to be a token as well");
        rows.push_back({*left_id, {*right_id, rank, *result}});
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        return a.left != b.left ? a.left < b.left : a.merge.right < b.merge.right;
    });
    model.merge_begin.assign(model.tokens.size() + 1, 0);
    model.merges.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
        if (i > 0 && rows[i].left == rows[i - 1].left && rows[i].merge.right == rows[i - 1].merge.right)
            return bad_vocabulary(path,
                       "a merge of " + in_quotes(model.tokens[rows[i].left].bytes) + " and " +
                           in_quotes(model.tokens[rows[i].merge.right].bytes) + " twice",
                       "once");
        ++model.merge_begin[rows[i].left + 1];
        model.merges.push_back(rows[i].merge);
    }
    for (size_t id = 0; id < model.tokens.size(); ++id)
        model.merge_begin[id + 1] += model.merge_begin[id];
    return ok_status();
}

} // namespace

std::string alphabet_spelling(std::string_view bytes) {
    std::string out;
    for (char c : bytes) {
        const uint16_t character = kAlphabet.of_byte[static_cast<unsigned char>(c)];
        if (character < 0x80) {
            out += static_cast<char>(character);
        } else {
            out += static_cast<char>(0xc0 | character >> 6);
            out += static_cast<char>(0x80 | (character & 0x3f));
        }
    }
    return out;
}

std::optional<std::string> bytes_of_alphabet(std::string_view spelling) {
    std::string out;
    for (size_t i = 0; i < spelling.size(); ++i) {
        auto character = static_cast<uint32_t>(static_cast<unsigned char>(spelling[i]));
        if (character >= 0x80) { // the alphabet ends at U+0143: two bytes of UTF-8
            if (character < 0xc2 || character > 0xdf || ++i == spelling.size()) return std::nullopt;
            const auto next = static_cast<uint32_t>(static_cast<unsigned char>(spelling[i]));
            if (next >> 6 != 2) return std::nullopt;
            character = (character & 0x1f) << 6 | (next & 0x3f);
        }
        if (character >= kAlphabet.of_character.size() || kAlphabet.of_character[character] < 0) return std::nullopt;
        out += static_cast<char>(kAlphabet.of_character[character]);
    }
    return out;
}

Status BpeParts::add_token(uint64_t id, std::string_view spelling, BpeKind kind, const std::string& path) {
    if (id >= id_limit)
        return bad_vocabulary(path, "token " + in_quotes(spelling) + " with id " + std::to_string(id),
                   "an id below " + std::to_string(id_limit));
    if (spelling.size() > kMaxSpellingBytes)
        return bad_vocabulary(path, std::to_string(spelling.size()) + " bytes in the spelling of token " + std::to_string(id),
                   "1 to " + std::to_string(kMaxSpellingBytes));
    if (spelling.empty()) kind = BpeKind::unused; // no text comes to it
    if (id >= tokens.size()) tokens.resize(id + 1);
    if (tokens[id].kind != BpeKind::absent)
        return bad_vocabulary(path,
                   "the id " + std::to_string(id) + " for " + in_quotes(tokens[id].spelling) + " and for " +
                       in_quotes(spelling),
                   "one token for each id");
    tokens[id] = {std::string(spelling), kind};
    return ok_status();
}

Status BpeParts::add_merge(std::string_view left_and_right, const std::string& path) {
    if (merge_ends.size() == kMaxMerges)
        return bad_vocabulary(path, "more than " + std::to_string(kMaxMerges) + " merges", "at most that many");
    if (left_and_right.size() > 2 * kMaxSpellingBytes)
        return bad_vocabulary(path, "a merge of " + std::to_string(left_and_right.size()) + " bytes", "two tokens");
    if (merge_text.size() + left_and_right.size() > UINT32_MAX) return bad_vocabulary(path, "4 GiB of merges", "less");
    merge_text += left_and_right;
    merge_ends.push_back(static_cast<uint32_t>(merge_text.size()));
    return ok_status();
}

std::string_view BpeParts::merge(size_t rank) const {
    const size_t begin = rank == 0 ? 0 : merge_ends[rank - 1];
    return std::string_view(merge_text).substr(begin, merge_ends[rank] - begin);
}

std::optional<uint32_t> BpeModel::find(std::string_view bytes) const {
    const uint32_t key = first_two(bytes);
    const auto begin = by_bytes.begin() + bucket[key], end = by_bytes.begin() + bucket[key + 1];
    const auto at = std::lower_bound(begin, end, bytes, [&](uint32_t id, std::string_view text) {
        return std::string_view(tokens[id].bytes) < text;
    });
    if (at == end || tokens[*at].bytes != bytes) return std::nullopt;
    return *at;
}

const BpeModel::Merge* BpeModel::merge_of(uint32_t left, uint32_t right) const {
    const auto begin = merges.begin() + merge_begin[left], end = merges.begin() + merge_begin[left + 1];
    const auto at =
        std::lower_bound(begin, end, right, [](const Merge& merge, uint32_t id) { return merge.right < id; });
    return at == end || at->right != right ? nullptr : &*at;
}

Result<BpeModel> build_bpe_model(BpeParts parts, const std::string& path) {
    if (parts.tokens.empty()) return bad_vocabulary(path, "no tokens", "a vocabulary");
    BpeModel model;
    model.ignore_merges = parts.ignore_merges;
    AUSPEX_TRY(check_ids_and_spellings(parts, path));
    AUSPEX_TRY(take_tokens(parts, path, model));
    parts.tokens = {};
    AUSPEX_TRY(index_tokens(path, model));
    AUSPEX_TRY(index_merges(parts, path, model));
    return model;
}

} // namespace auspex
