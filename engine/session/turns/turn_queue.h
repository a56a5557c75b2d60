// Turns on their way through the GPU: at most two in flight, each a recording that is used again, with its own copy of the
// buffers that host and GPU exchange. Knows when a turn is done and how long its stages took; not what it meant.
#pragma once

#include "round_state/round_pass.h"
#include "session/speculation/policy.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

namespace auspex {

// Replays give a model tokens that are known. A prefill is the target's, of rows of prompts, or of answers that it knew before it was
// parked; a catch-up is the draft's. Rows of prompts and of answers take different kernels.
enum class TurnKind { round, prefill, answer_prefill, prompt_catch_up, answer_catch_up, copy };
inline bool is_of_target(TurnKind kind) { return kind == TurnKind::round || kind == TurnKind::prefill || kind == TurnKind::answer_prefill; }
inline bool is_of_answers(TurnKind kind) { return kind == TurnKind::answer_prefill || kind == TurnKind::answer_catch_up; }

// What distinguishes recordings.
struct TurnKey {
    TurnKind kind;
    RoundForm round = {}; // of rounds
    uint32_t rows = 0;    // of replays: row bucket
    uint32_t slices = 0;  // parts that a pass of it is cut into (turn_slices.h); 0: one segment
    auto operator<=>(const TurnKey&) const = default;
};

struct TurnEntry {
    uint64_t sequence; // id
    uint32_t epoch;    // of the sequence
    DraftChoice choice; // whose drafts it was to have
    uint32_t text_len;  // tokens before the round, but for what rounds under way add
    bool fills_draft_cache; // as its drafter's row has it
};

struct Turn {
    uint64_t number = 0;
    TurnKey key = {};
    std::vector<TurnEntry> entries; // of a round, by batch position
    std::function<void(Recording&)> copies; // of TurnKind::copy
    Recording* recording = nullptr;         // null until the first submission is tried
    std::unique_ptr<Recording> once;        // copies are recorded for one use
    uint32_t next_segment = 0;
    double recording_ms = 0; // host: until it was recorded, without what was compiled for it; 0: it was there
    double draft_ms = -1, verify_ms = -1, accept_ms = -1; // GPU, of a round; < 0: not available
    double replay_ms = -1;                                // GPU, of a replay; < 0: not available
    std::vector<Recording::RegionTime> regions = {};      // of copies none unless those are timed
    uint64_t begun_ns = 0, submitted_ns = 0, done_ns = 0; // host's clock: first submission; all submitted; seen to be complete
};

class TurnQueue {
  public:
    struct Sizes {
        uint32_t max_batch, max_replay_rows, max_commands;
        double max_submission_ms; // of predicted GPU time, as far as segments are that short
    };
    static Result<std::unique_ptr<TurnQueue>> create(Device& device, MemoryPool& memory, Uploader& uploader, KernelLibrary& kernels,
                                                     RoundModels models, const RoundBuffers& buffers, const Sizes& sizes);
    ~TurnQueue(); // waits for what is in flight

    bool can_start() const { return in_flight_.size() < 2 && !partly_submitted(); }
    bool idle() const { return in_flight_.empty(); }
    bool partly_submitted() const;
    uint64_t last_number() const { return next_number_ - 1; } // of the newest turn started
    uint64_t done_number() const { return in_flight_.empty() ? last_number() : in_flight_.front().number - 1; } // newest complete
    TurnBuffers& buffers_of(uint64_t number) { return turn_buffers_[number & 1]; }
    TurnBuffers& next_buffers() { return turn_buffers_[next_number_ & 1]; } // free to be written when can_start()

    // Compiles what such turns need.
    Status prepare(std::span<const TurnKey> keys);
    // Lets background threads compile what such turns need, the first ones first.
    Status prepare_later(std::span<const TurnKey> keys);
    // Whether such a turn would start without compiling; and whether the next turn would without being recorded.
    bool is_compiled(const TurnKey& key);
    bool is_compiling() const { return kernels_->is_building(); } // in the background
    Status adopt_compiled() { return kernels_->adopt(); }         // of what is
    bool is_recorded(const TurnKey& key) const { return recordings_[next_number_ & 1].contains(key); }
    size_t n_recorded() const { return std::max(recordings_[0].size(), recordings_[1].size()); } // forms that are kept, of either parity
    uint64_t n_recordings_made() const { return n_recordings_made_; }
    // Starts a turn; its buffers are filled. Copies are recorded between the commands and the end of the segment.
    // Cannot fail: what the turn is made of already counts as done.
    void start(const TurnKey& key, std::vector<TurnEntry> entries, std::function<void(Recording&)> copies = {});
    // Submits segments of the started turn while their predicted time fits, in as many submissions as max_submission_ms asks for; at
    // least one segment when `at_least_one`. Returns what was submitted, in predicted milliseconds. After an error it can be tried again.
    Result<double> submit(double budget_ms, bool at_least_one);
    // The oldest turn that is submitted whole and that the device has not done, and for how long it has had it; null: none.
    struct Pending {
        const TurnKey* key = nullptr;
        double ms = 0;
    };
    Pending pending() const;
    // Unless this is wanted, copies are not timed: each would need timestamps of its own.
    void time_copies(bool wanted) { times_copies_ = wanted; }
    // The oldest turn, if it is complete.
    Result<std::optional<Turn>> poll();
    // Sleeps until the oldest turn is complete; false after the timeout.
    Result<bool> wait(uint64_t timeout_ns);

  private:
    TurnQueue(Device& device, KernelLibrary& kernels, RoundModels models, const RoundBuffers& buffers, double max_submission_ms)
        : device_(&device), kernels_(&kernels), models_(models), buffers_(&buffers), max_submission_ms_(max_submission_ms) {}
    static bool is_submitted(const Turn& turn) { return turn.recording && turn.next_segment == turn.recording->n_segments(); }
    const std::vector<KernelId>& kernels_of(const TurnKey& key);
    Status find_recording(Turn& turn);
    void keep(const Turn& turn, std::unique_ptr<Recording> recording);
    Result<std::unique_ptr<Recording>> record(const Turn& turn);
    void record_turn(Recorder& to, const Turn& turn) const;
    uint32_t most_regions(uint32_t draft_len, bool sliced) const; // of a turn's recording: an upper bound
    Status submit_segments(Turn& turn, uint32_t count);
    void measure(Turn& turn);

    Device* device_;
    KernelLibrary* kernels_;
    RoundModels models_;
    const RoundBuffers* buffers_;
    double max_submission_ms_;
    TurnBuffers turn_buffers_[2];
    Buffer replay_rows_, replay_counts_; // scratch of replays: (max_replay_rows) Row, 3 uint
    VkFence fences_[2] = {VK_NULL_HANDLE, VK_NULL_HANDLE};
    struct Kept {
        std::unique_ptr<Recording> recording;
        uint64_t last_turn; // that used it
    };
    std::map<TurnKey, Kept> recordings_[2];
    uint64_t n_recordings_made_ = 0;
    std::map<TurnKey, std::vector<KernelId>> needs_; // of turns that were asked about
    std::set<TurnKey> compiled_;                     // of those
    std::map<TurnKey, std::vector<double>> segment_ms_; // smoothed; < 0: unknown
    std::deque<Turn> in_flight_;
    uint64_t next_number_ = 1, last_done_ns_ = 0;
    bool times_copies_ = false;
};

} // namespace auspex
