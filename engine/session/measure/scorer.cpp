// One recording of a chunk, replayed; the host reads the logits between two replays.
#include "session/measure/scorer.h"

#include "prefill/prefill.h"
#include "session/slots/command_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace auspex {

Scorer::~Scorer() {
    if (fence_) device_->vk.DestroyFence(device_->handle, fence_, nullptr);
}

Status Scorer::prepare(uint32_t chunk, uint32_t max_commands) {
    const uint32_t vocab = models_.target.config().vocab_size;
    const uint64_t fitting = device_->caps.max_storage_buffer_range / (uint64_t(vocab) * 4);
    chunk_ = static_cast<uint32_t>(std::clamp<uint64_t>(chunk, 1, std::min<uint64_t>(fitting, models_.target.max_rows())));
    AUSPEX_TRY_SET(turn_, TurnBuffers::create(memory_, {.max_commands = max_commands, .max_list = chunk_}));
    auto make = [&](Buffer& buffer, uint64_t bytes, MemoryUse use) -> Status {
        AUSPEX_TRY_SET(buffer, memory_.create(bytes, use));
        return ok_status();
    };
    AUSPEX_TRY(make(rows_, chunk_ * sizeof(gpu::Row), MemoryUse::device));
    AUSPEX_TRY(make(counts_, 12, MemoryUse::device));
    AUSPEX_TRY(make(logits_, uint64_t(chunk_) * vocab * 4, MemoryUse::device));
    AUSPEX_TRY(make(host_logits_, uint64_t(chunk_) * vocab * 4, MemoryUse::readback));
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    AUSPEX_VK_MAKE(*device_, fence_, CreateFence(device_->handle, &info, nullptr, &fence_));

    AUSPEX_TRY_ASSIGN(recording, Recording::create(*device_, 0));
    Recorder to = {*recording, *kernels_};
    const uint32_t slice_layers = models_.target.slice_layers(slices_(chunk_));
    recording->begin_segment("score");
    record_commands(to, models_, *buffers_, turn_);
    record_replay(to, models_.target, {turn_.list.view(), buffers_->history.view(), rows_.view(), counts_.view()}, chunk_, PassKind::rows, chunk_, buffers_->history_stride,
                  slice_layers);
    if (slice_layers > 0) to.cmd.cut();
    models_.target.record_head(to, logits_.view(), {.vocab = vocab, .n_rows = chunk_, .rows = rows_.view()});
    recording->transfer_barrier();
    recording->copy(logits_.view(0, uint64_t(chunk_) * vocab * 4), host_logits_.view(0, uint64_t(chunk_) * vocab * 4));
    recording->transfer_barrier();
    recording->end_segment();
    AUSPEX_TRY(recording->finish());
    recording_ = std::move(recording);
    return ok_status();
}

Status Scorer::run_chunk(std::span<const uint32_t> tokens, uint32_t first, std::span<const PageChange> pages) {
    CommandWriter writer(turn_.max_commands);
    writer.pages(ModelRole::target, slot_, pages);
    writer.history(slot_, first, tokens);
    writer.flush(turn_);
    std::vector<ReplayRow> rows;
    for (uint32_t i = 0; i < tokens.size(); ++i) rows.push_back({slot_, first + i});
    turn_.write_list(rows, chunk_);
    const uint32_t n = recording_->n_segments();
    for (uint32_t i = 0; i < n; ++i) {
        const VkCommandBuffer segment = recording_->segment(i);
        AUSPEX_TRY(device_->submit(&segment, 1, i + 1 == n ? fence_ : VK_NULL_HANDLE));
    }
    AUSPEX_TRY(device_->wait_until_done(fence_));
    return device_->check(device_->vk.ResetFences(device_->handle, 1, &fence_), "vkResetFences");
}

namespace {

// -inf is a probability of 0; what else is no finite number leaves none for any token.
Status check_logits(std::span<const float> row, size_t position) {
    const bool has_sum = std::none_of(row.begin(), row.end(), [](float x) { return std::isnan(x) || x == INFINITY; });
    if (has_sum && std::any_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); })) return ok_status();
    return {Code::bad_file, "found logits at position " + std::to_string(position) + " that are not finite numbers, expected numbers; "
                            "the weights are damaged, or too large for the type that they have or are converted to"};
}

} // namespace

Status Scorer::run(std::span<const uint32_t> tokens, std::span<const PageChange> pages, uint32_t chunk, const EachRow& each_row) {
    AUSPEX_TRY(prepare(chunk, std::max(chunk, 1u) + static_cast<uint32_t>(pages.size())));
    const uint32_t vocab = models_.target.config().vocab_size;
    std::vector<float> row(vocab);
    for (size_t first = 0; first < tokens.size(); first += chunk_) {
        const size_t n = std::min<size_t>(chunk_, tokens.size() - first);
        AUSPEX_TRY(run_chunk(tokens.subspan(first, n), static_cast<uint32_t>(first), first == 0 ? pages : std::span<const PageChange>()));
        for (size_t i = 0; i < n; ++i) {
            std::memcpy(row.data(), host_logits_.mapped() + i * vocab * 4, vocab * 4ull);
            AUSPEX_TRY(check_logits(row, first + i));
            each_row(static_cast<uint32_t>(first + i), row);
        }
    }
    return ok_status();
}

double log_probability(std::span<const float> logits, uint32_t token) {
    const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
    double sum = 0;
    for (float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
    return static_cast<double>(logits[token]) - largest - std::log(sum);
}

} // namespace auspex
