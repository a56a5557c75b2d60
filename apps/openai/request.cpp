// The table of fields. What would change an answer and cannot be done yet is refused by name, never ignored.
#include "openai/request.h"

#include "openai/answer.h"
#include "openai/fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace auspex::openai {

namespace {

constexpr size_t kMaxPrompts = 1024, kMaxStopTexts = 16, kMaxStopBytes = 256, kMaxNameBytes = 256;
constexpr double kBan = -100; // OpenAI's word for never
constexpr int64_t kMostPriority = 10;

// ---- what cannot be done yet
// -------------------------------------------------------------------------------------------

void parse_response_format(const Fields& fields) {
    const Json* format = fields.find("response_format");
    if (!format) return;
    if (!format->is_object()) fields.refuse("response_format", "an object with a type");
    const Json type = format->value("type", Json());
    if (!type.is_string()) throw RequestError("response_format.type", "expected a string, " + found(type));
    if (type == "text") return;
    throw RequestError("response_format", "only the type \"text\" is supported yet, " + found(type), "unsupported");
}

void refuse_unsupported(const Fields& fields) {
    const auto refuse = [&](const char* name) { throw RequestError(name, "is not supported yet", "unsupported"); };
    for (const char* name : {"tools", "functions"})
        if (const Json* list = fields.find(name); list && !(list->is_array() && list->empty())) refuse(name);
    for (const char* name : {"tool_choice", "function_call"})
        if (const Json* choice = fields.find(name); choice && *choice != "none" && *choice != "auto") refuse(name);
    if (const Json* suffix = fields.find("suffix"); suffix && *suffix != "") refuse("suffix");
    if (fields.whole("n_probs", 0, 1000).value_or(0) > 0) refuse("n_probs");
    if (fields.whole("best_of", 1, 128).value_or(1) > 1) refuse("best_of");
    for (const char* name : {"timings_per_token", "return_progress"}) // llama.cpp's
        if (fields.boolean(name).value_or(false)) refuse(name);
}

// Names of the other interface, which llama.cpp's own lacks: whoever uses them there expects what they stand for.
void refuse_foreign(const Fields& fields) {
    if (const Json* asked = fields.find("logprobs"); asked && *asked != false) throw RequestError("logprobs", "is no field of /completion", "unsupported");
    if (fields.boolean("echo").value_or(false)) throw RequestError("echo", "is no field of /completion", "unsupported");
}

// ---- what is completed
// ---------------------------------------------------------------------------------------------------

// A string, or [{"type": "text", "text": …}, …], whose texts become lines.
std::string parse_content(const Json& content, const std::string& param) {
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) throw RequestError(param, "expected a string or an array of parts, " + found(content));
    std::string text;
    for (size_t i = 0; i < content.size(); ++i) {
        const Json& part = content[i];
        const std::string at = param + "[" + std::to_string(i) + "]";
        if (!part.is_object()) throw RequestError(at, "expected an object, " + found(part));
        if (const Json type = part.value("type", Json()); type != "text")
            throw RequestError(at + ".type", "expected \"text\", " + found(type));
        const Json words = part.value("text", Json());
        if (!words.is_string()) throw RequestError(at + ".text", "expected a string, " + found(words));
        text += (i == 0 ? "" : "\n") + words.get<std::string>();
    }
    return text;
}

std::vector<Message> parse_messages(const Fields& fields) {
    const Json* list = fields.find("messages");
    if (!list || !list->is_array() || list->empty()) fields.refuse("messages", "an array of messages");
    std::vector<Message> messages;
    for (size_t i = 0; i < list->size(); ++i) {
        const Json& message = (*list)[i];
        const std::string at = "messages[" + std::to_string(i) + "]";
        if (!message.is_object()) throw RequestError(at, "expected an object with role and content, " + found(message));
        const Json role = message.value("role", Json());
        if (role == "tool" || role == "function")
            throw RequestError(at + ".role", "messages of tools are not supported yet", "unsupported");
        constexpr std::array roles = {"system", "developer", "user", "assistant"};
        if (std::find(roles.begin(), roles.end(), role) == roles.end())
            throw RequestError(at + ".role", "expected system, developer, user or assistant, " + found(role));
        if (const Fields of(message, at + "."); of.find("tool_calls"))
            throw RequestError(of.param("tool_calls"), "is not supported yet", "unsupported");
        messages.push_back({role, parse_content(message.value("content", Json()), at + ".content")});
    }
    return messages;
}

bool is_id(const Json& value) {
    return value.is_number_integer();
}

