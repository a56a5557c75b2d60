// Conversation: one sequence that is appended to, turn by turn.
#include "cli/chat/conversation.h"

#include "cli/common/system/terminal.h"

#include <algorithm>

namespace auspex::cli {

Conversation::Conversation(Client& client, const ChatFormat& layout) : client_(client), layout_(layout) {}

Conversation::~Conversation() {
    if (!has_begun()) return;
    try {
        client_.destroy(sequence_);
    } catch (const Failure&) { // the engine frees it then
    }
}

auspex_stop_reason Conversation::say(const PromptText& turn, const SamplingOptions& sampling, uint64_t seed,
                                     StoryPrinter& printer) {
    const Place place = !has_begun()       ? Place::first
                        : is_answer_whole_ ? Place::after_whole_answer
                                           : Place::after_cut_answer;
    const std::vector<uint32_t> tokens = encode_turn(client_, layout_, turn.text, place);
    const uint32_t max_context = client_.info().max_context;
    if (stats_.context_n + tokens.size() >= max_context) {
        const std::string found = format("%s has %zu tokens, ", turn.source.c_str(), tokens.size());
        throw Failure(kExitCapacity,
                      found + (has_begun() ? format("but %u of the context's %u are taken; /reset begins a new "
                                                    "conversation",
                                                    stats_.context_n, max_context)
                                           : format("expected fewer than the context's %u; shorten it or raise -c",
                                                    max_context)));
    }

    SequenceDesc desc(sampling, seed);
    desc.set_prompt(tokens);
    if (has_begun())
        client_.append(sequence_, *desc);
    else
        sequence_ = client_.create(*desc);

    std::vector<Completion> answers(1);
    Completion& answer = answers.front();
    while (answer.stop_reason == AUSPEX_STOP_NONE) {
        client_.step();
        if (interrupted()) client_.cancel(sequence_);
        const auspex_sequence_stats stats = client_.stats(sequence_); // before reading: what ended is complete
        client_.read(sequence_, answer.tokens, answer.text);
        answer.stop_reason = stats.stop_reason;
        printer.print(answers);
        if (stats.stop_reason == AUSPEX_STOP_NONE)
            client_.wait();
        else
            add(stats);
    }
    is_answer_whole_ = answer.stop_reason == AUSPEX_STOP_EOS;
    return answer.stop_reason;
}

void Conversation::reset() {
    if (has_begun()) client_.destroy(sequence_);
    sequence_ = {};
    stats_ = {};
}

void Conversation::add(const auspex_sequence_stats& stats) {
    ++stats_.n_turns;
    stats_.context_n = stats.total_n;
    stats_.prompt_n += stats.prefilled_n;
    stats_.speculation.add(stats);
    stats_.prompt_ms += std::max(0.0, stats.prompt_ms);
    stats_.predicted_ms += std::max(0.0, stats.predicted_ms);
}

} // namespace auspex::cli
