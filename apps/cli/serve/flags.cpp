// Flags of serve.
#include "cli/common/input/shared_flags.h"
#include "cli/serve/options.h"

namespace auspex::cli {

namespace {

constexpr const char* kServeNotes =
    "Speaks the interface of OpenAI (/v1/chat/completions, /v1/completions, /v1/models)\n"
    "and llama.cpp's /completion, /tokenize, /props, /slots; /metrics is for Prometheus,\n"
    "/ a page to talk with the model and to see what drafts do. SIGTERM or Ctrl-C lets\n"
    "running answers end; a second one ends at once.\n\n"
    "Examples:\n"
    "  auspex serve\n"
    "  auspex serve -m llama-3b -md llama-1b -c 4096 --port 8000\n"
    "  auspex serve --unix /run/auspex.sock --api-key-file keys.txt\n\n";

// scheme://host[:port], as browsers send it.
std::string parse_origin(const std::string& flag, const std::string& text) {
    const size_t scheme = text.find("://");
    if (scheme == std::string::npos || scheme == 0 || scheme + 3 == text.size() || text.find('/', scheme + 3) != std::string::npos ||
        text.find_first_of("\r\n ") != std::string::npos)
        throw Failure(kExitUsage, flag + " " + text + ": expected an origin, as https://example.org");
    return text;
}

} // namespace

void declare_serve(CLI::App& app, ServeOptions& options, Shared& shared) {
    server::Settings& server = options.server;
    const auto add_string = [&](const char* names, const char* value_name, const char* help, std::string& target) {
        add_value(app, names, value_name, help, [&target](const std::string& flag, const std::string& text) {
            if (text.empty()) throw Failure(kExitUsage, flag + " \"\": expected some text");
            target = text;
        });
    };
    begin_group(app, "Address");
    add_string("--host", "NAME", "Name or address to listen at (127.0.0.1: this machine only)", server.http.host);
    add_number(app, "--port", "Port to listen at, 0 for any that is free (8080)", server.http.port, 0, 65535);
    add_string("--unix", "PATH", "Listen at this socket instead, which only its owner may use", server.http.unix_path);
    begin_group(app, "Who may ask");
    add_repeatable(app, "--api-key", "KEY", "Only requests with this key are answered; may be given again (any)",
              [&server](const std::string& flag, const std::string& text) {
                  if (text.empty()) throw Failure(kExitUsage, flag + " \"\": expected a key");
                  server.keys.push_back(text);
              });
    add_string("--api-key-file", "FILE", "Keys, one on each line", options.key_file);
    app.add_flag("--cache-salt-by-key", server.is_salted_by_key, "What one key's requests have cached is found by its own alone");
    add_value(app, "--allowed-hosts", "LIST", "Names by which clients call this server, besides localhost and addresses (none)",
              [&server](const std::string&, const std::string& text) {
                  for (const std::string& name : split(text, ','))
                      server.allowed_hosts.push_back(lower_case(name));
              });
    add_repeatable(app, "--cors-origin", "ORIGIN", "Pages of this origin may ask, too; may be given again (none)",
              [&server](const std::string& flag, const std::string& text) { server.cors_origins.push_back(parse_origin(flag, text)); });
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    add_device(app, options.models);
    add_string("--alias", "NAME", "What answers call the model (its file's name)", options.alias);
    app.add_flag("--strict-model", server.is_model_strict, "Refuse requests that name another model");
    begin_group(app, "Load");
    add_number(app, "--slots", format("Answers written side by side; each takes a context of memory (%u)", server.slots), server.slots, 1, 256);
    add_number(app, "--queue", format("Answers that may wait; more are refused (%u)", server.queue), server.queue, 0, 4096);
    add_number(app, "--queue-tokens", "Prompt tokens of answers that wait; more are refused while one waits; 0: any number (0)", server.queue_tokens, 0, UINT64_MAX);
    add_number(app, "--cache-tokens", "Tokens that the caches hold, of all answers together; 0: every slot a context (0)", options.cache_tokens, 0, UINT64_MAX);
    add_number(app, "--max-gap-ms", format("Time that reading prompts may keep texts waiting between two rounds; 0: any (%u)", options.max_gap_ms), options.max_gap_ms, 0, 60000);
    add_number(app, "--connections-per-address", format("Connections from one address; a balancer is one (%zu)", server.http.limits.connections_per_address),
               server.http.limits.connections_per_address, 1, 65536);
    add_value(app, "--overload-status", "N", "Status of what is refused then: 429, or 503 for balancers (429)",
              [&server](const std::string& flag, const std::string& text) {
                  server.overload_status = static_cast<int>(parse_whole(flag, text, 429, 503));
                  if (server.overload_status != 429 && server.overload_status != 503)
                      throw Failure(kExitUsage, flag + " " + text + ": expected 429 or 503");
              });
    add_value(app, "--drain", "SECONDS", "Time that running answers have to end after SIGTERM (30)",
              [&server](const std::string& flag, const std::string& text) { server.drain = std::chrono::seconds(parse_whole(flag, text, 0, 86400)); });
    begin_group(app, "Answers");
    add_value(app, "--default-temp", "T", "Temperature where a request names none (0; OpenAI's own is 1)",
              [&options](const std::string& flag, const std::string& text) { options.temperature = parse_number(flag, text, 0, 5); });
    add_chat_layout(app, options.template_name);
    add_text(app, "--date", "TEXT", "Date that llama3 tells the model, e.g. \"26 Jul 2024\" (that one)", options.date);
    app.add_flag_callback("--no-page", [&server] { server.has_page = false; }, "Without the page at /");
    add_speculation(app, options.sampling, shared);
    end_groups(app);
    app.footer(std::string(kServeNotes) + kExitCodes);
}

void complete(ServeOptions& options, const Shared& shared) {
    choose_models(shared, settle_drafting(options.sampling, shared.no_draft), false, false, options.models);
}

} // namespace auspex::cli