// "text", ["text", …], [1, 2, …], [[1, 2, …], …]
std::vector<Prompt> parse_prompts(const Fields& fields, const Limits& limits, size_t most) {
    const Json* prompt = fields.find("prompt");
    if (prompt && prompt->is_string()) return {prompt->get<std::string>()};
    if (!prompt || !prompt->is_array() || prompt->empty())
        fields.refuse("prompt", "a string, an array of strings, or token ids");
    if (is_id(prompt->front())) return {parse_ids(*prompt, "prompt", limits.vocab_size)};
    if (prompt->size() > most)
        throw RequestError("prompt", "expected at most " + std::to_string(most) + ", found " + std::to_string(prompt->size()));
    std::vector<Prompt> prompts;
    for (size_t i = 0; i < prompt->size(); ++i) {
        const Json& one = (*prompt)[i];
        const std::string at = "prompt[" + std::to_string(i) + "]";
        if (one.is_string() && prompt->front().is_string()) {
            prompts.emplace_back(one.get<std::string>());
        } else if (one.is_array() && prompt->front().is_array()) {
            if (one.empty()) throw RequestError(at, "expected token ids, found an empty array");
            prompts.emplace_back(parse_ids(one, at, limits.vocab_size));
        } else {
            throw RequestError(at, "expected strings alone or arrays of token ids alone, " + found(one));
        }
    }
    return prompts;
}

// ---- how
// ---------------------------------------------------------------------------------------------------------------

// The newest name counts, but all are looked at.
std::optional<uint32_t> parse_max_tokens(const Fields& fields, const Limits& limits) {
    std::optional<uint32_t> chosen;
    const bool has_no_limit = fields.find("n_predict") && *fields.find("n_predict") == -1; // llama.cpp's word for it
    for (const char* name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
        if (has_no_limit && std::string_view(name) == "n_predict") continue;
        if (const auto value = fields.whole(name, 0, limits.max_context)) chosen = static_cast<uint32_t>(*value);
    }
    return chosen;
}

std::vector<std::string> parse_stop_texts(const Fields& fields) {
    const std::string expected = "a string or at most " + std::to_string(kMaxStopTexts) + " strings, each of 1 to " +
                                 std::to_string(kMaxStopBytes) + " bytes and without a zero byte";
    const Json* stop = fields.find("stop");
    if (!stop) return {};
    if (stop->is_array() ? stop->size() > kMaxStopTexts : !stop->is_string()) fields.refuse("stop", expected);
    std::vector<std::string> texts;
    for (const Json& one : stop->is_array() ? *stop : Json::array({*stop})) {
        if (!one.is_string()) throw RequestError("stop", "expected " + expected + ", " + found(one));
        const std::string& text = texts.emplace_back(one.get<std::string>());
        if (text.empty() || text.size() > kMaxStopBytes || text.find('\0') != std::string::npos)
            throw RequestError("stop", "expected " + expected + ", " + found(one));
    }
    return texts;
}

// vLLM's name and meaning.
std::string parse_cache_salt(const Fields& fields) {
    const std::string salt = fields.text("cache_salt", kMaxNameBytes).value_or("");
    if (salt.find('\0') != std::string::npos) fields.refuse("cache_salt", "a text without a zero byte");
    return salt;
}

// {"15043": -100, …}, or [[15043, -100], [29871, false], …]
std::vector<auspex_token_bias> parse_biases(const Fields& fields, const Limits& limits) {
    constexpr const char* name = "logit_bias";
    const Json* given = fields.find(name);
    if (!given) return {};
    if (!given->is_object() && !given->is_array()) fields.refuse(name, "an object or an array of pairs");
    if (given->size() > AUSPEX_MAX_BIASES)
        throw RequestError(name, "expected at most " + std::to_string(AUSPEX_MAX_BIASES) + " tokens, found " +
                                     std::to_string(given->size()));
    std::vector<auspex_token_bias> biases;
    const auto add = [&](const Json& id, const Json& bias) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() >= limits.vocab_size)
            throw RequestError(name, "expected token ids from 0 to " + std::to_string(limits.vocab_size - 1) + ", " +
                                         found(id));
        const bool is_ban = bias.is_boolean() && !bias.get<bool>();
        if (!is_ban && !(bias.is_number() && std::abs(bias.get<double>()) <= -kBan))
            throw RequestError(name, "expected numbers from -100 to 100, or false for never, " + found(bias));
        const auto token = id.get<uint32_t>();
        if (std::any_of(biases.begin(), biases.end(), [&](const auto& other) { return other.token == token; }))
            throw RequestError(name, "expected each token once, found " + std::to_string(token) + " twice");
        const bool is_never = is_ban || bias.get<double>() == kBan;
        biases.push_back(
            {token, is_never ? -std::numeric_limits<float>::infinity() : static_cast<float>(bias.get<double>())});
    };
    if (given->is_object()) {
        for (const auto& [key, bias] : given->items()) {
            const bool is_number = !key.empty() && key.size() < 11 &&
                                   std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
            add(is_number ? Json(std::stoull(key)) : Json(key), bias);
        }
        return biases;
    }
    for (const Json& pair : *given) {
        if (!pair.is_array() || pair.size() != 2)
            throw RequestError(name, "expected pairs of a token id and a bias, " + found(pair));
        add(pair[0], pair[1]);
    }
    return biases;
}

