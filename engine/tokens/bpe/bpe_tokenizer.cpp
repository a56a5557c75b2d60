// Text to tokens with a byte-level BPE vocabulary: added words are taken out of the text, the rest is cut into parts,
// and in each part the pair of neighbours with the lowest rank merges, leftmost first, until none is left.
#include "tokens/bpe/bpe_tokenizer.h"

#include "base/catching.h"
#include "tokens/bpe/pre_tokenizer.h"
#include "tokens/spelled_tokens.h"
#include "tokens/utf8.h"

#include <algorithm>

namespace auspex {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// The parts of one text share this memory.
class Merger {
  public:
    explicit Merger(const BpeModel& model) : model_(model) {}

    // Appends the tokens of one part. Time n log n, memory about 40 bytes for each byte of the part.
    void append(std::string_view part, std::vector<uint32_t>& ids) {
        if (model_.ignore_merges) {
            if (const auto whole = model_.find(part)) {
                ids.push_back(*whole);
                return;
            }
        }
        start(part);
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), later);
            const Pair pair = heap_.back();
            heap_.pop_back();
            Symbol& left = symbols_[pair.left];
            // One of the two has merged with another neighbour since; a dead symbol's token is `kNone`.
            if (left.token != pair.left_token || left.next == kNone || symbols_[left.next].token != pair.right_token)
                continue;
            Symbol& right = symbols_[left.next];
            left.token = pair.result;
            right.token = kNone;
            left.next = right.next;
            if (left.next != kNone) symbols_[left.next].previous = pair.left;
            if (left.previous != kNone) consider(left.previous);
            consider(pair.left);
        }
        for (uint32_t at = 0; at != kNone; at = symbols_[at].next)
            ids.push_back(symbols_[at].token);
    }

  private:
    struct Symbol {
        uint32_t token, previous, next;
    };
    struct Pair {
        uint32_t rank, left, left_token, right_token, result;
    };
    static bool later(const Pair& a, const Pair& b) { return a.rank != b.rank ? a.rank > b.rank : a.left > b.left; }

    void start(std::string_view part) {
        symbols_.clear();
        heap_.clear();
        const auto n = static_cast<uint32_t>(part.size());
        for (uint32_t i = 0; i < n; ++i)
            symbols_.push_back({model_.of_byte[static_cast<unsigned char>(part[i])], i == 0 ? kNone : i - 1,
                                i + 1 == n ? kNone : i + 1});
        for (uint32_t i = 0; i + 1 < n; ++i)
            add(i);
        std::make_heap(heap_.begin(), heap_.end(), later);
    }
    bool add(uint32_t left) {
        const Symbol& symbol = symbols_[left];
        if (symbol.next == kNone) return false;
        const uint32_t right_token = symbols_[symbol.next].token;
        const auto* merge = model_.merge_of(symbol.token, right_token);
        if (merge) heap_.push_back({merge->rank, left, symbol.token, right_token, merge->result});
        return merge != nullptr;
    }
    void consider(uint32_t left) {
        if (add(left)) std::push_heap(heap_.begin(), heap_.end(), later);
    }

    const BpeModel& model_;
    std::vector<Symbol> symbols_; // one for each byte of the part, linked past the dead ones
    std::vector<Pair> heap_;      // neighbours that can merge, the next one to do so at the front
};

class BpeTokenizer : public Tokenizer {
  public:
    BpeTokenizer(BpeModel model, PreTokenizer pre_tokenizer, VocabularyTraits traits)
        : model_(std::move(model)), pre_tokenizer_(std::move(pre_tokenizer)), traits_(std::move(traits)) {
        std::vector<SpelledTokens::Entry> controls, user_defined;
        for (uint32_t id = 0; id < model_.tokens.size(); ++id) {
            const auto& token = model_.tokens[id];
            if (token.kind == BpeKind::control) controls.push_back({token.bytes, id});
            if (token.kind == BpeKind::user_defined) user_defined.push_back({token.bytes, id});
        }
        controls_ = SpelledTokens(std::move(controls));
        user_defined_ = SpelledTokens(std::move(user_defined));
        end_ids_ = all_end_ids(traits_, controls_);
    }

    uint32_t vocab_size() const override { return static_cast<uint32_t>(model_.tokens.size()); }
    uint32_t bos_id() const override { return traits_.bos.value_or(0); }
    bool add_bos() const override { return traits_.bos && traits_.add_bos; }
    bool has_dummy_prefix() const override { return false; }
    std::optional<uint32_t> control_token(std::string_view spelling) const override { return controls_.find(spelling); }
    const std::vector<uint32_t>& end_ids() const override { return end_ids_; }
    const std::string& chat_template() const override { return traits_.chat_template; }

    Result<std::vector<uint32_t>> encode(std::string_view text) const override {
        if (text.size() > kMaxTextBytes) return text_too_long(text.size());
        return catching("tokenizer", "to split the text", [&]() -> Result<std::vector<uint32_t>> {
            std::string repaired;
            if (!valid_utf8(text)) text = repaired = with_replacements(text);
            std::vector<uint32_t> ids;
            Merger merger(model_);
            for (size_t at = 0; at < text.size();) {
                const auto word = user_defined_.next(text, at);
                const size_t end = word ? word->begin : text.size();
                AUSPEX_TRY(append_text(text.substr(at, end - at), merger, ids));
                if (word) ids.push_back(word->token);
                at = word ? end + word->length : end;
            }
            return ids;
        });
    }

    std::string piece(uint32_t token) const override { return has_bytes(token) ? model_.tokens[token].bytes : ""; }
    std::string spelling(uint32_t token) const override {
        if (token >= model_.tokens.size()) return {};
        const auto& entry = model_.tokens[token];
        if (entry.kind == BpeKind::unused) return {};
        return entry.kind == BpeKind::normal ? alphabet_spelling(entry.bytes) : entry.bytes;
    }

  private:
    const SpelledTokens* control_tokens() const override { return &controls_; }
    bool has_bytes(uint32_t token) const {
        return token < model_.tokens.size() &&
               (model_.tokens[token].kind == BpeKind::normal || model_.tokens[token].kind == BpeKind::user_defined);
    }
    Status append_text(std::string_view text, Merger& merger, std::vector<uint32_t>& ids) const {
        AUSPEX_TRY_ASSIGN(ends, pre_tokenizer_.ends_of_parts(text));
        size_t begin = 0;
        for (size_t end : ends) {
            merger.append(text.substr(begin, end - begin), ids);
            begin = end;
        }
        return ok_status();
    }

    BpeModel model_;
    PreTokenizer pre_tokenizer_;
    VocabularyTraits traits_;
    SpelledTokens controls_, user_defined_;
    std::vector<uint32_t> end_ids_;
};

} // namespace

Result<std::unique_ptr<Tokenizer>> make_bpe_tokenizer(BpeModel model, VocabularyTraits traits) {
    AUSPEX_TRY_ASSIGN(pre_tokenizer, PreTokenizer::llama3());
    return std::unique_ptr<Tokenizer>(
        std::make_unique<BpeTokenizer>(std::move(model), std::move(pre_tokenizer), std::move(traits)));
}

} // namespace auspex
