// auspex run: completes a prompt, shows the text as it comes, then what it took.
#include "cli/common/engine/trace_file.h"
#include "cli/common/input/prompt.h"
#include "cli/common/system/terminal.h"
#include "cli/run/demonstration.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace auspex::cli {

namespace {

constexpr uint32_t kMaxSlots = 64; // completions side by side; as many more wait for their slots

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::optional<double> if_available(double milliseconds) {
    return milliseconds < 0.0 ? std::nullopt : std::optional(milliseconds);
}

PromptText choose_prompt(const RunOptions& options) {
    if (options.prompt.text || options.prompt.file) return read_prompt(options.prompt);
    if (input_is_handed_over()) return read_prompt(options.prompt); // empty too: nothing is no request for a story
    if (options.is_chat) throw Failure(kExitUsage, "--chat: expected what the user says, with -p, -f or on stdin");
    return {kBuiltInPrompt, "the built-in prompt"};
}

void check_room(const std::vector<uint32_t>& tokens, const std::string& source, const auspex_engine_info& engine) {
    if (tokens.size() >= engine.max_context)
        throw Failure(kExitCapacity,
                      source + format(": the prompt has %zu tokens, expected fewer than the context's %u; "
                                      "shorten it or raise -c",
                                      tokens.size(), engine.max_context));
}

std::vector<uint32_t> encode(Client& client, const RunOptions& options, const PromptText& prompt) {
    if (!options.prompt.tokens.empty()) return options.prompt.tokens;
    return options.is_chat ? encode_turn(client, options.format, prompt.text, Place::first)
                           : client.tokenize(prompt.text);
}

// Completions of one prompt through the slots of an engine. Fills the report's completions, counts and times.
class Generation {
  public:
    Generation(Client& client, RunReport& report, StoryPrinter* printer)
        : client_(client), report_(report), options_(report.options), printer_(printer) {}

    void run() {
        started_ = Clock::now();
        const uint32_t max_draft_len = options_.sampling.is_plain() ? 0 : options_.sampling.max_draft_len();
        report_.speculation.accepted_histogram.assign(max_draft_len + 1, 0);
        if (options_.n_samples > 1) read_shared_prompt();
        const Clock::time_point forked = Clock::now();
        while (fill_slots())
            advance();
        if (options_.n_samples > 1) report_.predicted_ms = ms_since(forked);
        sum_round_times();
    }

  private:
    struct Live {
        auspex_sequence sequence;
        size_t index; // of its completion
    };

    void read_shared_prompt() {
        SequenceDesc desc(options_.sampling, report_.seed);
        desc.set_prompt(report_.prompt_tokens);
        desc->max_tokens = AUSPEX_HOLD;
        shared_prompt_ = client_.create(*desc);
        while (!client_.step() && !interrupted())
            client_.wait();
        report_.prompt_ms = ms_since(started_);
    }

    // Starts completions while there are slots; false when none is live.
    bool fill_slots() {
        while (live_.size() < 2 * kMaxSlots && report_.completions.size() < options_.n_samples && !interrupted()) {
            const size_t index = report_.completions.size();
            live_.push_back({start(index), index});
            report_.completions.emplace_back().seed = report_.seed + index;
        }
        return !live_.empty();
    }

    auspex_sequence start(size_t index) {
        SequenceDesc desc(options_.sampling, report_.seed + index);
        desc->ignore_eos = options_.ignore_eos ? 1 : 0;
        if (shared_prompt_.id != 0) return client_.fork(shared_prompt_, *desc);
        desc.set_prompt(report_.prompt_tokens);
        return client_.create(*desc);
    }

    void advance() {
        const bool all_finished = client_.step();
        if (interrupted())
            for (const Live& live : live_)
                client_.cancel(live.sequence);
        const size_t n_finished = std::erase_if(live_, [&](const Live& live) { return collect(live); });
        if (printer_ != nullptr) printer_->print(report_.completions);
        if (all_finished && n_finished == 0 && !live_.empty())
            throw Failure(kExitInternal, "the engine has nothing left to do, but a completion has not ended");
        if (n_finished == 0) client_.wait();
    }

