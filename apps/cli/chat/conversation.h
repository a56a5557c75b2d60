// A conversation with a model: turns in, answers out, and what it took. Only new tokens are read by the model.
#pragma once

#include "cli/common/input/prompt.h"
#include "cli/common/output/speculation_report.h"
#include "cli/common/output/story_printer.h"

namespace auspex::cli {

// Sums over turns.
struct ConversationStats {
    uint32_t n_turns = 0;
    uint32_t context_n = 0; // tokens in the context
    uint64_t prompt_n = 0;  // tokens read
    SpeculationReport speculation;
    double prompt_ms = 0.0, predicted_ms = 0.0; // wall time
};

class Conversation {
  public:
    // layout: one that check_speaks let pass.
    Conversation(Client& client, const ChatFormat& layout);
    ~Conversation();
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;

    // Streams the answer until it ends or Ctrl-C comes (which stays to be taken). Failure(kExitCapacity): no room for
    // this turn; the conversation is as before.
    auspex_stop_reason say(const PromptText& turn, const SamplingOptions& sampling, uint64_t seed,
                           StoryPrinter& printer);
    void reset();

    bool has_begun() const { return sequence_.id != 0; }
    ChatFormat& layout() { return layout_; } // counts for the next first turn
    const ConversationStats& stats() const { return stats_; }

  private:
    void add(const auspex_sequence_stats& stats);

    Client& client_;
    ChatFormat layout_;
    auspex_sequence sequence_{}; // {0} before the first turn
    bool is_answer_whole_ = false;
    ConversationStats stats_;
};

} // namespace auspex::cli