// Chat: logprobs true or false, and top_logprobs 0 … 20; completions: logprobs 0 … 20.
std::optional<uint32_t> parse_logprobs(const Fields& fields, Endpoint endpoint) {
    if (endpoint == Endpoint::completion) return std::nullopt;
    const bool is_chat = endpoint == Endpoint::chat;
    const Json* asked = fields.find("logprobs");
    // Of completions false is what some clients say for nothing.
    const bool is_off = is_chat ? !fields.boolean("logprobs").value_or(false) : !asked || *asked == false;
    const char* name = is_chat ? "top_logprobs" : "logprobs";
    if (is_off) {
        if (is_chat && fields.find(name))
            throw RequestError(name,
                               "expected logprobs to be true beside it, " + (asked ? found(*asked) : "found nothing"));
        return std::nullopt;
    }
    return static_cast<uint32_t>(fields.whole(name, 0, AUSPEX_MAX_LOGPROBS).value_or(0));
}

std::optional<uint32_t> parse_draft_len(const Fields& fields, const Limits& limits) {
    const Json* given = fields.find("draft_len");
    if (!given) return std::nullopt;
    if (*given == "auto") return AUSPEX_DRAFT_LEN_AUTO;
    if (!given->is_number()) fields.refuse("draft_len", "\"auto\" or a whole number");
    return static_cast<uint32_t>(*fields.whole("draft_len", 0, limits.max_draft_len));
}

std::optional<auspex_drafter> parse_drafter(const Fields& fields, const Limits& limits) {
    const Json* given = fields.find("drafter");
    if (!given) return std::nullopt;
    std::vector<auspex_drafter_info> drafters(auspex_list_drafters(nullptr, 0));
    auspex_list_drafters(drafters.data(), static_cast<uint32_t>(drafters.size()));
    std::string names;
    for (const auspex_drafter_info& info : drafters) {
        if (info.asks_host != 0) continue; // there is no host that could be asked
        if (*given != info.name) {
            names += (names.empty() ? "" : ", ") + std::string(info.name);
            continue;
        }
        if (!is_loaded(info, limits)) fields.refuse("drafter", "one that is loaded");
        return info.drafter;
    }
    fields.refuse("drafter", "one of " + names);
}

std::optional<auspex_acceptance> parse_acceptance(const Fields& fields) {
    const Json* given = fields.find("acceptance");
    if (!given) return std::nullopt;
    if (*given == "rejection") return AUSPEX_ACCEPT_REJECTION;
    if (*given == "coupled") return AUSPEX_ACCEPT_COUPLED;
    fields.refuse("acceptance", "\"rejection\" or \"coupled\"");
}

std::optional<StreamOptions> parse_stream(const Fields& fields) {
    const Json* given = fields.find("stream_options");
    if (given && !given->is_object()) fields.refuse("stream_options", "an object");
    const Json* ours = fields.find("auspex");
    if (ours && !ours->is_object()) fields.refuse("auspex", "an object");
    const bool has_origins = ours && Fields(*ours, "auspex.").boolean("origins").value_or(false);
    if (!fields.boolean("stream").value_or(false)) {
        if (given) throw RequestError("stream_options", "expected stream to be true beside it");
        return std::nullopt;
    }
    StreamOptions stream;
    if (given) {
        const Fields options(*given, "stream_options.");
        stream.has_usage = options.boolean("include_usage").value_or(false);
        stream.has_continuous_usage = options.boolean("continuous_usage_stats").value_or(false);
    }
    stream.has_origins = has_origins;
    return stream;
}

} // namespace

std::vector<Message> parse_messages(const Json& body) {
    if (!body.is_object()) throw RequestError("", "expected a JSON object as the body, " + found(body));
    return parse_messages(Fields(body));
}

std::vector<uint32_t> parse_ids(const Json& list, const std::string& param, uint32_t vocab_size) {
    std::vector<uint32_t> ids;
    for (const Json& id : list) {
        const bool fits = id.is_number_unsigned() && id.get<uint64_t>() < vocab_size;
        if (!fits)
            throw RequestError(param, "expected token ids from 0 to " + std::to_string(vocab_size - 1) + ", " + found(id));
        ids.push_back(id.get<uint32_t>());
    }
    return ids;
}

bool is_loaded(const auspex_drafter_info& drafter, const Limits& limits) {
    if (drafter.needs_model == 0 && drafter.needs_self == 0) return true;
    return (drafter.needs_model != 0 && limits.has_draft_model) || (drafter.needs_self != 0 && limits.has_self_draft);
}

