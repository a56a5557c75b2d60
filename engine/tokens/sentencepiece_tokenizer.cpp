// Llama's SentencePiece vocabularies. The only file that includes the library; it splits text into pieces and does
// nothing else. Pieces back to bytes is ours (tokens/text_stream.h), because text must come out as tokens arrive.
#include "base/catching.h"
#include "base/platform.h"
#include "tokens/open_tokenizer.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/spelled_tokens.h"
#include "tokens/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <map>

namespace auspex {
namespace {

using PieceType = SentencePieceModel::Type;

// Encoding takes about 250 bytes of memory for each byte of text.

std::string bytes_of_piece(const SentencePieceModel& model, const SentencePieceModel::Piece& piece) {
    using Type = PieceType;
    if (piece.type == Type::control || piece.type == Type::unused) return {};
    if (piece.type == Type::unknown) return model.unknown_surface;
    if (piece.type == Type::byte) return std::string(1, static_cast<char>(byte_of_spelling(piece.spelling)));
    std::string out;
    for (size_t at = 0; at < piece.spelling.size();) {
        const bool space = std::string_view(piece.spelling).substr(at).starts_with(kSpaceSymbol);
        out += space ? ' ' : piece.spelling[at];
        at += space ? kSpaceSymbol.size() : 1;
    }
    return out;
}

class SentencePieceTokenizer : public Tokenizer {
  public:
    SentencePieceTokenizer(SentencePieceModel model, std::unique_ptr<sentencepiece::SentencePieceProcessor> processor,
                           VocabularyTraits traits)
        : model_(std::move(model)), processor_(std::move(processor)), traits_(std::move(traits)) {
        std::vector<SpelledTokens::Entry> controls;
        for (uint32_t id = 0; id < model_.pieces.size(); ++id)
            if (model_.pieces[id].type == PieceType::control)
                controls.push_back({model_.pieces[id].spelling, id});
        controls_ = SpelledTokens(std::move(controls));
        end_ids_ = all_end_ids(traits_, controls_);
    }

    uint32_t vocab_size() const override { return static_cast<uint32_t>(model_.pieces.size()); }
    uint32_t bos_id() const override { return traits_.bos.value_or(0); }
    bool add_bos() const override { return traits_.bos && traits_.add_bos; }
    std::optional<uint32_t> control_token(std::string_view spelling) const override { return controls_.find(spelling); }
    const std::vector<uint32_t>& end_ids() const override { return end_ids_; }
    const std::string& chat_template() const override { return traits_.chat_template; }
    bool has_dummy_prefix() const override { return model_.add_dummy_prefix; }

    Result<std::vector<uint32_t>> encode(std::string_view text) const override {
        if (text.size() > kMaxTextBytes) return text_too_long(text.size());
        return catching("tokenizer", "to split the text", [&]() -> Result<std::vector<uint32_t>> {
            std::vector<int> ids;
            const auto status = processor_->Encode({text.data(), text.size()}, &ids);
            if (!status.ok()) return Status(Code::internal, "tokenizer: " + in_quotes(status.ToString()));
            return std::vector<uint32_t>(ids.begin(), ids.end()); // ids of our own pieces: never negative
        });
    }

    std::string piece(uint32_t token) const override {
        return token < model_.pieces.size() ? bytes_of_piece(model_, model_.pieces[token]) : std::string();
    }
    std::string spelling(uint32_t token) const override {
        const bool is_used = token < model_.pieces.size() && model_.pieces[token].type != PieceType::unused;
        return is_used ? model_.pieces[token].spelling : std::string();
    }

  private:
    const SpelledTokens* control_tokens() const override { return &controls_; }

    SentencePieceModel model_;
    std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_; // Encode is const and safe to share
    VocabularyTraits traits_;
    SpelledTokens controls_;
    std::vector<uint32_t> end_ids_;
};

Status check_kind_of_file(const std::string& folder, const std::string& path) {
    if (path_exists(path)) return ok_status();
    if (path_exists(folder + "/tokenizer.json"))
        return {Code::unsupported, path + ": found only tokenizer.json, expected a SentencePiece tokenizer.model"};
    return {Code::not_found,
            path + ": found no such file, expected the tokenizer; check that the download is complete"};
}

Result<SentencePieceModel> read_file(const std::string& path) {
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    const auto bytes = file.bytes();
    const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 256));
    if (start.starts_with("version https://git-lfs"))
        return Status(Code::bad_file, path + ": found a Git LFS pointer, expected the tokenizer; run git lfs pull");
    if (looks_like_tiktoken(start))
        return Status(Code::unsupported, path + ": found tiktoken text, expected a SentencePiece model; Llama 3's "
                                                "vocabulary is read from tokenizer.json");
    return parse_sentencepiece_model(bytes, path);
}

