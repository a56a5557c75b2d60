// The C API as C++: handles that free themselves, errors as Failure, text and tokens as containers.
// Leaves to the commands what is asked of the engine and in which order.
#pragma once

#include "cli/common/input/options.h"

#include <auspex/auspex_tools.h>

#include <string>
#include <vector>

namespace auspex::cli {

class TraceFile;
struct SelfDraftVerdict; // engine/self_draft.h

// The exit code of a library error.
ExitCode exit_code_of(auspex_status status);
// The line, with the drivers that were asked where it is about there being no device.
std::string with_drivers(auspex_status status, const std::string& line);

// Keeps the library's last error line and prints its warnings; give log and this to any call that takes a log.
class LibraryLog {
  public:
    static void callback(void* user_data, auspex_log_level level, const char* message);
    // The last error, or the status in words when nothing was logged.
    std::string error_line(auspex_status status) const;

  private:
    std::string last_error_;
};

// What auspex_model_describe says; throws Failure(kExitFile) naming the path.
auspex_model_info describe_model(const std::string& path, auspex_cache_type cache_type);

// One engine with its models loaded. Not movable: the library holds a pointer to its log.
class Client {
  public:
    struct Request {
        const ModelOptions& models;
        const auspex_synthetic_models* synthetic = nullptr;
        uint32_t max_sequences = 1;
        uint32_t max_draft_len = 0; // 0: plain rounds only
        uint32_t max_waiting = 0;   // sequences that wait for a slot
        uint64_t cache_tokens = 0;  // that the caches hold, of all sequences together; 0: every slot a whole context
        bool often_one = false;     // several slots, of which often one is at work
        bool prefix_cache = true;   // false: every prompt is read whole, so that its time says something
        uint32_t max_gap_ms = 50;   // predicted, of what is read of prompts between two rounds of texts that are coming; 0: no bound
    };

    // Shows a progress bar when stderr is a terminal.
    explicit Client(const Request& request);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    const auspex_engine_info& info() const { return info_; }
    std::vector<uint32_t> tokenize(const std::string& text);
    std::vector<uint32_t> encode_chat(const auspex_chat_turn& turn);
    // log_probs: tokens.size() - 1 of them.
    void score(const std::vector<uint32_t>& tokens, double* log_probs, const auspex_score_options& options);

    void prepare(const auspex_sequence_desc& desc);
    auspex_sequence create(const auspex_sequence_desc& desc);
    auspex_sequence fork(auspex_sequence source, const auspex_sequence_desc& desc);
    void append(auspex_sequence sequence, const auspex_sequence_desc& desc);
    void cancel(auspex_sequence sequence);
    void destroy(auspex_sequence sequence);
    void park(auspex_sequence sequence);
    void resume(auspex_sequence sequence);

    // Reads and submits; true when every sequence is finished and read.
    bool step();
    // Sleeps until there is something to read, at most so long: a tenth of a second, so that Ctrl-C is seen.
    void wait(uint32_t timeout_ms = 100);
    // Appends what became readable.
    void read(auspex_sequence sequence, std::vector<auspex_token>& tokens, std::string& text);
    void read_logprobs(auspex_sequence sequence, std::vector<auspex_token_logprobs>& logprobs);
    auspex_sequence_state state(auspex_sequence sequence);
    auspex_engine_load load();
    // Throws Failure(kExitFile) once the target has given what are no numbers: no token after that means anything.
    auspex_sequence_stats stats(auspex_sequence sequence);
    auspex_round_times take_round_times(uint32_t draft_len);
    uint64_t rounds_read() const { return rounds_read_; } // by step, of all sequences
    auspex_copy_speed measure_copy(uint32_t repetitions);
    auspex_pass_times measure_pass(const auspex_pass_desc& desc);
    // Everything from here on is told to `file`, which must outlive this.
    void trace_to(TraceFile& file);

  private:
    void check(auspex_status status) const;

    LibraryLog log_;
    std::string target_; // its path, "" of a synthetic one
    auspex_engine* engine_ = nullptr;
    auspex_engine_info info_{};
    TraceFile* trace_ = nullptr; // null: none
    uint64_t rounds_read_ = 0;
};

// What an engine for this request would take of its device; throws as Client does.
auspex_memory_plan plan_memory(const Client::Request& request);
// Whether a copy of the target would be loaded to draft, where nobody asked for one. Reads no weights.
SelfDraftVerdict judge_self_draft(const Client::Request& request);
// The request's models as Client loads them: with such a copy, where it is worth its memory. Throws Failure(kExitUsage) where a flag
// cannot do without drafts and none is made.
ModelOptions models_loaded(const Client::Request& request);

// The sizes that an engine for this request runs with, of what is known; throws as Client does.
auspex_tuning_report describe_tuning(const Client::Request& request);

// One size that was tried.
struct TuningCandidate {
    std::string knob, candidate;
    double ms = 0; // < 0: time ran out before it
    bool is_default = false, is_chosen = false;
};
// Measures the device for the weight types of such an engine's models; shows a progress bar when stderr is a terminal.
auspex_tuning_report tune_device(const Client::Request& request, std::vector<TuningCandidate>& candidates);

// A vocabulary without an engine. Not movable, as Client. Its const functions may be called on several threads.
class Tokenizer {
  public:
    explicit Tokenizer(const std::string& model); // it may lack its weights
    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    std::vector<uint32_t> encode(const std::string& text, bool add_bos, bool parse_control) const;
    std::vector<uint32_t> encode_chat(const auspex_chat_turn& turn); // as Client's
    std::vector<uint32_t> encode_messages(const std::vector<auspex_chat_message>& messages, const auspex_chat_options& options) const;
    std::string decode(const std::vector<uint32_t>& ids) const; // control tokens left out
    // What becomes these ids again where control tokens are parsed: what lies between two of them is a text of its own.
    std::string decode_with_controls(const std::vector<uint32_t>& ids) const;
    std::string piece(uint32_t id) const; // bytes; of a control token its spelling
    bool is_control(uint32_t id) const;   // stands for no text, and has a spelling
    uint32_t vocab_size() const;

  private:
    void check(auspex_status status) const;

    LibraryLog log_;
    auspex_tokenizer* tokenizer_ = nullptr;
};

} // namespace auspex::cli
