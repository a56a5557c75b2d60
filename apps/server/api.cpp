#include "server/api.h"

#include "cli/common/input/values.h"
#include "openai/fields.h"
#include "openai/json_text.h"
#include "server/page/page_files.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace auspex::server {

namespace {

using openai::Json;
using openai::RequestError;

constexpr std::string_view kModels = "/v1/models/";
constexpr const char* kLoading = "Loading model"; // llama.cpp's words, for which clients look
constexpr size_t kMostTokenizeBytes = size_t{1} << 20;

constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const PageFile* find_page_file(const std::string& path) {
    for (const PageFile* file = page_files; file->path != nullptr; ++file)
        if (path == file->path) return file;
    return nullptr;
}

const char* phase_name(auspex_phase phase) {
    constexpr std::array names = {"waiting", "prompt", "running", "finished", "parked"};
    return names[std::min<size_t>(phase, names.size() - 1)];
}

// Those that a request may name, in the order in which people are told of them.
Json drafters_of(const openai::Limits& limits) {
    std::vector<auspex_drafter_info> all(auspex_list_drafters(nullptr, 0));
    auspex_list_drafters(all.data(), static_cast<uint32_t>(all.size()));
    Json names = Json::array();
    for (const auspex_drafter_info& info : all)
        if (info.asks_host == 0 && openai::is_loaded(info, limits)) names.push_back(info.name);
    return names;
}

Json parse_object(const std::string& body) {
    Json json = openai::parse_json(body);
    if (!json.is_object()) throw RequestError("", "expected a JSON object as the body, " + openai::found(json));
    return json;
}

} // namespace

Api::Api(const Settings& settings, EngineThread& engine, Worker& worker, Around around)
    : settings_(settings), engine_(engine), worker_(worker), around_(std::move(around)), guard_(settings) {}

const std::vector<Api::Route>& Api::routes() {
    static const std::vector<Route> all = {
        {"POST", "/v1/chat/completions", &Api::complete},
        {"POST", "/v1/completions", &Api::complete},
        {"POST", "/completion", &Api::complete},
        {"GET", "/v1/models", &Api::list_models},
        {"GET", "/health", &Api::health, true},
        {"GET", "/v1/health", &Api::health, true},
        {"GET", "/health/live", &Api::live, true},
        {"GET", "/metrics", &Api::metrics},
        {"GET", "/props", &Api::props},
        {"GET", "/slots", &Api::slots},
        {"POST", "/tokenize", &Api::tokenize},
        {"POST", "/detokenize", &Api::detokenize},
        {"POST", "/apply-template", &Api::apply_template},
    };
    return all;
}

const Api::Route* Api::find(const http::Request& request, std::string* allowed) const {
    static const Route model = {"GET", "/v1/models/{id}", &Api::show_model};
    static const Route file = {"GET", "/", &Api::page, true};
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    std::string others;
    const auto fits = [&](const Route& route) {
        if (method == route.method) return true;
        others += (others.empty() ? "" : ", ") + std::string(route.method == std::string_view("GET") ? "GET, HEAD" : route.method);
        return false;
    };
    for (const Route& route : routes())
        if (request.path == route.path && fits(route)) return &route;
    if (request.path.size() > kModels.size() && request.path.starts_with(kModels) && fits(model)) return &model;
    if (settings_.has_page && find_page_file(request.path) && fits(file)) return &file;
    if (allowed) *allowed = others;
    if (!others.empty()) throw RequestError("", "found the method " + cli::as_one_line(cli::shortened(request.method, 20)) + ", expected " + others, "method_not_allowed", 405);
    throw RequestError("", "there is nothing at this path", "not_found", 404);
}

bool Api::is_open(const http::Request& request) const {
    try {
        return find(request)->is_open;
    } catch (const RequestError&) {
        return false;
    }
}

std::vector<http::Header> Api::headers(const http::Request& request, const std::string& request_id) const {
    std::vector<http::Header> headers = {{"X-Request-Id", request_id}};
    if (const std::string* origin = guard_.cors_origin(request)) {
        headers.emplace_back("Access-Control-Allow-Origin", *origin); // as the settings spell it
        headers.emplace_back("Vary", "Origin");
        headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
    }
    return headers;
}

void Api::respond(const Call& call, http::Response response) const {
    for (http::Header& header : headers(call.request(), call.request_id))
        response.headers.push_back(std::move(header));
    call.exchange->respond(std::move(response));
}

void Api::respond(const Call& call, const Json& body) const {
    respond(call, http::Response{.body = openai::to_text(body)});
}

void Api::respond_by(const Call& call, size_t n_bytes, std::function<Json()> answer) {
    if (n_bytes <= kLongBytes) return respond(call, answer());
    worker_.put([this, call, answer = std::move(answer)] {
        http::Response response;
        try {
            response.body = openai::to_text(answer());
        } catch (const RequestError& error) {
            response = error_response(error);
        } catch (const std::exception& error) {
            response = error_response(RequestError("", error.what(), "", 500));
        }
        around_.post([this, call, response] { respond(call, response); });
    });
}

