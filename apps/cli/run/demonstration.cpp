// Both stories come from one engine: what is compiled and loaded before the first is there for the second, too.
#include "cli/run/demonstration.h"

#include "cli/common/engine/trial.h"
#include "cli/common/output/figures.h"
#include "cli/common/output/progress_bar.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <chrono>

namespace auspex::cli {

namespace {

constexpr uint32_t kLongestDraft = 4; // what is prepared for: longer drafts hardly ever pay
constexpr uint32_t kRounds = 3;       // that are rehearsed of a length: one of two in flight may still be recorded
constexpr uint32_t kMoments = 8;      // in which each length is timed besides: other work on the machine may disturb one
constexpr std::chrono::seconds kMomentsTime(1); // after which no other begins
constexpr uint32_t kTellings = 5;               // of each story at most, for the same reason
constexpr std::chrono::seconds kTellingTime(1); // after which no story is told again

// The beginning of the report's story, silently. Absent: Ctrl-C came.
std::optional<Trial> tell(Client& client, const RunReport& report, uint32_t n_tokens, const Way& way) {
    try {
        const TrialSetting setting{.sampling = report.options.sampling,
                                   .prompt_tokens = report.prompt_tokens,
                                   .n_predict = n_tokens,
                                   .is_prepared = true};
        return complete_once(client, setting, way, report.seed);
    } catch (const Failure& failure) {
        if (failure.exit_code() != kExitInterrupted) throw;
        return std::nullopt;
    }
}

// A few rounds of this draft_len. False: Ctrl-C came.
bool rehearse(Client& client, const RunReport& report, uint32_t draft_len) {
    const Way way{draft_len == 0 ? AUSPEX_DRAFTER_NONE : AUSPEX_DRAFTER_AUTO, draft_len};
    return !interrupted() && tell(client, report, kRounds * (draft_len + 1), way).has_value();
}

// One of the two ways in which the story is told, with its speeds: they cannot be mixed up.
struct Side {
    Way way;
    std::vector<double> speeds{}; // (tellings) tokens per second; those that are known

    void keep(size_t n_tokens, std::optional<double> ms) {
        if (const std::optional<double> speed = cli::per_second(n_tokens, ms)) speeds.push_back(*speed);
    }
    std::optional<double> per_second() const { return speeds.empty() ? std::nullopt : std::optional(median(speeds)); }
};

std::optional<size_t> first_difference(const std::vector<auspex_token>& story, const std::vector<auspex_token>& plain) {
    const auto [one, other] = std::mismatch(story.begin(), story.end(), plain.begin(), plain.end(),
                                            [](const auspex_token& a, const auspex_token& b) { return a.id == b.id; });
    if (one == story.end() && other == plain.end()) return std::nullopt;
    return static_cast<size_t>(one - story.begin());
}

} // namespace

bool prepare_demonstration(Client& client, const RunReport& report) {
    ProgressBar progress("preparing");
    const uint32_t longest = std::min(kLongestDraft, client.info().max_draft_len);
    // One length after the other, so that Ctrl-C is soon seen; 0 is plain decoding. Some drivers translate a shader when
    // it first runs, so a few rounds are run of each.
    for (uint32_t draft_len = 0; draft_len <= longest; ++draft_len) {
        progress.draw(static_cast<float>(draft_len) / static_cast<float>(longest + 2));
        SequenceDesc desc(report.options.sampling, report.seed);
        desc->draft_len = draft_len;
        client.prepare(*desc);
        if (!rehearse(client, report, draft_len)) return false;
    }
    progress.draw(static_cast<float>(longest + 1) / static_cast<float>(longest + 2));
    const auto end = std::chrono::steady_clock::now() + kMomentsTime;
    for (uint32_t moment = 0; moment < kMoments && std::chrono::steady_clock::now() < end; ++moment)
        for (uint32_t draft_len = 0; draft_len <= longest; ++draft_len)
            if (!rehearse(client, report, draft_len)) return false;
    for (uint32_t draft_len = 0; draft_len <= client.info().max_draft_len; ++draft_len)
        client.take_round_times(draft_len); // they are no part of the story
    return true;
}

std::optional<Demonstration> tell_again(Client& client, const RunReport& report) {
    const std::vector<auspex_token>& story = report.completions.front().tokens;
    Demonstration demonstration;
    Side drafted{Way{AUSPEX_DRAFTER_AUTO, AUSPEX_DRAFT_LEN_AUTO}}, plain{Way{}};
    // False: Ctrl-C came.
    const auto told = [&](Side& side) {
        if (interrupted()) return false;
        const std::optional<Trial> trial = tell(client, report, static_cast<uint32_t>(story.size()), side.way);
        if (!trial) return false;
        side.keep(trial->tokens.size(), trial->stats.predicted_ms);
        if (!demonstration.first_difference) demonstration.first_difference = first_difference(story, trial->tokens);
        return true;
    };
    drafted.keep(story.size(), report.predicted_ms);
    const auto end = std::chrono::steady_clock::now() + kTellingTime;
    while (true) {
        if (!told(plain)) return std::nullopt;
        ++demonstration.tellings;
        if (demonstration.tellings == kTellings || std::chrono::steady_clock::now() >= end) break;
        if (!told(drafted)) return std::nullopt;
    }
    demonstration.drafted_per_second = drafted.per_second();
    demonstration.plain_per_second = plain.per_second();
    if (demonstration.drafted_per_second && demonstration.plain_per_second)
        demonstration.speedup = *demonstration.drafted_per_second / *demonstration.plain_per_second;
    return demonstration;
}

void check_equal(const Demonstration& demonstration) {
    if (demonstration.first_difference)
        throw Failure(kExitInternal, format("the story told without drafts differs from token %zu on, expected the same text; "
                                            "auspex selftest looks closer",
                                            *demonstration.first_difference + 1));
}

} // namespace auspex::cli
