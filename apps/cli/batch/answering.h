// Requests through the slots of one engine: several at once, several choices of one prompt from one reading of it.
#pragma once

#include "cli/batch/job.h"
#include "cli/batch/options.h"
#include "cli/common/engine/client.h"

#include <chrono>
#include <memory>
#include <optional>

namespace auspex::cli {

class Answering {
  public:
    Answering(const BatchOptions& options, Client& client);

    const openai::Limits& limits() const { return limits_; }
    // A request as a job, its prompts as tokens. Throws RequestError.
    std::unique_ptr<Job> prepare(openai::BatchLine line, uint64_t line_number);

    // Begins prompts of the job while there are slots for all their choices. True: it has begun all. Throws
    // RequestError: the engine refuses it; nothing of it is left. Until then or its end the job stays where it is.
    bool begin(Job& job);
    bool is_idle() const { return live_.empty(); }
    // Calls given_up(job) for each that has begun all and waits for its first slot: nothing of it is left.
    template <typename GivenUp> void give_up_waiting(GivenUp given_up) {
        for (Job* job : end_waiting())
            given_up(*job);
    }
    // Waits for the device, and moves on. Calls ended(job) for each whose last choice has ended.
    template <typename Ended> void advance(Ended ended) {
        for (Job* job : step())
            ended(*job);
    }

  private:
    using Clock = std::chrono::steady_clock;
    struct Live {
        auspex_sequence sequence;
        Job* job;
        size_t choice;                                // of all that the job has
        auspex_sequence fork;                         // whose begin it waits for; {0}: none
        std::optional<Clock::time_point> waits_since; // of one that reads a prompt, before it is let in
        double waited_ms;
    };

    std::vector<uint32_t> encode(const openai::Prompt& prompt, const std::string& param);
    std::vector<uint32_t> encode(const std::vector<openai::Message>& messages);
    void check_room(const std::vector<uint32_t>& tokens, const std::string& param) const;
    void begin_prompt(Job& job);
    bool is_waiting(const Live& live) { return client_.state(live.sequence).phase == AUSPEX_PHASE_WAITING; }
    void abandon(Job& job);
    std::vector<Job*> end_waiting();
    std::vector<Job*> step();
    bool collect(Live& live); // true: it has ended
    openai::Pieces pieces();

    const BatchOptions& options_;
    Client& client_;
    SequenceDesc usual_; // where a request says nothing
    openai::Limits limits_;
    std::string model_, fingerprint_;
    std::vector<Live> live_;
    std::optional<Tokenizer> tokenizer_{}; // once somebody asks for log-probabilities
};

} // namespace auspex::cli
