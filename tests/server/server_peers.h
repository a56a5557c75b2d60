// A whole server on a thread of its own, with a backend that stands in for an engine, and what its clients read.
#pragma once

#include "http/http_peers.h"
#include "server/server.h"
#include "server/stand_in.h"

#include <future>

namespace auspex::test {

using Json = openai::Json;
using server::Settings;

inline Settings quick_settings() {
    Settings settings;
    settings.http.port = 0;
    settings.http.limits.connections_per_address = 4096;
    return settings;
}

inline server::About stand_in_about() {
    return {.model = "stand-in",
            .model_path = "/models/stand-in",
            .version = "1.2.3",
            .numerics = "exact",
            .device = "a \"device\"\\with\nmarks",
            .driver = "none",
            .limits = {.vocab_size = kVocab, .max_context = 4096, .max_draft_len = 8, .max_choices = 16, .has_draft_model = true},
            .created = 1700000000,
            .vocabulary = {.encode = [](const std::string& text, bool add_bos, bool) {
                               std::vector<uint32_t> ids(add_bos ? 1 : 0, 1u);
                               ids.insert(ids.end(), text.begin(), text.end());
                               return ids;
                           },
                           .apply_chat_template = [](const std::vector<openai::Message>& messages) { return stand_in_layout(messages); },
                           .decode = [](const std::vector<uint32_t>& ids) { return std::string(ids.begin(), ids.end()); },
                           .piece = [](uint32_t id) { return openai::Piece{std::string(1, static_cast<char>(id)), false}; }}};
}

class ServedStandIn {
  public:
    explicit ServedStandIn(Settings asked = quick_settings(), server::About about = stand_in_about())
        : settings(std::move(asked)), server(backend, settings), thread_([this, about] {
              exit_code_ = server.run([&] { return about; }, [this](const server::About&) { is_ready_.set_value(); });
          }) {
        is_ready_.get_future().wait();
    }
    ~ServedStandIn() {
        backend.hold(false);
        stop();
    }

    uint16_t port() const { return server.port(); }
    // Waits for its end; the exit code.
    int wait() {
        if (thread_.joinable()) thread_.join();
        return exit_code_;
    }
    int stop() { // at once
        if (thread_.joinable()) {
            server.drain();
            server.drain();
        }
        return wait();
    }
    bool is_idle() { return backend.n_alive_now == 0 && server.engine().n_open() == 0 && server.engine().snapshot()->n_tickets == 0; }

    StandIn backend;
    Settings settings;
    server::Server server;

  private:
    int exit_code_ = -1;
    std::promise<void> is_ready_{};
    std::thread thread_;
};

inline std::string post_json(const std::string& target, const std::string& body, const std::string& headers = "") {
    return post(target, body, "Content-Type: application/json\r\n" + headers);
}

inline Reply ask(uint16_t port, const std::string& request, bool has_body = true) {
    return Client(port).ask(request, has_body);
}

inline Json json_of(const Reply& reply) {
    return Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
}

// What the answer says is wrong: "400 param code".
inline std::string refusal_of(const Reply& reply) {
    const Json body = json_of(reply);
    if (!body.is_object() || !body.contains("error")) return std::to_string(reply.status) + " without an error: " + reply.body;
    const Json& error = body["error"];
    const auto word = [&](const char* name) { return error.value(name, Json()).is_string() ? error[name].get<std::string>() : "-"; };
    return std::to_string(reply.status) + " " + word("param") + " " + word("code");
}

inline std::string type_of(const Reply& reply) {
    return json_of(reply)["error"]["type"].get<std::string>();
}

inline std::string header_of(const Reply& reply, const std::string& name) {
    const size_t at = reply.head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 4;
    return reply.head.substr(begin, reply.head.find("\r\n", begin) - begin);
}

// A body of server-sent events.
struct Events {
    std::vector<Json> data;
    std::vector<std::string> comments;
    bool is_done = false; // [DONE] was the last

    explicit Events(const std::string& body) {
        size_t at = 0;
        while (at < body.size()) {
            const size_t end = body.find("\n\n", at);
            if (end == std::string::npos) {
                ADD_FAILURE() << "an event without an end: " << body.substr(at);
                return;
            }
            const std::string event = body.substr(at, end - at);
            at = end + 2;
            if (event.starts_with(": ")) {
                comments.push_back(event.substr(2));
            } else if (event == "data: [DONE]") {
                is_done = at == body.size();
                EXPECT_TRUE(is_done) << "something comes after [DONE]";
            } else if (event.starts_with("data: ")) {
                data.push_back(Json::parse(event.substr(6), nullptr, false));
                EXPECT_TRUE(data.back().is_object()) << event;
            } else {
                ADD_FAILURE() << "no event: " << event;
            }
        }
    }

    // Of a choice.
    std::string text(size_t index = 0) const {
        std::string text;
        for (const Json& chunk : data) {
            if (chunk.contains("content")) text += chunk["content"].get<std::string>();
            if (!chunk.contains("choices")) continue;
            for (const Json& choice : chunk["choices"]) {
                if (choice["index"] != index) continue;
                if (choice.contains("text")) text += choice["text"].get<std::string>();
                if (choice.contains("delta")) text += choice["delta"].value("content", "");
            }
        }
        return text;
    }
};

inline std::string words(uint32_t n) {
    std::string text;
    for (uint32_t k = 0; k < n; ++k)
        text += stand_in_piece(100 + k).bytes;
    return text;
}

inline const std::string kChat = R"({"messages":[{"role":"user","content":"hello"}]})";
// The members go first.
inline std::string chat(const std::string& members) {
    return "{" + members + R"(,"messages":[{"role":"user","content":"hello"}]})";
}
inline std::string completion(const std::string& members) {
    return "{" + members + R"(,"prompt":"abc"})";
}

// Reads a stream as it comes.
class StreamClient {
  public:
    StreamClient(uint16_t port, const std::string& request, int receive_buffer = 0) : client(port, receive_buffer) {
        client.send(request);
    }
    // False: it did not come.
    bool wait_for(const std::string& text, std::chrono::milliseconds patience = kPatience) {
        const auto end = Clock::now() + patience;
        while (client.got_.find(text) == std::string::npos)
            if (Clock::now() > end || !client.read_some(patience)) return false;
        return true;
    }
    Client client;
};

// What may hold where a request says nothing.
struct Usual {
    const char* name;
    server::Speculation usual;
    bool has_model, has_self;
    double temperature;
};
inline std::vector<Usual> usuals() {
    return {
        {"as it comes", {}, true, false, 0},
        {"flags", {.draft_len = 3, .drafter = "ngram", .acceptance = "coupled"}, true, false, 0.8},
        {"plain", {.draft_len = 0}, false, false, 1},
        {"its own weights", {.drafter = "self"}, false, true, 0.8},
    };
}

inline server::About about_of(const Usual& of) {
    server::About about = stand_in_about();
    about.speculation = of.usual;
    about.limits.has_draft_model = of.has_model;
    about.limits.has_self_draft = of.has_self;
    about.limits.temperature = of.temperature;
    return about;
}

} // namespace auspex::test
