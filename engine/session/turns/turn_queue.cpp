// Records at first use, submits that again afterwards. A pending recording is never resubmitted: each exists twice, by parity.
#include "session/turns/turn_queue.h"

#include "prefill/prefill.h"
#include "round/round.h"
#include "session/turns/turn_slices.h"

#include <algorithm>

namespace auspex {

namespace {
constexpr size_t kMostRecordings = 64; // of each parity: forms come and go with the sequences
}

Result<std::unique_ptr<TurnQueue>> TurnQueue::create(Device& device, MemoryPool& memory, Uploader& uploader, KernelLibrary& kernels,
                                                     RoundModels models, const RoundBuffers& buffers, const Sizes& sizes) {
    std::unique_ptr<TurnQueue> queue(new TurnQueue(device, kernels, models, buffers, sizes.max_submission_ms));
    for (uint32_t parity = 0; parity < 2; ++parity) {
        const uint64_t times_bytes = kernels.tuning().copies_times ? Recording::times_bytes(queue->most_regions(gpu::kMaxDraftLen, true)) : 0;
        AUSPEX_TRY_SET(queue->turn_buffers_[parity],
                       TurnBuffers::create(memory, {.max_commands = sizes.max_commands, .max_list = sizes.max_replay_rows, .max_batch = sizes.max_batch,
                                                    .max_nodes = gpu::nodes_of(buffers.max_draft_len), .times_bytes = times_bytes}));
        VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
        AUSPEX_VK_MAKE(device, queue->fences_[parity], CreateFence(device.handle, &info, nullptr, &queue->fences_[parity]));
    }
    AUSPEX_TRY_SET(queue->replay_rows_, create_zeroed(memory, uploader, sizes.max_replay_rows * sizeof(gpu::Row)));
    AUSPEX_TRY_SET(queue->replay_counts_, create_zeroed(memory, uploader, 12));
    return queue;
}

TurnQueue::~TurnQueue() {
    if (partly_submitted()) { // without a fence yet: an empty submission carries it
        bool carried = false;
        for (int i = 0; i < 16 && in_flight_.back().next_segment > 0 && !carried; ++i)
            carried = device_->submit(nullptr, 0, fences_[in_flight_.back().number & 1]).ok();
        if (!carried) in_flight_.pop_back();
    }
    for (const Turn& turn : in_flight_)
        if (!device_->wait_until_done(fences_[turn.number & 1]).ok()) break;
    in_flight_.clear();
    for (VkFence fence : fences_)
        if (fence) device_->vk.DestroyFence(device_->handle, fence, nullptr);
}

bool TurnQueue::partly_submitted() const {
    return !in_flight_.empty() && !is_submitted(in_flight_.back());
}

void TurnQueue::record_turn(Recorder& to, const Turn& started) const {
    const TurnKey& key = started.key;
    const TurnBuffers& turn = turn_buffers_[started.number & 1];
    if (key.kind == TurnKind::round) return record_round(to, {models_, *buffers_, turn, key.round, key.slices});
    to.cmd.begin_segment(key.kind == TurnKind::copy ? "fork" : "prefill");
    record_commands(to, models_, *buffers_, turn);
    if (key.kind == TurnKind::copy) {
        to.cmd.begin_region(Region::fork);
        to.cmd.transfer_barrier();
        started.copies(to.cmd);
        to.cmd.transfer_barrier();
        to.cmd.end_region();
    } else {
        const LlamaModel& model = is_of_target(key.kind) ? models_.target : *models_.draft;
        const uint32_t rows_per_slot = key.kind == TurnKind::answer_catch_up ? 1 : key.rows; // a row or two of each slot; else there are many of few
        to.cmd.begin_region(Region::replay);
        record_replay(to, model, {turn.list.view(), buffers_->history.view(), replay_rows_.view(), replay_counts_.view()}, key.rows,
                      is_of_answers(key.kind) ? PassKind::rows : PassKind::prompt, rows_per_slot, buffers_->history_stride,
                      model.slice_layers(key.slices));
        to.cmd.end_region();
    }
    to.cmd.end_segment();
}

uint32_t TurnQueue::most_regions(uint32_t draft_len, bool sliced) const {
    const uint32_t per_draft = sliced && models_.draft ? models_.draft->config().n_layers + 1 : 1;
    return (sliced ? models_.target.config().n_layers : 1) + draft_len * per_draft + 4;
}

Result<std::unique_ptr<Recording>> TurnQueue::record(const Turn& started) {
    const TurnKey& key = started.key;
    const uint32_t regions = key.kind != TurnKind::copy ? most_regions(key.round.draft_len, key.slices > 0) : times_copies_ ? 1 : 0;
    const Buffer& times = turn_buffers_[started.number & 1].times;
    AUSPEX_TRY_ASSIGN(made, Recording::create(*device_, regions, times ? &times : nullptr));
    Recorder to = {*made, *kernels_};
    record_turn(to, started);
    AUSPEX_TRY(made->finish());
    return made;
}

Status TurnQueue::find_recording(Turn& turn) {
    auto& recordings = recordings_[turn.number & 1];
    auto found = recordings.find(turn.key);
    if (found != recordings.end()) {
        turn.recording = found->second.recording.get();
        found->second.last_turn = turn.number;
        return ok_status();
    }
    if (!is_compiled(turn.key)) AUSPEX_TRY(kernels_->build(kernels_of(turn.key)));
    const uint64_t begun_ns = now_ns();
    AUSPEX_TRY_ASSIGN(made, record(turn));
    turn.recording_ms = static_cast<double>(now_ns() - begun_ns) * 1e-6;
    turn.recording = made.get();
    n_recordings_made_ += 1;
    if (turn.key.kind == TurnKind::copy) turn.once = std::move(made);
    else keep(turn, std::move(made));
    return ok_status();
}

// The other turn in flight has recordings of its own, so none of these is pending.
void TurnQueue::keep(const Turn& turn, std::unique_ptr<Recording> recording) {
    auto& recordings = recordings_[turn.number & 1];
    if (recordings.size() == kMostRecordings)
        recordings.erase(std::min_element(recordings.begin(), recordings.end(), [](const auto& a, const auto& b) { return a.second.last_turn < b.second.last_turn; }));
    recordings.emplace(turn.key, Kept{std::move(recording), turn.number});
}

const std::vector<KernelId>& TurnQueue::kernels_of(const TurnKey& key) {
    const auto [found, is_new] = needs_.try_emplace(key);
    if (!is_new) return found->second;
    Turn turn;
    turn.key = key;
    turn.copies = [](Recording&) {};
    name_kernels(*kernels_, [&](Recorder& to) { record_turn(to, turn); }, found->second);
    return found->second;
}

Status TurnQueue::prepare(std::span<const TurnKey> keys) {
    std::vector<KernelId> names;
    for (const TurnKey& key : keys) {
        if (is_compiled(key)) continue;
        const std::vector<KernelId>& needed = kernels_of(key);
        names.insert(names.end(), needed.begin(), needed.end());
    }
    return kernels_->build(names, true);
}

Status TurnQueue::prepare_later(std::span<const TurnKey> keys) {
    for (const TurnKey& key : keys)
        if (!is_compiled(key)) AUSPEX_TRY(kernels_->build_later(kernels_of(key)));
    return ok_status();
}

bool TurnQueue::is_compiled(const TurnKey& key) {
    if (compiled_.contains(key)) return true;
    const std::vector<KernelId>& needed = kernels_of(key);
    if (!std::all_of(needed.begin(), needed.end(), [&](const KernelId& id) { return kernels_->has(id); })) return false;
    needs_.erase(key);
    compiled_.insert(key);
    return true;
}

void TurnQueue::start(const TurnKey& key, std::vector<TurnEntry> entries, std::function<void(Recording&)> copies) {
    Turn turn;
    turn.number = next_number_++;
    turn.key = key;
    turn.entries = std::move(entries);
    turn.copies = std::move(copies);
    in_flight_.push_back(std::move(turn));
}

Status TurnQueue::submit_segments(Turn& turn, uint32_t count) {
    std::vector<VkCommandBuffer> buffers;
    for (uint32_t i = 0; i < count; ++i) buffers.push_back(turn.recording->segment(turn.next_segment + i));
    const bool last = turn.next_segment + count == turn.recording->n_segments();
    if (turn.next_segment == 0) turn.begun_ns = now_ns();
    AUSPEX_TRY(device_->submit(buffers.data(), count, last ? fences_[turn.number & 1] : VK_NULL_HANDLE));
    turn.next_segment += count;
    if (last) turn.submitted_ns = now_ns();
    return ok_status();
}

Result<double> TurnQueue::submit(double budget_ms, bool at_least_one) {
    if (!partly_submitted()) return 0.0;
    Turn& turn = in_flight_.back();
    if (!turn.recording) AUSPEX_TRY(find_recording(turn));
    std::vector<double> predicted_ms(turn.recording->n_segments(), -1);
    if (const auto known = segment_ms_.find(turn.key); known != segment_ms_.end()) predicted_ms = known->second;
    double left = budget_ms, total = 0;
    for (bool forced = at_least_one; !is_submitted(turn); forced = false) {
        const Submission next = next_submission(std::span(predicted_ms).subspan(turn.next_segment), max_submission_ms_, left, forced);
        if (next.n_segments == 0) break;
        AUSPEX_TRY(submit_segments(turn, next.n_segments));
        total += next.ms;
        left = next.is_known ? left - next.ms : left == kNoBudget ? left : 0;
    }
    return total;
}

namespace {
double& stage_ms(Turn& turn, Region region) {
    switch (region) {
    case Region::draft: return turn.draft_ms;
    case Region::verify: return turn.verify_ms;
    case Region::accept: return turn.accept_ms;
    default: return turn.replay_ms;
    }
}
} // namespace

void TurnQueue::measure(Turn& turn) {
    std::vector<double>& smoothed = segment_ms_[turn.key];
    smoothed.resize(turn.recording->n_segments(), -1);
    std::vector<double> now(smoothed.size(), 0);
    bool available = false;
    for (const Recording::RegionTime& time : turn.regions) {
        if (time.ms < 0) continue;
        available = true;
        now[time.segment] += time.ms;
        double& sum = stage_ms(turn, time.region);
        sum = std::max(sum, 0.0) + time.ms;
    }
    if (available && turn.draft_ms < 0) turn.draft_ms = 0;
    for (size_t i = 0; i < now.size() && available; ++i) smoothed[i] = smoothed[i] < 0 ? now[i] : 0.75 * smoothed[i] + 0.25 * now[i];
}

Result<std::optional<Turn>> TurnQueue::poll() {
    if (device_->lost()) return device_->lost_status();
    if (in_flight_.empty() || !is_submitted(in_flight_.front())) return std::optional<Turn>();
    VkFence fence = fences_[in_flight_.front().number & 1];
    VkResult result = device_->vk.GetFenceStatus(device_->handle, fence);
    if (result == VK_NOT_READY) return std::optional<Turn>();
    AUSPEX_TRY(device_->check(result, "vkGetFenceStatus"));
    AUSPEX_VK(*device_, ResetFences(device_->handle, 1, &fence));
    Turn turn = std::move(in_flight_.front());
    in_flight_.pop_front();
    turn.done_ns = last_done_ns_ = now_ns();
    turn.regions = turn.recording->region_times();
    if (turn.key.kind != TurnKind::copy) measure(turn);
    return std::optional<Turn>(std::move(turn));
}

TurnQueue::Pending TurnQueue::pending() const {
    for (const Turn& turn : in_flight_) {
        if (!is_submitted(turn) || device_->lost()) break;
        if (device_->vk.GetFenceStatus(device_->handle, fences_[turn.number & 1]) != VK_NOT_READY) continue; // done, or poll() says what is wrong
        return {&turn.key, static_cast<double>(now_ns() - std::max(turn.submitted_ns, last_done_ns_)) * 1e-6};
    }
    return {};
}

Result<bool> TurnQueue::wait(uint64_t timeout_ns) {
    if (device_->lost()) return device_->lost_status();
    if (in_flight_.empty() || !is_submitted(in_flight_.front())) return true;
    VkResult result = device_->vk.WaitForFences(device_->handle, 1, &fences_[in_flight_.front().number & 1], VK_TRUE, timeout_ns);
    if (result == VK_TIMEOUT) return false;
    AUSPEX_TRY(device_->check(result, "vkWaitForFences"));
    return true;
}

} // namespace auspex
