// auspex chat: reads turns and commands, shows answers as they come. Answers go to stdout, everything else to stderr.
#include "cli/chat/conversation.h"
#include "cli/chat/options.h"
#include "cli/common/output/figures.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

namespace auspex::cli {

namespace {

constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr std::chrono::seconds kTwice{2};

constexpr const char* kHelp =
    "/help                   these words\n"
    "/reset                  begin a new conversation\n"
    "/stats                  what the conversation took so far\n"
    "/set                    show the settings\n"
    "/set n N                tokens of an answer at most; -1: as the context allows\n"
    "/set seed SEED          -1: a random one\n"
    "/set stop TEXT          text that ends an answer; nothing after it: none\n"
    "/set NAME VALUE         a flag without its dashes: temp, top-k, top-p, min-p,\n"
    "                        repeat-penalty, presence-penalty, frequency-penalty,\n"
    "                        drafter, draft-len, ngram-max, acceptance or lenience\n"
    "/set system TEXT        system message, before the first turn\n"
    "/exit                   leave, as Ctrl-D\n"
    "A line that ends in \\ goes on in the next; one that begins with a space is no\n"
    "command.\n"
    "Ctrl-C stops the answer; at the prompt, or twice within two seconds, it leaves.\n";

struct Word {
    std::string word, rest; // without the spaces between and around them
};

Word first_word(const std::string& text) {
    const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    const size_t rest = std::min(text.find_first_not_of(" \t", end), text.size());
    const size_t last = text.find_last_not_of(" \t");
    return {text.substr(begin, end - begin), rest < text.size() ? text.substr(rest, last - rest + 1) : ""};
}

class Chat {
  public:
    Chat(Client& client, const ChatOptions& options)
        : client_(client), options_(options), conversation_(client, options.format), seed_(next_seed()) {}

    int converse() {
        if (is_interactive_) greet();
        while (!has_left_) {
            std::string turn;
            switch (read_turn(turn)) {
            case LineReader::End::interrupted:
                return leave(kExitInterrupted);
            case LineReader::End::end_of_input:
                return leave(kExitOk);
            case LineReader::End::line:
                if (!take(turn)) return leave(kExitInterrupted);
            }
        }
        return kExitOk;
    }

  private:
    void greet() const {
        if (options_.models.is_bundled_pair) {
            note("no model was named: the small one that comes with Auspex tells stories");
            note("try: Tell me a story about a fox named Ruby.");
        }
        note("/help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves");
    }

    // One line, or several that end in a backslash.
    LineReader::End read_turn(std::string& turn) {
        for (std::string line;;) {
            if (is_interactive_) std::fputs(turn.empty() ? "> " : "  ", stderr);
            std::fflush(stderr);
            const LineReader::End end = reader_.read(line, kMaxLineBytes + 1);
            if (end == LineReader::End::end_of_input && !turn.empty()) return LineReader::End::line;
            turn += line;
            if (end != LineReader::End::line || !line.ends_with('\\')) return end;
            turn.back() = '\n';
            if (turn.size() > kMaxLineBytes) return end; // refused later
        }
    }

    // False: Ctrl-C came twice. What is wrong with a line ends the session only where nobody can type another one.
    bool take(const std::string& turn) {
        try {
            if (turn.starts_with('/'))
                obey(turn.substr(1));
            else if (turn.find_first_not_of(" \t\n") != std::string::npos)
                return answer(turn);
        } catch (const Failure& failure) {
            const bool is_about_the_line = failure.exit_code() == kExitUsage || failure.exit_code() == kExitCapacity;
            if (!is_interactive_ || !is_about_the_line) throw;
            note(failure.what());
        }
        return true;
    }

    bool answer(const std::string& text) {
        const PromptText turn{text, "this turn"};
        if (text.size() > kMaxLineBytes)
            throw Failure(kExitUsage, turn.source + ": expected at most " + format_bytes(kMaxLineBytes));
        check_spoken(turn);
        auspex_stop_reason reason = AUSPEX_STOP_NONE;
        {
            StoryPrinter printer(options_.color, 1);
            reason = conversation_.say(turn, options_.sampling, seed_, printer);
        }
        if (reason == AUSPEX_STOP_LENGTH)
            note(format("the answer was cut at %u tokens (/set n)", options_.sampling.n_predict));
        if (reason == AUSPEX_STOP_CONTEXT)
            note(format("the context of %u tokens is full: /reset begins a new conversation",
                        client_.info().max_context));
        if (!take_interrupt()) return true;
        const auto now = std::chrono::steady_clock::now();
        const bool is_second = last_interrupt_ && now - *last_interrupt_ < kTwice;
        last_interrupt_ = now;
        if (!is_second) note("stopped");
        return !is_second;
    }

    void obey(const std::string& command) {
        const auto [name, rest] = first_word(command);
        if (name == "set") return set(rest);
        const bool is_known = name == "help" || name == "reset" || name == "stats" || name == "exit" || name == "quit";
        if (!is_known)
            throw Failure(kExitUsage, "/" + as_one_line(name) +
                                          ": no such command (see /help; a turn may begin with a "
                                          "space)");
        if (!rest.empty()) throw Failure(kExitUsage, "/" + name + ": expected nothing after it");
        if (name == "help") std::fputs(kHelp, stderr);
        if (name == "stats") show_stats();
        if (name == "reset") {
            conversation_.reset();
            seed_ = next_seed();
            note("a new conversation");
        }
        has_left_ = name == "exit" || name == "quit";
    }

