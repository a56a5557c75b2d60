// auspex serve: what it is asked, with every value checked; its flags (flags.cpp) and the command (serve.cpp). The server
// itself is in apps/server.
#pragma once

#include "cli/common/input/options.h"
#include "server/settings.h"

namespace auspex::cli {

struct ServeOptions {
    ModelOptions models;
    server::Settings server;
    std::string key_file;
    std::string alias;         // empty: the name of the model's file or folder
    std::string template_name; // layout of conversations; empty: the model's own
    std::optional<std::string> date;
    double temperature = 0; // where a request says nothing
    uint64_t cache_tokens = 0; // that the caches hold, of all sequences together; 0: every slot a whole context
    uint32_t max_gap_ms = 50; // of what is read of prompts between two rounds of texts that are coming; 0: no bound
    SamplingOptions sampling; // of it what is said of drafts: where a request says nothing
};

void declare_serve(CLI::App& app, ServeOptions& options, Shared& shared);
void complete(ServeOptions& options, const Shared& shared); // checks what the flags say together
int serve(const ServeOptions& options);                     // the exit code; throws Failure

} // namespace auspex::cli
