// Protobuf wire format read by hand: five message types, lengths checked, nothing recursive. What the file may hold
// beyond the fields below (training settings, self tests) is skipped and never reaches the library.
#include "tokens/sentencepiece_model.h"

#include "tokens/spelled_tokens.h"
#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>

namespace auspex {
namespace {

constexpr size_t kMaxPieces = 1u << 18; // of Llama-2: 32000. The library takes about 200 bytes for each.
constexpr size_t kMaxPieceBytes = 1024; // longest in Llama-2: 48. SentencePiece recurses once per byte when it loads.

enum Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// The fields of one message, in file order.
class WireReader {
  public:
    explicit WireReader(std::string_view message) : rest_(message) {}

    uint32_t field = 0;
    uint32_t wire = 0;
    uint64_t number = 0;   // varint and fixed values
    std::string_view text; // length-delimited values

    bool next() { // false at the end and at the first malformed field
        if (rest_.empty()) return false;
        uint64_t tag = 0;
        if (!read_varint(tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return fail();
        field = static_cast<uint32_t>(tag >> 3);
        wire = static_cast<uint32_t>(tag & 7);
        switch (wire) {
        case varint:
            return read_varint(number) || fail();
        case fixed64:
            return read_fixed(8) || fail();
        case fixed32:
            return read_fixed(4) || fail();
        case bytes: {
            uint64_t size = 0;
            if (!read_varint(size) || size > rest_.size()) return fail();
            text = rest_.substr(0, size);
            rest_.remove_prefix(size);
            return true;
        }
        default:
            return fail(); // groups ended with protobuf 2
        }
    }
    bool malformed() const { return malformed_; }

  private:
    bool fail() {
        malformed_ = true;
        rest_ = {};
        return false;
    }
    bool read_varint(uint64_t& value) {
        value = 0;
        for (uint32_t shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(rest_[0]);
            rest_.remove_prefix(1);
            value |= uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) return true;
        }
        return false;
    }
    bool read_fixed(size_t size) {
        if (rest_.size() < size) return false;
        number = 0;
        for (size_t i = size; i-- > 0;)
            number = number << 8 | static_cast<unsigned char>(rest_[i]);
        rest_.remove_prefix(size);
        return true;
    }

    std::string_view rest_;
    bool malformed_ = false;
};

Status unsupported(const std::string& path, const std::string& found, const std::string& expected) {
    return {Code::unsupported,
            path + ": found " + found + ", expected " + expected + "; other SentencePiece models are not supported"};
}

Status not_a_model(const std::string& path) {
    return bad_vocabulary(path, "bytes that do not parse", "a SentencePiece model");
}

Status parse_piece(std::string_view message, const std::string& path, SentencePieceModel& model) {
    const std::string id = std::to_string(model.pieces.size());
    if (model.pieces.size() == kMaxPieces) return bad_vocabulary(path, "more than " + id + " pieces", "at most that many");
    SentencePieceModel::Piece piece;
    WireReader reader(message);
    uint64_t type = 1;
    while (reader.next()) {
        if (reader.field == 1 && reader.wire == bytes) {
            piece.spelling = reader.text;
        } else if (reader.field == 2 && reader.wire == fixed32) {
            piece.score = std::bit_cast<float>(static_cast<uint32_t>(reader.number));
        } else if (reader.field == 3 && reader.wire == varint) {
            type = reader.number;
        } else if (reader.field <= 3) {
            return not_a_model(path);
        }
    }
    if (reader.malformed()) return not_a_model(path);
    piece.type = type <= 6 ? static_cast<SentencePieceModel::Type>(type) : SentencePieceModel::Type::unused;
    model.pieces.push_back(std::move(piece));
    return ok_status();
}

Status parse_trainer(std::string_view message, const std::string& path, SentencePieceModel& model) {
    WireReader reader(message);
    uint64_t model_type = 1;
    bool suffix = false;
    while (reader.next()) {
        if (reader.field == 3 && reader.wire == varint) model_type = reader.number;
        if (reader.field == 24 && reader.wire == varint) suffix = reader.number != 0;
        if (reader.field == 35 && reader.wire == varint) model.byte_fallback = reader.number != 0;
        if (reader.field == 44 && reader.wire == bytes) model.unknown_surface = reader.text;
        if (reader.field == 46 && reader.wire == bytes && !reader.text.empty()) model.bos_spelling = reader.text;
    }
    if (reader.malformed()) return not_a_model(path);
    if (model_type != 2) {
        const char* const names[] = {"", "unigram", "BPE", "word", "char"};
        return unsupported(path, "model type " + (model_type < 5 ? names[model_type] : std::to_string(model_type)),
                           "BPE");
    }
    if (suffix) return unsupported(path, "spaces as suffixes", "spaces as prefixes");
    if (model.unknown_surface.size() > kMaxPieceBytes || model.bos_spelling.size() > kMaxPieceBytes)
        return bad_vocabulary(path, "a special token of more than " + std::to_string(kMaxPieceBytes) + " bytes", "a short one");
    return ok_status();
}

// Used for field 3 (text to pieces) and 5 (pieces to text): neither may change text. The rule tables are double-array
// tries whose offsets the library follows unchecked, one more reason to refuse them.
Status parse_normalizer(std::string_view message, const std::string& path, bool to_pieces, SentencePieceModel& model) {
    WireReader reader(message);
    bool removes_spaces = true, escapes_spaces = true;
    while (reader.next()) {
        if (reader.field == 2 && !reader.text.empty())
            return unsupported(path, "text normalisation rules", "text taken as it is (identity)");
        if (reader.field == 3 && reader.wire == varint && to_pieces) model.add_dummy_prefix = reader.number != 0;
        if (reader.field == 4 && reader.wire == varint) removes_spaces = reader.number != 0;
        if (reader.field == 5 && reader.wire == varint) escapes_spaces = reader.number != 0;
    }
    if (reader.malformed()) return not_a_model(path);
    if (to_pieces && removes_spaces) return unsupported(path, "removal of extra spaces", "spaces kept");
    if (to_pieces && !escapes_spaces) return unsupported(path, "unescaped spaces", "spaces escaped as U+2581");
    return ok_status();
}

bool is_text(std::string_view spelling) {
    return !spelling.empty() && spelling.size() <= kMaxPieceBytes && valid_utf8(spelling) &&
           spelling.find('\0') == std::string_view::npos;
}

// Types that files get wrong. Control words are control tokens; entries that no text comes to break no text: those of an
// unknown type, those without a word, and unused ones whatever stands in them. The library wants a word of each, so they
// get names: as llama.cpp spells them, and nobody else.
void mend_types(std::vector<SentencePieceModel::Piece>& pieces) {
    using Type = SentencePieceModel::Type;
    std::vector<uint32_t> by_spelling, nameless;
    for (uint32_t id = 0; id < pieces.size(); ++id) {
        auto& [spelling, score, type] = pieces[id];
        if (type < Type::normal || type > Type::byte) type = Type::unused;
        if (spelling.empty() && type != Type::control && type != Type::unknown) type = Type::unused;
        if ((type == Type::normal || type == Type::user_defined) && is_control_spelling(spelling)) type = Type::control;
        if (type == Type::unused && !std::isfinite(score)) score = 0.0f;
        const bool has_name = type == Type::unused ? is_text(spelling) : !spelling.empty();
        (has_name ? by_spelling : nameless).push_back(id);
    }
    std::sort(by_spelling.begin(), by_spelling.end(), [&](uint32_t a, uint32_t b) {
        const bool a_unused = pieces[a].type == Type::unused, b_unused = pieces[b].type == Type::unused;
        const int order = pieces[a].spelling.compare(pieces[b].spelling);
        return order != 0 ? order < 0 : a_unused != b_unused ? b_unused : a < b;
    });
    std::vector<std::string> taken; // of the names that are given below
    for (size_t i = 0; i < by_spelling.size(); ++i) {
        const auto& piece = pieces[by_spelling[i]];
        if (piece.spelling.starts_with("[EMPTY_")) taken.push_back(piece.spelling);
        if (i > 0 && piece.type == Type::unused && piece.spelling == pieces[by_spelling[i - 1]].spelling)
            nameless.push_back(by_spelling[i]);
    }
    for (uint32_t id : nameless) {
        std::string name = "[EMPTY_" + std::to_string(id) + "]";
        while (std::binary_search(taken.begin(), taken.end(), name))
            name += '*';
        pieces[id].spelling = std::move(name);
    }
}

Status check_piece(const SentencePieceModel::Piece& piece, size_t id, const std::string& path) {
    using Type = SentencePieceModel::Type;
    const std::string which = "piece " + std::to_string(id), what = in_quotes(piece.spelling) + " as " + which;
    if (piece.spelling.size() > kMaxPieceBytes)
        return bad_vocabulary(path, std::to_string(piece.spelling.size()) + " bytes in " + which,
                   "1 to " + std::to_string(kMaxPieceBytes));
    if (!is_text(piece.spelling))
        return bad_vocabulary(path, "the spelling " + in_quotes(piece.spelling) + " of " + which, "UTF-8 without NUL");
    if (!std::isfinite(piece.score)) return bad_vocabulary(path, "a score that is not finite in " + which, "a number");
    // SentencePiece looks single characters up among the special pieces first: text would become a control token.
    const bool special = piece.type == Type::control || piece.type == Type::unknown;
    if (special && static_cast<size_t>(utf8_length(piece.spelling)) == piece.spelling.size())
        return bad_vocabulary(path, "the special token " + what, "more than one character");
    if (piece.type == Type::byte && byte_of_spelling(piece.spelling) < 0)
        return bad_vocabulary(path, "the byte token " + what, "the form <0xHH>");
    return ok_status();
}

void put_varint(std::string& out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
}
void put_number(std::string& out, uint32_t field, uint64_t value) {
    put_varint(out, field << 3 | varint);
    put_varint(out, value);
}
void put_bytes(std::string& out, uint32_t field, std::string_view value) {
    put_varint(out, field << 3 | bytes);
    put_varint(out, value.size());
    out += value;
}

} // namespace

int byte_of_spelling(std::string_view spelling) {
    if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
    const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
    const int high = digit(spelling[3]), low = digit(spelling[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Result<SentencePieceModel> parse_sentencepiece_model(std::span<const std::byte> file, const std::string& path) {
    SentencePieceModel model;
    WireReader reader({reinterpret_cast<const char*>(file.data()), file.size()});
    std::bitset<6> seen; // protobuf would merge a repeated message; nobody writes one
    while (reader.next()) {
        if (reader.field > 5) continue; // extensions
        if (reader.wire != bytes || (reader.field != 1 && seen[reader.field])) return not_a_model(path);
        seen.set(reader.field);
        switch (reader.field) {
        case 1:
            AUSPEX_TRY(parse_piece(reader.text, path, model));
            break;
        case 2:
            AUSPEX_TRY(parse_trainer(reader.text, path, model));
            break;
        case 3:
            AUSPEX_TRY(parse_normalizer(reader.text, path, true, model));
            break;
        case 5:
            AUSPEX_TRY(parse_normalizer(reader.text, path, false, model));
            break;
        default:
            break; // 4: self tests
        }
    }
    if (reader.malformed() || !seen[1]) return not_a_model(path);
    if (!seen[2] || !seen[3]) return bad_vocabulary(path, "no trainer or normalizer settings", "both");
    AUSPEX_TRY(check_sentencepiece_model(model, path));
    return model;
}

Status check_sentencepiece_model(SentencePieceModel& model, const std::string& path) {
    using Type = SentencePieceModel::Type;
    if (model.pieces.size() > kMaxPieces)
        return bad_vocabulary(path, std::to_string(model.pieces.size()) + " pieces", "at most " + std::to_string(kMaxPieces));
    mend_types(model.pieces);
    std::vector<std::string_view> spellings;
    std::bitset<256> bytes_seen;
    int n_unknown = 0;
    for (size_t id = 0; id < model.pieces.size(); ++id) {
        const auto& piece = model.pieces[id];
        AUSPEX_TRY(check_piece(piece, id, path));
        if (piece.type == Type::byte) bytes_seen.set(static_cast<size_t>(byte_of_spelling(piece.spelling)));
        n_unknown += piece.type == Type::unknown;
        spellings.push_back(piece.spelling);
    }
    if (n_unknown != 1) return bad_vocabulary(path, std::to_string(n_unknown) + " unknown tokens", "exactly one");
    if (model.byte_fallback ? !bytes_seen.all() : bytes_seen.any())
        return bad_vocabulary(path, std::to_string(bytes_seen.count()) + " byte tokens",
                   model.byte_fallback ? "256, as byte_fallback is on" : "none, as byte_fallback is off");
    std::sort(spellings.begin(), spellings.end());
    const auto twice = std::adjacent_find(spellings.begin(), spellings.end());
    if (twice != spellings.end()) return bad_vocabulary(path, "the piece " + in_quotes(*twice) + " twice", "once");
    return ok_status();
}

std::string with_space_symbols(std::string_view text) {
    std::string out;
    for (char c : text)
        out += c == ' ' ? kSpaceSymbol : std::string_view(&c, 1);
    return out;
}

std::string serialize_sentencepiece_model(const SentencePieceModel& model) {
    std::string out, message;
    for (const auto& piece : model.pieces) {
        message.clear();
        put_bytes(message, 1, piece.spelling);
        put_varint(message, 2 << 3 | fixed32);
        const auto score = std::bit_cast<uint32_t>(piece.score);
        for (uint32_t shift = 0; shift < 32; shift += 8)
            message += static_cast<char>(score >> shift & 0xff);
        put_number(message, 3, static_cast<uint64_t>(piece.type));
        put_bytes(out, 1, message);
    }
    message.clear();
    put_number(message, 3, 2); // BPE
    put_number(message, 35, model.byte_fallback);
    put_bytes(message, 44, model.unknown_surface);
    put_bytes(message, 46, model.bos_spelling);
    put_bytes(out, 2, message);
    message.clear();
    put_bytes(message, 1, "identity");
    put_number(message, 3, model.add_dummy_prefix);
    put_number(message, 4, 0); // keep extra spaces
    put_number(message, 5, 1); // escape spaces
    put_bytes(out, 3, message);
    return out;
}

} // namespace auspex