std::optional<Endpoint> endpoint_of(std::string_view path) {
    if (path == "/v1/completions") return Endpoint::completions;
    if (path == "/v1/chat/completions") return Endpoint::chat;
    if (path == "/completion") return Endpoint::completion;
    return std::nullopt;
}

Request parse_request(Endpoint endpoint, const Json& body, const Limits& limits) {
    if (!body.is_object()) throw RequestError("", "expected a JSON object as the body, " + found(body));
    const Fields fields(body);
    Request request{.endpoint = endpoint};
    request.model = fields.text("model", kMaxNameBytes);
    for (const char* name : {"user", "prompt_cache_key"}) // for balancers
        fields.text(name, kMaxNameBytes);
    refuse_unsupported(fields);
    if (endpoint == Endpoint::completion) refuse_foreign(fields);
    parse_response_format(fields);
    if (endpoint == Endpoint::chat)
        request.messages = parse_messages(fields);
    else
        request.prompts = parse_prompts(fields, limits, endpoint == Endpoint::completion ? 1 : kMaxPrompts);

    request.n = static_cast<uint32_t>(fields.whole("n", 1, endpoint == Endpoint::completion ? 1 : limits.max_choices).value_or(1));
    request.max_tokens = parse_max_tokens(fields, limits);
    request.seed = fields.whole("seed", INT64_MIN, INT64_MAX);
    if (endpoint == Endpoint::completion && request.seed == -1) request.seed.reset(); // llama.cpp's word for any
    request.temperature = fields.number("temperature", 0, 5).value_or(limits.temperature);
    request.top_p = fields.number("top_p", 0, 1).value_or(request.top_p);
    if (request.top_p <= 0) fields.refuse("top_p", "a number above 0, at most 1");
    request.min_p = fields.number("min_p", 0, 1).value_or(request.min_p);
    request.top_k = static_cast<uint32_t>(fields.whole("top_k", 0, limits.vocab_size).value_or(0));
    request.repeat_penalty = fields.number("repeat_penalty", 0.1, 10).value_or(request.repeat_penalty);
    request.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
    request.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
    request.biases = parse_biases(fields, limits);
    request.stop_texts = parse_stop_texts(fields);
    request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
    request.draft_len = parse_draft_len(fields, limits);
    request.drafter = parse_drafter(fields, limits);
    request.acceptance = parse_acceptance(fields);
    request.logprobs = parse_logprobs(fields, endpoint);
    request.priority = static_cast<int32_t>(fields.whole("priority", -kMostPriority, kMostPriority).value_or(0));
    request.cache_salt = parse_cache_salt(fields);
    request.is_cached = fields.boolean("cache_prompt").value_or(true);
    request.has_tokens = fields.boolean("return_tokens").value_or(false);
    request.has_echo = fields.boolean("echo").value_or(false) && endpoint == Endpoint::completions;
    if (request.has_echo && request.logprobs)
        throw RequestError("echo", "is not supported yet beside logprobs", "unsupported");
    request.stream = parse_stream(fields);
    return request;
}

ChoiceDesc::ChoiceDesc(const Request& request, const auspex_sequence_desc& usual, uint64_t seed, uint32_t choice)
    : desc_(usual) {
    for (const std::string& text : request.stop_texts)
        stop_texts_.push_back(text.c_str());
    desc_.max_tokens = request.max_tokens ? *request.max_tokens == 0 ? AUSPEX_HOLD : *request.max_tokens : 0;
    desc_.temperature = static_cast<float>(request.temperature);
    desc_.seed = seed + choice;
    desc_.ignore_eos = request.ignore_eos ? 1 : 0;
    desc_.repeat_penalty = static_cast<float>(request.repeat_penalty);
    desc_.presence_penalty = static_cast<float>(request.presence_penalty);
    desc_.frequency_penalty = static_cast<float>(request.frequency_penalty);
    desc_.biases = request.biases.data();
    desc_.bias_count = request.biases.size();
    desc_.top_k = request.top_k;
    desc_.top_p = static_cast<float>(request.top_p);
    desc_.min_p = static_cast<float>(request.min_p);
    desc_.stop_texts = stop_texts_.data();
    desc_.stop_text_count = stop_texts_.size();
    if (request.draft_len) desc_.draft_len = *request.draft_len;
    if (request.drafter) desc_.drafter = *request.drafter;
    if (request.acceptance) desc_.acceptance = *request.acceptance;
    desc_.with_logprobs = request.logprobs ? 1 : 0;
    desc_.n_logprobs = request.logprobs.value_or(0);
    desc_.priority = request.priority;
    cache_salt_ = request.is_cached ? request.cache_salt : random_id(request.cache_salt + "\nonce-"); // that nobody else has
    desc_.cache_salt = cache_salt_.c_str();
}

} // namespace auspex::openai