// Words that the settings add or say more of. Ids between them that nobody names are unused.
Status add_words(const std::string& folder, const TokenizerSettings& settings, SentencePieceModel& model) {
    auto& pieces = model.pieces;
    const auto spelled = [](const AddedWord& word) {
        return word.special ? word.spelling : with_space_symbols(word.spelling); // what text is searched for
    };
    std::map<std::string, uint32_t, std::less<>> own; // of the words below: where tokenizer.model has them
    for (const AddedWord& word : settings.added)
        own.emplace(spelled(word), UINT32_MAX);
    for (uint32_t id = 0; id < pieces.size(); ++id)
        if (const auto found = own.find(pieces[id].spelling); found != own.end()) found->second = id;
    const auto n_own = static_cast<uint32_t>(pieces.size());
    for (const AddedWord& word : settings.added) {
        const auto refused = [&](const std::string& expected) {
            return Status(Code::bad_file, folder + "/" + word.file + ": found the id " + std::to_string(word.id) +
                                              " for the token " + in_quotes(word.spelling) + ", expected " + expected);
        };
        const uint32_t own_id = own.find(spelled(word))->second;
        if (own_id != UINT32_MAX && own_id != word.id) return refused(std::to_string(own_id) + ", its id in tokenizer.model");
        const SentencePieceModel::Piece piece = {spelled(word), 0.0f, word.special ? PieceType::control : PieceType::user_defined};
        if (word.id >= n_own) {
            pieces.resize(word.id, {"", 0.0f, PieceType::unused});
            pieces.push_back(piece);
            continue;
        }
        const PieceType type = pieces[word.id].type;
        const bool is_word_of_text = type == PieceType::normal || type == PieceType::byte || type == PieceType::unknown;
        if (own_id != word.id && is_word_of_text)
            return refused("the word " + in_quotes(pieces[word.id].spelling) + " that tokenizer.model has there");
        if (type != PieceType::byte && type != PieceType::unknown) pieces[word.id] = piece;
    }
    for (auto& piece : pieces)
        if (piece.type == PieceType::user_defined && settings.names(piece.spelling)) piece.type = PieceType::control;
    return ok_status();
}

} // namespace

Result<SentencePieceModel> read_sentencepiece_model(const std::string& folder, const TokenizerSettings& settings) {
    const std::string path = folder + "/tokenizer.model";
    AUSPEX_TRY_ASSIGN(model, read_file(path));
    AUSPEX_TRY(add_words(folder, settings, model));
    AUSPEX_TRY(check_sentencepiece_model(model, path));
    return model;
}

bool looks_like_tiktoken(std::string_view start) {
    const size_t space = start.find(' ');
    if (space == 0 || space == std::string_view::npos) return false;
    const std::string_view rest = start.substr(space + 1, start.find('\n') - space - 1);
    const auto base64 = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
               c == '=';
    };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return start.find('\n') != std::string_view::npos && start.find('\n') > space &&
           std::all_of(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(space), base64) && !rest.empty() &&
           std::all_of(rest.begin(), rest.end(), digit);
}

Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(SentencePieceModel model, VocabularyTraits traits,
                                                                const std::string& path) {
    const auto refused = [&](std::string_view why) {
        return Status(Code::bad_file, path + ": found a model that SentencePiece refuses (" + in_quotes(why, 160) +
                                          "), expected a valid one");
    };
    try {
        auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
        const auto status = processor->LoadFromSerializedProto(serialize_sentencepiece_model(model));
        if (!status.ok()) return refused(status.ToString());
        return std::unique_ptr<Tokenizer>(
            std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(processor), std::move(traits)));
    } catch (const std::bad_alloc&) {
        return Status(Code::out_of_host_memory, path + ": found no memory to read it");
    } catch (const std::exception& error) {
        return refused(error.what());
    }
}

Result<std::unique_ptr<Tokenizer>> open_sentencepiece_tokenizer(const std::string& folder) {
    const std::string path = folder + "/tokenizer.model";
    return catching(path, "to read it", [&]() -> Result<std::unique_ptr<Tokenizer>> {
        AUSPEX_TRY(check_kind_of_file(folder, path));
        AUSPEX_TRY_ASSIGN(settings, read_tokenizer_settings(folder));
        AUSPEX_TRY_ASSIGN(model, read_sentencepiece_model(folder, settings));
        VocabularyTraits traits;
        for (uint32_t id = 0; id < model.pieces.size(); ++id)
            if (model.pieces[id].type == PieceType::control && model.pieces[id].spelling == model.bos_spelling)
                traits.bos = id;
        traits.add_bos = settings.add_bos.value_or(true);
        if (!settings.eos_spelling.empty()) traits.end_spellings.push_back(std::move(settings.eos_spelling));
        traits.chat_template = std::move(settings.chat_template);
        return make_sentencepiece_tokenizer(std::move(model), std::move(traits), path);
    });
}

} // namespace auspex
