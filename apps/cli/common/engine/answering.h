// Requests through the slots of one engine: several at once, several choices of one prompt from one reading of it.
#pragma once

#include "cli/common/engine/client.h"
#include "cli/common/engine/job.h"
#include "cli/common/input/options.h"

#include <chrono>
#include <memory>
#include <optional>

namespace auspex::cli {

struct AnsweringOptions {
    const ModelOptions& models;
    std::string model{};               // as answers call it; empty: by its file or folder
    std::string template_name{};       // layout of conversations; empty: the model's own
    std::optional<std::string> date{}; // that llama3 tells
    const SamplingOptions& sampling;   // of it what is said of drafts: where a request says nothing
    uint32_t max_choices = 1;          // of a prompt
    uint32_t max_alive = 1;            // sequences that the engine is given at once
};

class Answering {
  public:
    Answering(const AnsweringOptions& options, Client& client);

    const openai::Limits& limits() const { return limits_; }
    const std::string& model() const { return model_; }             // as answers call it
    const std::string& fingerprint() const { return fingerprint_; } // of the arithmetic and the build
    // Makes tokens of what the job's request has, and room for its answer. Throws RequestError. Any thread: a long prompt takes
    // seconds, which is too long for one that has answers to move on.
    void prepare(Job& job) const;
    std::vector<uint32_t> encode(const std::vector<openai::Message>& messages) const; // the same
    const Tokenizer& tokenizer() const { return tokenizer_; }

    // Begins prompts of the job while there are slots for all their choices. True: it has begun all. Throws
    // RequestError: the engine refuses it; nothing of it is left. Until then or its end the job stays where it is.
    bool begin(Job& job);
    bool is_idle() const { return live_.empty(); }
    size_t n_alive() const { return live_.size(); } // sequences
    // Calls given_up(job) for each that has begun all and waits for its first slot: nothing of it is left.
    template <typename GivenUp> void give_up_waiting(GivenUp given_up) {
        for (Job* job : end_waiting())
            given_up(*job);
    }
    // Takes away what of the job lives.
    void abandon(Job& job);
    void park(const Job& job); // its sequences take no part until resume
    void resume(const Job& job);
    // Where the first of its sequences is that is not over; nullopt: none is left.
    std::optional<auspex_sequence_state> state(const Job& job);
    // Moves on. Calls ended(job) for each whose last choice has ended. False: nothing will be new before wait()
    // returns.
    template <typename Ended> bool advance(Ended ended) {
        const bool has_news = step();
        for (Job* job : std::exchange(ended_, {}))
            ended(*job);
        return has_news;
    }
    void wait(uint32_t timeout_ms) { client_.wait(timeout_ms); } // for the device

  private:
    using Clock = std::chrono::steady_clock;
    struct Live {
        auspex_sequence sequence;
        Job* job;
        size_t choice;                                // of all that the job has
        auspex_sequence fork;                         // whose begin it waits for; {0}: none
        std::optional<Clock::time_point> waits_since; // of one that reads a prompt, before it is let in
        double waited_ms;
        bool is_prompt_counted = false;
    };

    std::vector<uint32_t> encode(const openai::Prompt& prompt, const std::string& param) const;
    void check_room(const std::vector<uint32_t>& tokens, const std::string& param) const;
    void begin_prompt(Job& job);
    bool is_waiting(const Live& live) { return client_.state(live.sequence).phase == AUSPEX_PHASE_WAITING; }
    bool has_parked(); // by park()
    std::vector<Job*> end_waiting();
    bool step();
    bool collect(Live& live); // true: it has ended
    std::string text_of(const openai::Prompt& prompt) const;
    openai::Pieces pieces() const;

    AnsweringOptions options_;
    Client& client_;
    Tokenizer tokenizer_;
    SequenceDesc usual_; // where a request says nothing
    openai::Limits limits_;
    std::string model_, fingerprint_;
    std::vector<Live> live_;
    std::vector<Job*> ended_;          // since advance told of them
    std::vector<auspex_token> tokens_; // of a choice, since it was read
};

} // namespace auspex::cli
