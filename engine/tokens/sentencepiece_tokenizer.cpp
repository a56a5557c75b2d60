// Llama's SentencePiece vocabularies. The only file that includes the library; it splits text into pieces and does
// nothing else. Pieces back to bytes is ours (tokens/text_stream.h), because text must come out as tokens arrive.
#include "base/platform.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/tokenizer.h"

#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>

namespace auspex {
namespace {

using nlohmann::json;

constexpr uint64_t max_settings_bytes = 16u << 20; // tokenizer_config.json may list added tokens
constexpr size_t max_text_bytes = 4u << 20;        // the library takes about 250 bytes for each: 1 GiB

std::string bytes_of_piece(const SentencePieceModel& model, const SentencePieceModel::Piece& piece) {
    using Type = SentencePieceModel::Type;
    if (piece.type == Type::control) return {};
    if (piece.type == Type::unknown) return model.unknown_surface;
    if (piece.type == Type::byte) return std::string(1, static_cast<char>(byte_of_spelling(piece.spelling)));
    std::string out;
    for (size_t at = 0; at < piece.spelling.size();) {
        const bool space = std::string_view(piece.spelling).substr(at).starts_with(space_symbol);
        out += space ? ' ' : piece.spelling[at];
        at += space ? space_symbol.size() : 1;
    }
    return out;
}

class SentencePieceTokenizer : public Tokenizer {
  public:
    // bos: -1 when the vocabulary has no such control token.
    SentencePieceTokenizer(SentencePieceModel model, std::unique_ptr<sentencepiece::SentencePieceProcessor> processor,
                           int64_t bos, bool add_bos)
        : model_(std::move(model)), processor_(std::move(processor)), bos_id_(bos < 0 ? 0 : static_cast<uint32_t>(bos)),
          add_bos_(bos >= 0 && add_bos) {}

    uint32_t vocab_size() const override { return static_cast<uint32_t>(model_.pieces.size()); }
    uint32_t bos_id() const override { return bos_id_; }
    bool add_bos() const override { return add_bos_; }
    bool has_dummy_prefix() const override { return model_.add_dummy_prefix; }

    Result<std::vector<uint32_t>> encode(std::string_view text) const override {
        if (text.size() > max_text_bytes)
            return Status(Code::invalid_argument, "text: found " + std::to_string(text.size()) +
                                                      " bytes, expected at most " + std::to_string(max_text_bytes) +
                                                      "; encode it in parts");
        try {
            std::vector<int> ids;
            const auto status = processor_->Encode({text.data(), text.size()}, &ids);
            if (!status.ok()) return Status(Code::internal, "tokenizer: " + in_quotes(status.ToString()));
            return std::vector<uint32_t>(ids.begin(), ids.end()); // ids of our own pieces: never negative
        } catch (const std::bad_alloc&) {
            return Status(Code::out_of_host_memory, "tokenizer: found no memory to split the text");
        } catch (const std::exception& error) {
            return Status(Code::internal, "tokenizer: " + in_quotes(error.what()));
        }
    }

    std::string piece(uint32_t token) const override {
        return token < model_.pieces.size() ? bytes_of_piece(model_, model_.pieces[token]) : std::string();
    }
    std::string spelling(uint32_t token) const override {
        return token < model_.pieces.size() ? model_.pieces[token].spelling : std::string();
    }

  private:
    SentencePieceModel model_;
    std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_; // Encode is const and safe to share
    uint32_t bos_id_;
    bool add_bos_;
};

// add_bos_token of tokenizer_config.json; true when the file or the key is absent. Everything else in the file is
// dropped while it is read.
Result<bool> read_add_bos(const std::string& path) {
    if (!path_exists(path)) return true;
    AUSPEX_TRY_ASSIGN(text, read_text_file(path, max_settings_bytes));
    const auto keep = [](int depth, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::key) return parsed == "add_bos_token";
        return depth <= 1;
    };
    const json root = json::parse(text, keep, /*allow_exceptions=*/false);
    if (!root.is_object())
        return Status(Code::bad_file, path + ": found no JSON object, expected one; fetch the file again");
    const auto value = root.find("add_bos_token");
    if (value == root.end() || value->is_null()) return true;
    if (!value->is_boolean())
        return Status(Code::bad_file,
                      path + ": found add_bos_token that is neither true nor false, expected one of them");
    return value->get<bool>();
}

// tiktoken vocabularies (Meta's own Llama 3 files) bear the same name: lines of base64, a space and a rank.
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

Status check_kind_of_file(const std::string& folder, const std::string& path) {
    if (path_exists(path)) return ok_status();
    if (path_exists(folder + "/tokenizer.json"))
        return {Code::unsupported, path + ": found only tokenizer.json, expected a SentencePiece tokenizer.model; "
                                          "tokenizer.json is not supported yet"};
    return {Code::not_found,
            path + ": found no such file, expected the tokenizer; check that the download is complete"};
}

Result<SentencePieceModel> read_model(const std::string& path) {
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    const auto bytes = file.bytes();
    const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 256));
    if (start.starts_with("version https://git-lfs"))
        return Status(Code::bad_file, path + ": found a Git LFS pointer, expected the tokenizer; run git lfs pull");
    if (looks_like_tiktoken(start))
        return Status(Code::unsupported, path + ": found tiktoken text, expected a SentencePiece model; Llama 3 "
                                                "tokenizers are not supported yet");
    return parse_sentencepiece_model(bytes, path);
}

} // namespace

Result<std::unique_ptr<Tokenizer>> open_sentencepiece_tokenizer(const std::string& folder) {
    const std::string path = folder + "/tokenizer.model";
    try {
        AUSPEX_TRY(check_kind_of_file(folder, path));
        AUSPEX_TRY_ASSIGN(model, read_model(path));
        AUSPEX_TRY_ASSIGN(add_bos, read_add_bos(folder + "/tokenizer_config.json"));
        auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
        const auto status = processor->LoadFromSerializedProto(serialize_sentencepiece_model(model));
        if (!status.ok())
            return Status(Code::bad_file, path + ": found a model that SentencePiece refuses (" +
                                              in_quotes(status.ToString(), 160) + "), expected a valid one");
        int64_t bos = -1;
        for (size_t id = 0; id < model.pieces.size(); ++id)
            if (model.pieces[id].type == SentencePieceModel::Type::control &&
                model.pieces[id].spelling == model.bos_spelling)
                bos = static_cast<int64_t>(id);
        return std::unique_ptr<Tokenizer>(
            std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(processor), bos, add_bos));
    } catch (const std::bad_alloc&) {
        return Status(Code::out_of_host_memory, path + ": found no memory to read it");
    } catch (const std::exception& error) {
        return Status(Code::bad_file, path + ": found a model that SentencePiece refuses (" +
                                          in_quotes(error.what(), 160) + "), expected a valid one");
    }
}

} // namespace auspex