    void set(const std::string& text) {
        const auto [key, value] = first_word(text);
        const std::string flag = "/set " + as_one_line(key);
        SamplingOptions& sampling = options_.sampling;
        if (key.empty()) return show_settings();
        if (key == "n") {
            sampling.n_predict = parse_n_predict(flag, value);
        } else if (key == "seed") {
            sampling.seed = parse_seed(flag, value);
            seed_ = next_seed();
        } else if (key == "stop") {
            sampling.stop_texts.clear();
            if (!value.empty()) add_stop_text(sampling, flag, value);
        } else if (key == "system") {
            if (conversation_.has_begun())
                throw Failure(kExitUsage, flag + ": the conversation has begun; /reset first");
            check_spoken({value, flag});
            conversation_.layout().system = value;
        } else {
            set_from_table(key, flag, value);
        }
    }

    void set_from_table(const std::string& key, const std::string& flag, const std::string& value) {
        SamplingOptions changed = options_.sampling;
        std::string names = "n, seed, stop, system";
        for (const SamplingSetting& setting : sampling_settings()) {
            names += std::string(", ") + setting.name;
            if (key != setting.name) continue;
            setting.set(changed, flag, value);
            check_together(changed);
            check_possible(changed, flag + " " + value);
            options_.sampling = changed;
            return;
        }
        throw Failure(kExitUsage, flag + ": expected one of " + names);
    }

    // What this engine was not made for.
    void check_possible(const SamplingOptions& changed, const std::string& flag) const {
        const auspex_engine_info& engine = client_.info();
        const auspex_drafter_info& drafter = drafter_info(changed.drafter);
        if (!is_loaded(drafter, engine) && drafter.needs_model == 0)
            throw Failure(kExitUsage, flag + ": there is no copy of the model to draft by; begin with --drafter self");
        if (!is_loaded(drafter, engine))
            throw Failure(kExitUsage, flag + ": there is no draft model, expected " +
                                          drafter_names([&](const auto& row) { return is_loaded(row, engine); }, ", ", " or "));
        if (changed.draft_len != AUSPEX_DRAFT_LEN_AUTO && changed.draft_len > engine.max_draft_len)
            throw Failure(kExitUsage, flag + format(": expected auto or a whole number from 0 to %u; --draft-len makes "
                                                    "room for more",
                                                    engine.max_draft_len));
    }

    // The usual ones, and what differs from its default.
    void show_settings() const {
        const SamplingOptions& sampling = options_.sampling;
        std::string text = format("seed %llu, n %s", static_cast<unsigned long long>(seed_),
                                  sampling.n_predict == 0 ? "-1" : format("%u", sampling.n_predict).c_str());
        for (const SamplingSetting& setting : sampling_settings()) {
            const std::string value = setting.show(sampling), name = setting.name;
            const bool is_usual = name == "temp" || name == "drafter" || name == "draft-len";
            if (is_usual || value != setting.show({})) text += ", " + name + " " + value;
        }
        for (const std::string& stop : sampling.stop_texts)
            text += ", stop " + as_one_line(stop);
        if (!sampling.biases.empty()) text += format(", %zu biased tokens", sampling.biases.size());
        std::fprintf(stderr, "%s\n", text.c_str());
    }

    void show_stats() const {
        const ConversationStats& stats = conversation_.stats();
        const auto rate = [](uint64_t count, double milliseconds) {
            const std::optional<double> value = per_second(count, milliseconds);
            return value ? format("%.1f tok/s", *value) : std::string("n/a");
        };
        std::fprintf(stderr, "%-12s %u turn%s, %u of %u tokens\n", "context", stats.n_turns,
                     stats.n_turns == 1 ? "" : "s", stats.context_n, client_.info().max_context);
        std::fprintf(stderr, "%-12s %llu tokens read, %s\n", "turns", static_cast<unsigned long long>(stats.prompt_n),
                     rate(stats.prompt_n, stats.prompt_ms).c_str());
        std::fprintf(stderr, "%-12s %llu tokens, %s\n", "answers",
                     static_cast<unsigned long long>(stats.speculation.predicted_n),
                     rate(stats.speculation.predicted_n, stats.predicted_ms).c_str());
        if (stats.speculation.rounds > 0) print_speculation(stats.speculation, options_.sampling);
        show_settings();
    }

    uint64_t next_seed() const { return options_.sampling.seed ? *options_.sampling.seed : std::random_device{}(); }

    int leave(int exit_code) const {
        if (is_interactive_) std::fputc('\n', stderr);
        return exit_code;
    }

    static void note(const std::string& text) { std::fprintf(stderr, "[%s]\n", as_one_line(text).c_str()); }

    Client& client_;
    ChatOptions options_;
    Conversation conversation_;
    uint64_t seed_;
    LineReader reader_;
    bool is_interactive_ = is_terminal(Stream::input) && is_terminal(Stream::error);
    bool has_left_ = false;
    std::optional<std::chrono::steady_clock::time_point> last_interrupt_;
};

} // namespace

int chat(const ChatOptions& options) {
    check_speaks(options.models.target, options.format); // loading takes long
    Client::Request request{options.models};
    request.max_draft_len = std::max(kUsualMaxDraftLen, options.sampling.max_draft_len());
    Client client(request);
    check_biases(options.sampling, client.info().vocab_size);
    const InterruptGuard guard;
    return Chat(client, options).converse();
}

} // namespace auspex::cli