std::optional<http::Response> Api::check(const http::Request& request) {
    const std::string request_id = openai::random_id("req-");
    std::string allowed; // methods
    try {
        if (request.method == "OPTIONS" && guard_.cors_origin(request)) {
            http::Response response{.status = 204, .headers = headers(request, request_id)};
            response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
            response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, *");
            response.headers.emplace_back("Access-Control-Max-Age", "600");
            return response;
        }
        guard_.check(request, is_open(request));
        if (!find(request, &allowed)->is_open && !about_) throw RequestError("", kLoading, "", 503);
        return std::nullopt;
    } catch (const RequestError& error) {
        http::Response response = error_response(error);
        if (error.status() == 405) response.headers.emplace_back("Allow", allowed);
        for (http::Header& header : headers(request, request_id))
            response.headers.push_back(std::move(header));
        return response;
    }
}

http::Response Api::refuse(int status, const std::string& message) {
    http::Response response = error_response(RequestError("", message, "", status));
    response.headers.emplace_back("X-Request-Id", openai::random_id("req-"));
    return response;
}

void Api::handle(const std::shared_ptr<http::Exchange>& exchange) {
    const Call call{exchange, openai::random_id("req-")};
    try {
        (this->*find(exchange->request())->action)(call);
    } catch (const RequestError& error) {
        if (openai::endpoint_of(exchange->request().path))
            metrics_.add_request(exchange->request().path, Metrics::Result::rejected, 0);
        respond(call, error_response(error));
    }
}

// ---- answers
// -----------------------------------------------------------------------------------------------------------

void Api::complete(const Call& call) {
    const http::Request& request = call.request();
    if (const std::string why = trouble(); !why.empty()) throw RequestError("", why, "", 503);
    openai::Request asked = openai::parse_request(*openai::endpoint_of(request.path), openai::parse_json(request.body), about_->limits);
    if (settings_.is_model_strict && asked.model && *asked.model != about_->model)
        throw RequestError("model", "expected " + about_->model, "model_not_found", 404);
    if (settings_.is_salted_by_key) asked.cache_salt = std::to_string(guard_.key_of(request).value()) + "\n" + asked.cache_salt;
    auto ticket = std::make_shared<Ticket>(call.exchange, std::move(asked));
    replies_.open(ticket, request.path, headers(request, call.request_id),
                  [this](std::shared_ptr<Ticket> gone) { engine_.cancel(std::move(gone)); });
    engine_.submit(std::move(ticket));
}

// ---- what there is
// -----------------------------------------------------------------------------------------------------

Json Api::model_json() const {
    return {{"id", about_->model},
            {"object", "model"},
            {"created", about_->created},
            {"owned_by", "auspex"},
            {"max_model_len", about_->limits.max_context},
            {"meta", {{"n_vocab", about_->limits.vocab_size}, {"n_ctx", about_->limits.max_context}}}};
}

void Api::list_models(const Call& call) {
    respond(call, Json{{"object", "list"}, {"data", Json::array({model_json()})}});
}

void Api::show_model(const Call& call) {
    if (call.request().path.substr(kModels.size()) != about_->model)
        throw RequestError("", "expected " + about_->model, "model_not_found", 404);
    respond(call, model_json());
}

std::string Api::trouble() const {
    if (!about_) return kLoading;
    if (engine_.is_lost()) return engine_.lost_because();
    if (engine_.is_draining()) return "the server is shutting down";
    if (engine_.is_stuck()) return "the engine or its device has not answered for seconds";
    return "";
}

void Api::health(const Call& call) {
    if (const std::string why = trouble(); !why.empty())
        return respond(call, http::Response{.status = 503,
                                            .body = openai::to_text({{"error", {{"code", 503}, {"message", why}, {"type", "unavailable_error"}}}}),
                                            .headers = {{"Retry-After", "1"}}});
    respond(call, Json{{"status", "ok"}});
}

void Api::live(const Call& call) {
    const bool is_dead = engine_.is_lost() || engine_.is_stuck();
    respond(call, http::Response{.status = is_dead ? 503 : 200, .body = openai::to_text({{"status", is_dead ? "dead" : "ok"}})});
}

void Api::metrics(const Call& call) {
    respond(call, http::Response{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                 .body = metrics_.text(*engine_.snapshot(), around_.connections(), *about_, trouble().empty(), engine_.heartbeat_age_s())});
}

