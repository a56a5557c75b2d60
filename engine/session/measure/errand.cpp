// A turn's buffers without a turn.
#include "session/measure/errand.h"

#include "prefill/prefill.h"
#include "round/round.h"
#include "session/slots/command_writer.h"

#include <algorithm>

namespace auspex {

Errand::~Errand() {
    if (fence_) device_->vk.DestroyFence(device_->handle, fence_, nullptr);
}

Status Errand::prepare(uint32_t n_rows, size_t n_pages) {
    AUSPEX_TRY_SET(turn_, TurnBuffers::create(memory_, {.max_commands = n_rows + static_cast<uint32_t>(n_pages), .max_list = n_rows}));
    AUSPEX_TRY_SET(rows_, memory_.create(n_rows * sizeof(gpu::Row), MemoryUse::device));
    AUSPEX_TRY_SET(counts_, memory_.create(12, MemoryUse::device));
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    AUSPEX_VK_MAKE(*device_, fence_, CreateFence(device_->handle, &info, nullptr, &fence_));
    return ok_status();
}

void Errand::tell(ModelRole of, std::span<const uint32_t> tokens, uint32_t first, std::span<const PageChange> pages) {
    CommandWriter writer(turn_.max_commands);
    writer.pages(models_.cache_role(of), slot_, pages);
    writer.history(slot_, first, tokens);
    writer.flush(turn_);
    std::vector<ReplayRow> rows;
    for (uint32_t i = 0; i < tokens.size(); ++i) rows.push_back({slot_, first + i});
    turn_.write_list(rows, static_cast<uint32_t>(turn_.list.size() / sizeof(ReplayRow)));
}

Pass Errand::record_rows(Recorder& to, ModelRole of, PassKind kind, uint32_t n_rows, uint32_t slice_layers) const {
    record_commands(to, models_, *buffers_, turn_);
    const ReplayBuffers buffers = {turn_.list.view(), buffers_->history.view(), rows_.view(), counts_.view()};
    return record_replay_pass(to, model(of), buffers, n_rows, kind, n_rows, buffers_->history_stride, slice_layers);
}

Status Errand::run(const Recording& recording, uint32_t first, uint32_t count, uint32_t at_once) {
    std::vector<VkCommandBuffer> segments;
    for (uint32_t i = first; i < first + count; ++i) segments.push_back(recording.segment(i));
    for (uint32_t i = 0; i < count; i += at_once) {
        const uint32_t n = std::min(at_once, count - i);
        AUSPEX_TRY(device_->submit(segments.data() + i, n, i + n == count ? fence_ : VK_NULL_HANDLE));
    }
    AUSPEX_TRY(device_->wait_until_done(fence_));
    return device_->check(device_->vk.ResetFences(device_->handle, 1, &fence_), "vkResetFences");
}

} // namespace auspex
