// auspex serve: the engine behind the server of apps/server. The address is taken before the models are loaded, so that one
// that is taken already is said at once, and balancers hear what it does.
#include "cli/common/engine/answering.h"
#include "cli/common/engine/llvmpipe_threads.h"
#include "cli/common/input/sampling.h"
#include "cli/common/input/text_file.h"
#include "cli/common/input/values.h"
#include "cli/common/output/standard_output.h"
#include "cli/serve/options.h"
#include "server/server.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace auspex::cli {

namespace {

class EngineBackend : public server::Backend {
  public:
    explicit EngineBackend(const ServeOptions& options) : options_(options), request_{options.models} {
        request_.max_sequences = options_.server.slots;
        request_.max_waiting = options_.server.most_alive(); // the server itself says when it is enough
        request_.max_draft_len = options_.sampling.max_draft_len();
        request_.cache_tokens = options_.cache_tokens;
        request_.max_gap_ms = options_.max_gap_ms;
        request_.often_one = true;
        keep_llvmpipe_from_waking_threads(request_); // the environment is set while this is the only thread
    }

    void open() {
        client_.emplace(request_);
        answering_.emplace(AnsweringOptions{.models = options_.models,
                                            .model = options_.alias,
                                            .template_name = options_.template_name,
                                            .date = options_.date,
                                            .sampling = options_.sampling,
                                            .max_choices = options_.server.slots,
                                            .max_alive = options_.server.most_alive()},
                           *client_);
        // The first answer does not wait for plain rounds; those with drafts are compiled beside it.
        SequenceDesc plain(options_.sampling, 0);
        plain->draft_len = 0;
        for (const float temperature : {0.0f, 1.0f}) {
            plain->temperature = temperature;
            client_->prepare(*plain);
        }
    }

    server::About about() const {
        const auspex_engine_info& info = client_->info();
        server::About about{.model = answering_->model(),
                            .model_path = options_.models.target,
                            .version = format_api_version(auspex_version()),
                            .numerics = info.numerics_id,
                            .device = info.device_name,
                            .driver = info.driver,
                            .limits = answering_->limits()};
        about.limits.temperature = options_.temperature;
        const SamplingOptions& sampling = options_.sampling;
        if (sampling.draft_len != AUSPEX_DRAFT_LEN_AUTO) about.speculation.draft_len = sampling.draft_len;
        about.speculation.drafter = drafter_name(sampling.drafter);
        about.speculation.acceptance = acceptance_name(sampling.acceptance);
        about.created = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
        const Tokenizer& tokenizer = answering_->tokenizer();
        about.vocabulary = {.encode = [&](const std::string& text, bool add_bos, bool parse_control) { return tokenizer.encode(text, add_bos, parse_control); },
                            .apply_chat_template = [this](const std::vector<openai::Message>& messages) { return answering_->encode(messages); },
                            .decode = [&](const std::vector<uint32_t>& ids) { return tokenizer.decode_with_controls(ids); },
                            .piece = [&](uint32_t id) { return openai::Piece{tokenizer.piece(id), tokenizer.is_control(id)}; }};
        return about;
    }

    void prepare(Job& job) override { answering_->prepare(job); }
    void begin(Job& job) override {
        if (!answering_->begin(job)) throw Failure(kExitInternal, "a request was let in that has no room");
    }
    void abandon(Job& job) override { answering_->abandon(job); }
    void park(const Job& job) override { answering_->park(job); }
    void resume(const Job& job) override { answering_->resume(job); }
    std::optional<auspex_sequence_state> state(const Job& job) override { return answering_->state(job); }
    bool advance(std::vector<Job*>& ended) override {
        return answering_->advance([&](Job& job) { ended.push_back(&job); });
    }
    void wait(uint32_t timeout_ms) override { answering_->wait(timeout_ms); }
    size_t n_alive() const override { return answering_->n_alive(); }
    auspex_engine_load load() override { return client_->load(); }

  private:
    const ServeOptions& options_;
    Client::Request request_;
    std::optional<Client> client_{};
    std::optional<Answering> answering_{};
};

std::vector<std::string> read_keys(const std::string& path) {
    constexpr size_t most_bytes = size_t{1} << 20;
    std::istringstream file(read_file("--api-key-file", path, most_bytes));
    std::vector<std::string> keys;
    for (std::string line; std::getline(file, line);) {
        line.erase(line.find_last_not_of(" \t\r") + 1);
        if (!line.empty() && line.front() != '#') keys.push_back(line);
    }
    if (keys.empty()) throw Failure(kExitFile, "--api-key-file " + path + ": expected a key on a line, found none");
    return keys;
}

std::string greeting(const server::Settings& settings, const server::About& about, const std::string& url) {
    const bool is_unix = !settings.http.unix_path.empty();
    const std::string curl = is_unix ? "curl --unix-socket " + settings.http.unix_path + " http://localhost" : "curl " + url;
    const std::string key = settings.keys.empty() ? "" : " -H 'Authorization: Bearer KEY'";
    const std::string text = format("%s answers as %s, on %s: %u answers at once, %u may wait\n", url.c_str(), about.model.c_str(),
                                    about.device.c_str(), settings.slots, settings.queue);
    std::vector<std::string> tries; // the best first
    if (settings.has_page && !is_unix) tries.push_back("  talk:    open " + url + "/ in a browser\n");
    tries.push_back("  ask:     " + curl + "/v1/chat/completions" + key +
                    " -H 'Content-Type: application/json' -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story about a fox named Ruby.\"}]}'\n");
    if (!is_unix) tries.push_back("  connect: OPENAI_BASE_URL=" + url + "/v1 OPENAI_API_KEY=" + (settings.keys.empty() ? "none" : "KEY") + ", for clients of OpenAI\n");
    tries.push_back("  watch:   " + curl + "/metrics" + key + "\n");
    tries.push_back("  check:   " + curl + "/health\n");
    return text + tries[0] + tries[1] + tries[2];
}

} // namespace

int serve(const ServeOptions& asked) {
#ifdef SIGPIPE
    std::signal(SIGPIPE, SIG_IGN); // whoever reads the log may go, and his pipe with him
#endif
    ServeOptions options = asked;
    if (!options.key_file.empty())
        for (std::string& key : read_keys(options.key_file))
            options.server.keys.push_back(std::move(key));
    if (options.server.is_salted_by_key && options.server.keys.empty())
        throw Failure(kExitUsage, "--cache-salt-by-key: expected keys, by --api-key or --api-key-file");
    if (options.alias.empty() && options.models.is_bundled_pair) options.alias = "bundled-pair";
    EngineBackend backend(options);
    try {
        server::Server server(backend, options.server);
        const auto open = [&] {
            backend.open();
            return backend.about();
        };
        const int exit_code = server.run(open, [&](const server::About& about) {
            print_text(greeting(options.server, about, server.url()));
            flush_output();
        });
        if (server.is_hanging()) { // nothing can be taken down in order
            if (exit_code != kExitOk) std::fputs("auspex: the engine does not come back; ending without it\n", stderr);
            std::_Exit(exit_code);
        }
        return exit_code;
    } catch (const http::BindError& error) {
        throw Failure(kExitUsage, error.what());
    }
}

} // namespace auspex::cli
