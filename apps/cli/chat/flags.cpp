// Flags of chat.
#include "cli/chat/options.h"
#include "cli/common/input/shared_flags.h"

namespace auspex::cli {

namespace {

constexpr const char* kChatNotes =
    "Each line is one turn; one that ends in \\ goes on in the next. Answers go to\n"
    "stdout, everything else to stderr. What is typed instead of a turn:\n"
    "  /help                   these words\n"
    "  /reset                  begin a new conversation\n"
    "  /stats                  what the conversation took so far\n"
    "  /set KEY VALUE          n, seed, stop or a flag without its dashes, as temp,\n"
    "                          from the next turn on; system before the first\n"
    "  /exit                   leave, as Ctrl-D\n"
    "Ctrl-C stops the answer; at the prompt, or twice within two seconds, it leaves.\n\n"
    "Examples:\n"
    "  auspex chat\n"
    "  auspex chat -m llama-3b-instruct -md llama-1b-instruct --draft-quant q4_0\n"
    "  auspex chat -m model.gguf --system \"Answer briefly.\" --temp 0.7\n"
    "  echo \"Who was Apollo?\" | auspex chat -m model.gguf\n\n";

} // namespace

void declare_chat(CLI::App& app, ChatOptions& options, Shared& shared) {
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    add_device(app, options.models);
    begin_group(app, "Conversation");
    add_chat_format(app, options.format);
    add_sampling(app, options.sampling);
    add_speculation(app, options.sampling, shared);
    begin_group(app, "Output");
    add_color(app, options.color);
    end_groups(app);
    app.footer(std::string(kChatNotes) + kExitCodes);
}

void complete(ChatOptions& options, const Shared& shared) {
    choose_models(shared, settle_drafting(options.sampling, shared.no_draft), false, false, options.models);
}

} // namespace auspex::cli