void Api::props(const Call& call) {
    const openai::Limits& limits = about_->limits;
    const Speculation& usual = about_->speculation;
    respond(call, Json{{"default_generation_settings",
                        {{"n_ctx", limits.max_context},
                         {"params",
                          {{"temperature", limits.temperature},
                           {"top_k", 0},
                           {"top_p", 1.0},
                           {"min_p", 0.0},
                           {"repeat_penalty", 1.0},
                           {"presence_penalty", 0.0},
                           {"frequency_penalty", 0.0},
                           {"n_predict", -1},
                           {"seed", -1},
                           {"draft_len", usual.draft_len ? Json(*usual.draft_len) : Json("auto")},
                           {"drafter", usual.drafter},
                           {"acceptance", usual.acceptance}}}}},
                       {"total_slots", settings_.slots},
                       {"queue", settings_.queue},
                       {"model_alias", about_->model},
                       {"model_path", about_->model_path},
                       {"model", about_->model},
                       {"n_ctx", limits.max_context},
                       {"n_vocab", limits.vocab_size},
                       {"max_draft_len", limits.max_draft_len},
                       {"has_draft", limits.has_draft_model || limits.has_self_draft},
                       {"drafters", drafters_of(limits)},
                       {"device", about_->device},
                       {"driver", about_->driver},
                       {"numerics", about_->numerics},
                       {"version", about_->version},
                       {"build_info", "auspex " + about_->version},
                       {"modalities", {{"vision", false}, {"audio", false}}}});
}

// One entry for each slot, as llama.cpp has them; those that wait come after.
void Api::slots(const Call& call) {
    const auto snapshot = engine_.snapshot();
    Json slots = Json::array();
    const auto add = [&](const Snapshot::Line* line) {
        Json slot = {{"id", slots.size()}, {"n_ctx", about_->limits.max_context}, {"is_processing", line != nullptr}};
        if (line) {
            slot["id_task"] = line->id;
            slot["state"] = phase_name(line->phase);
            if (line->phase == AUSPEX_PHASE_WAITING) slot["place"] = line->place;
            slot["n_choices"] = line->n_choices;
            slot["n_prompt_tokens"] = line->prompt_n;
            slot["n_decoded"] = line->predicted_n;
        }
        slots.push_back(std::move(slot));
    };
    for (const Snapshot::Line& line : snapshot->lines)
        add(&line);
    while (slots.size() < settings_.slots)
        add(nullptr);
    respond(call, slots);
}

// ---- tokens
// ------------------------------------------------------------------------------------------------------------

void Api::tokenize(const Call& call) {
    const Json body = parse_object(call.request().body);
    const openai::Fields fields(body);
    const auto text = fields.text("content", kMostTokenizeBytes);
    if (!text) fields.refuse("content", "a string");
    const bool add_special = fields.boolean("add_special").value_or(false);
    const bool parse_special = fields.boolean("parse_special").value_or(false);
    const bool with_pieces = fields.boolean("with_pieces").value_or(false);
    respond_by(call, text->size(), [this, text = *text, add_special, parse_special, with_pieces] {
        Json tokens = Json::array();
        for (const uint32_t id : about_->vocabulary.encode(text, add_special, parse_special)) {
            if (!with_pieces) {
                tokens.push_back(id);
                continue;
            }
            const std::string bytes = about_->vocabulary.piece(id).bytes;
            const bool is_text = cli::find_invalid_utf8(bytes) == std::string::npos;
            tokens.push_back({{"id", id}, {"piece", is_text ? Json(bytes) : Json(std::vector<uint8_t>(bytes.begin(), bytes.end()))}});
        }
        return Json{{"tokens", tokens}};
    });
}

void Api::detokenize(const Call& call) {
    const Json body = parse_object(call.request().body);
    const openai::Fields fields(body);
    const Json* tokens = fields.find("tokens");
    if (!tokens || !tokens->is_array()) fields.refuse("tokens", "an array of token ids");
    const auto ids = openai::parse_ids(*tokens, "tokens", about_->limits.vocab_size);
    respond_by(call, ids.size(), [this, ids] { return Json{{"content", about_->vocabulary.decode(ids)}}; });
}

void Api::apply_template(const Call& call) {
    const Json body = openai::parse_json(call.request().body);
    const auto messages = openai::parse_messages(body);
    respond_by(call, call.request().body.size(), [this, messages] { return Json{{"prompt", about_->vocabulary.decode(about_->vocabulary.apply_chat_template(messages))}}; });
}

// ---- the page
// ----------------------------------------------------------------------------------------------------------

void Api::page(const Call& call) {
    const PageFile& file = *find_page_file(call.request().path);
    http::Response response{.content_type = file.content_type,
                            .headers = {{"Content-Security-Policy", kPagePolicy},
                                        {"X-Content-Type-Options", "nosniff"},
                                        {"Referrer-Policy", "no-referrer"},
                                        {"Cache-Control", "no-cache"},
                                        {"ETag", file.etag}}};
    const std::string* known = call.request().find("If-None-Match");
    if (known && known->find(file.etag) != std::string::npos)
        response.status = 304;
    else
        response.body.assign(file.body, file.bytes);
    respond(call, std::move(response));
}

} // namespace auspex::server