    // Takes over new tokens; true when the completion has ended and its slot is free again.
    bool collect(const Live& live) {
        Completion& completion = report_.completions[live.index];
        // Asked before reading: what ended is complete.
        const auspex_sequence_stats stats = client_.stats(live.sequence);
        client_.read(live.sequence, completion.tokens, completion.text);
        if (!completion.tokens.empty() && !report_.first_token_ms) report_.first_token_ms = ms_since(started_);
        if (stats.stop_reason == AUSPEX_STOP_NONE) return false;
        completion.stop_reason = stats.stop_reason;
        add(stats);
        client_.destroy(live.sequence);
        return true;
    }

    void add(const auspex_sequence_stats& stats) {
        report_.speculation.add(stats);
        if (options_.n_samples > 1) return;
        report_.prompt_ms = if_available(stats.prompt_ms);
        report_.predicted_ms = if_available(stats.predicted_ms);
        report_.first_token_ms = if_available(stats.first_token_ms);
    }

    // A round that several completions share counts once, so the sums come from the engine, not the sequences.
    void sum_round_times() {
        double draft_ms = 0.0, verify_ms = 0.0, accept_ms = 0.0;
        bool is_available = true;
        for (uint32_t draft_len = 0; draft_len <= report_.engine.max_draft_len; ++draft_len) {
            const auspex_round_times times = client_.take_round_times(draft_len);
            if (times.rounds == 0) continue;
            is_available = is_available && times.verify_ms >= 0.0;
            draft_ms += times.draft_ms;
            verify_ms += times.verify_ms;
            accept_ms += times.accept_ms;
        }
        if (!is_available) return;
        report_.draft_ms = draft_ms;
        report_.verify_ms = verify_ms;
        report_.accept_ms = accept_ms;
    }

    Client& client_;
    RunReport& report_;
    const RunOptions& options_;
    StoryPrinter* printer_; // null: nothing is shown
    Clock::time_point started_;
    auspex_sequence shared_prompt_{}; // {0} for a single completion
    std::vector<Live> live_;
};

} // namespace

int run(const RunOptions& options) {
    PromptText prompt{"", "--tokens"};
    if (options.prompt.tokens.empty()) {
        prompt = choose_prompt(options);
        options.is_chat ? check_spoken(prompt) : check_text(prompt);
    }

    std::optional<TraceFile> trace; // outlives the client
    if (options.trace) trace.emplace(*options.trace);
    Client::Request request{options.models};
    if (options.n_samples > 1) {
        request.max_sequences = std::min(options.n_samples, kMaxSlots) + 1;
        request.max_waiting = kMaxSlots;
    }
    request.max_draft_len = options.sampling.max_draft_len();
    Client client(request);
    if (trace) client.trace_to(*trace);

    RunReport report{.engine = client.info(), .options = options};
    report.seed = options.sampling.seed ? *options.sampling.seed : std::random_device{}();
    report.prompt_tokens = encode(client, options, prompt);
    check_ids(report.prompt_tokens, prompt.source, client.info().vocab_size);
    check_biases(options.sampling, client.info().vocab_size);
    check_room(report.prompt_tokens, prompt.source, client.info());

    {
        const InterruptGuard guard;
        const bool demonstrates = options.may_demonstrate && !input_is_handed_over();
        if (demonstrates && !prepare_demonstration(client, report)) return kExitInterrupted;
        if (options.json) {
            Generation(client, report, nullptr).run();
        } else {
            StoryPrinter printer(options.color, options.n_samples);
            printer.print_prompt(prompt.text + (options.is_chat ? "\n" : ""));
            Generation(client, report, &printer).run();
            printer.finish(!options.sampling.is_plain());
        }
        if (demonstrates) report.demonstration = tell_again(client, report);
    }
    if (trace) trace->finish();
    if (options.json)
        print_json(report);
    else
        print_summary(report);
    if (report.demonstration) check_equal(*report.demonstration);
    return interrupted() ? kExitInterrupted : kExitOk;
}

} // namespace auspex::cli
