// Paths and what is done there. Belongs to the I/O thread; answers come later from the engine thread, by way of Replies.
#pragma once

#include "server/engine/engine_thread.h"
#include "server/guard.h"
#include "server/metrics.h"
#include "server/replies.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace auspex::server {

class Api {
  public:
    // What the server around it gives.
    struct Around {
        std::function<void(std::function<void()>)> post; // to the I/O thread; any thread
        std::function<http::Counts()> connections;
    };
    Api(const Settings& settings, EngineThread& engine, Worker& worker, Around around);
    // The models are loaded; until now only health, the page and their like were answered.
    void open(const About& about) { about_ = about; }

    // As http::Handler has them.
    std::optional<http::Response> check(const http::Request& request);
    void handle(const std::shared_ptr<http::Exchange>& exchange);
    http::Response refuse(int status, const std::string& message);

    Replies& replies() { return replies_; }

  private:
    // A request while it is looked at.
    struct Call {
        std::shared_ptr<http::Exchange> exchange;
        std::string request_id;
        const http::Request& request() const { return exchange->request(); }
    };
    using Action = void (Api::*)(const Call&);
    struct Route {
        const char* method; // HEAD goes with GET
        const char* path;
        Action action;
        bool is_open = false; // needs no key, nor a model
    };
    static const std::vector<Route>& routes();

    // Throws openai::RequestError: 404, 405, of which allowed tells the methods that there are.
    const Route* find(const http::Request& request, std::string* allowed = nullptr) const;
    bool is_open(const http::Request& request) const;
    std::vector<http::Header> headers(const http::Request& request, const std::string& request_id) const;
    void respond(const Call& call, http::Response response) const;
    void respond(const Call& call, const openai::Json& body) const;
    // With what `answer` makes of so many bytes: on the worker's thread where they are many. It may throw openai::RequestError.
    void respond_by(const Call& call, size_t n_bytes, std::function<openai::Json()> answer);

    void complete(const Call& call);
    void list_models(const Call& call);
    void show_model(const Call& call);
    void health(const Call& call);
    void live(const Call& call);
    void metrics(const Call& call);
    void props(const Call& call);
    void slots(const Call& call);
    void tokenize(const Call& call);
    void detokenize(const Call& call);
    void apply_template(const Call& call);
    void page(const Call& call);

    openai::Json model_json() const;
    std::string trouble() const; // why nothing is answered now; empty: it is

    const Settings& settings_;
    std::optional<About> about_{}; // none: it is loading
    EngineThread& engine_;
    Worker& worker_;
    Around around_;
    Guard guard_;
    Metrics metrics_{};
    Replies replies_{metrics_};
};

} // namespace auspex::server
