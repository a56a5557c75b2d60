// What every chunk of an answer begins with is written once: a chunk is put together, not built as an object.
#include "openai/chunks.h"

#include "openai/json_text.h"

namespace auspex::openai {

namespace {

std::string event(std::string_view json) {
    std::string text = "data: ";
    text += json;
    text += "\n\n";
    return text;
}

std::string quoted(std::string_view text) {
    return to_text(Json(text));
}

// [[id, origin, bytes], …]
std::string origins_text(std::span<const auspex_token> tokens) {
    std::string text = "[";
    for (const auspex_token& token : tokens)
        text += (text.size() > 1 ? ",[" : "[") + std::to_string(token.id) + "," + std::to_string(token.origin) + "," +
                std::to_string(token.text_bytes) + "]";
    return text + "]";
}

std::string figures(const Answer& answer) {
    return R"(,"timings":)" + to_text(timings_json(answer.totals)) + R"(,"auspex":)" + to_text(speculation_json(answer));
}

} // namespace

Chunks::Chunks(const Answer& head, const StreamOptions& options, uint64_t prompt_n)
    : endpoint_(head.endpoint), options_(options), has_tokens_(head.has_tokens), prompt_n_(prompt_n),
      choices_(head.choices.size()) {
    if (head.pieces)
        for (Choice& choice : choices_)
            choice.logprobs.emplace(endpoint_, head.pieces);
    if (endpoint_ == Endpoint::completion) {
        begin_ = "{";
        return;
    }
    const Json begin = {{"id", head.id},
                        {"object", endpoint_ == Endpoint::chat ? "chat.completion.chunk" : "text_completion"},
                        {"created", head.created},
                        {"model", head.model},
                        {"system_fingerprint", head.fingerprint}};
    begin_ = to_text(begin);
    begin_.back() = ',';
}

std::string Chunks::first_text(size_t choice, std::string_view text) {
    return text.empty() ? "" : chunk(choice, text, nullptr, "");
}

std::string Chunks::news(const News& news) {
    Choice& choice = choices_[news.choice];
    predicted_n_ += news.tokens.size();
    if (news.cached_n) cached_n_ = news.cached_n;
    choice.text_bytes += news.text.size();
    if (choice.logprobs) choice.logprobs->add(news.logprobs);
    if (has_tokens_ || options_.has_origins) choice.tokens.insert(choice.tokens.end(), news.tokens.begin(), news.tokens.end());
    if (news.text.empty() && !choice.has_begun) return "";
    return tell(news.choice, news.text, choice.logprobs ? choice.logprobs->take(choice.text_bytes) : Json());
}

// A text, and what was not told of its tokens.
std::string Chunks::tell(size_t index, std::string_view text, const Json& logprobs) {
    const std::vector<auspex_token> tokens = std::exchange(choices_[index].tokens, {});
    std::string more;
    if (has_tokens_) {
        std::vector<uint32_t> ids;
        for (const auspex_token& token : tokens)
            ids.push_back(token.id);
        more += R"(,"tokens":)" + to_text(Json(ids));
    }
    if (options_.has_origins) more += R"(,"auspex":{"tokens":)" + origins_text(tokens) + "}";
    if (text.empty() && more.empty() && logprobs.is_null() && !options_.has_continuous_usage) return "";
    return chunk(index, text, logprobs, more);
}

// more: members of the chunk itself.
std::string Chunks::chunk(size_t index, std::string_view text, const Json& logprobs, std::string_view more) {
    std::string json = begin_;
    const bool has_begun = std::exchange(choices_[index].has_begun, true);
    if (endpoint_ == Endpoint::completion) {
        json += R"("index":0,"content":)" + quoted(text) + R"(,"stop":false,"tokens_predicted":)" +
                std::to_string(predicted_n_) + R"(,"tokens_evaluated":)" + std::to_string(prompt_n_);
    } else {
        json += R"("choices":[{"index":)" + std::to_string(index);
        if (endpoint_ == Endpoint::completions)
            json += R"(,"text":)" + quoted(text);
        else
            json += (has_begun ? R"(,"delta":{"content":)" : R"(,"delta":{"role":"assistant","content":)") +
                    quoted(text) + "}";
        json += R"(,"logprobs":)" + (logprobs.is_null() ? "null" : to_text(logprobs)) + R"(,"finish_reason":null}])";
        json += usage_so_far();
    }
    json += more;
    return event(json + "}");
}

std::string Chunks::usage_so_far(const Answer* whole) const {
    if (!options_.has_continuous_usage) return options_.has_usage ? R"(,"usage":null)" : "";
    Totals totals;
    totals.prompt_n = prompt_n_;
    totals.predicted_n = predicted_n_;
    totals.cached_n = cached_n_.value_or(0);
    Json usage = usage_json(whole ? whole->totals : totals);
    if (!whole && !cached_n_) usage.erase("prompt_tokens_details"); // 0 would be an answer
    return R"(,"usage":)" + to_text(usage);
}

std::string Chunks::end_of_choice(size_t index, auspex_stop_reason reason, const Answer* last) {
    Choice& choice = choices_[index];
    const std::string untold = choice.tokens.empty() ? "" : tell(index, "", nullptr); // of an answer without text
    if (endpoint_ == Endpoint::completion) return untold;
    Json json = {{"index", index}};
    if (endpoint_ == Endpoint::chat)
        json["delta"] = choice.has_begun ? Json::object() : Json{{"role", "assistant"}, {"content", ""}};
    else
        json["text"] = "";
    json["logprobs"] = choice.logprobs ? choice.logprobs->take_last(choice.text_bytes, reason) : Json();
    json["finish_reason"] = finish_reason(reason);
    std::string chunk = begin_ + R"("choices":[)" + to_text(json) + "]" + usage_so_far(last);
    if (last && !options_.has_usage) chunk += figures(*last);
    return untold + event(chunk + "}");
}

std::string Chunks::end(const Answer& answer) {
    if (endpoint_ == Endpoint::completion) {
        Json json = to_json(answer);
        json["content"] = ""; // it has come
        json["tokens"] = Json::array();
        return event(to_text(json));
    }
    if (!options_.has_usage) return event("[DONE]");
    const std::string usage = R"("choices":[],"usage":)" + to_text(usage_json(answer.totals));
    return event(begin_ + usage + figures(answer) + "}") + event("[DONE]");
}

std::string error_event(const RequestError& error) {
    return event(to_text(error.body()));
}

std::string comment(std::string_view text) {
    return ": " + std::string(text) + "\n\n";
}

} // namespace auspex::openai
