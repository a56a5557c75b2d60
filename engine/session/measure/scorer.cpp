// One recording of a chunk, submitted for each of them; the host reads the logits in between.
#include "session/measure/scorer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace auspex {

Status Scorer::prepare(uint32_t chunk, size_t n_pages) {
    const uint64_t logits_bytes = uint64_t(target().config().vocab_size) * 4; // of a row
    const uint64_t fitting = errand_->device().caps.max_storage_buffer_range / logits_bytes;
    chunk_ = static_cast<uint32_t>(std::clamp<uint64_t>(chunk, 1, std::min<uint64_t>(fitting, target().max_rows())));
    AUSPEX_TRY(errand_->prepare(chunk_, n_pages));
    AUSPEX_TRY_SET(logits_, errand_->memory().create(chunk_ * logits_bytes, MemoryUse::device));
    AUSPEX_TRY_SET(host_logits_, errand_->memory().create(chunk_ * logits_bytes, MemoryUse::readback));

    AUSPEX_TRY_SET(recording_, Recording::create(errand_->device(), 0));
    Recorder to = {*recording_, errand_->kernels()};
    to.cmd.begin_segment("score");
    const Pass pass = errand_->record_rows(to, ModelRole::target, PassKind::rows, chunk_, target().slice_layers(slices_(chunk_)));
    target().record_embedding(to, pass);
    target().record_layers(to, pass, 0, target().config().n_layers);
    if (pass.slice_layers > 0) to.cmd.cut();
    target().record_head(to, logits_.view(), {.vocab = target().config().vocab_size, .n_rows = chunk_, .rows = pass.rows});
    to.cmd.transfer_barrier();
    to.cmd.copy(logits_.view(0, chunk_ * logits_bytes), host_logits_.view(0, chunk_ * logits_bytes));
    to.cmd.transfer_barrier();
    to.cmd.end_segment();
    return recording_->finish();
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
    AUSPEX_TRY(prepare(chunk, pages.size()));
    const uint32_t vocab = target().config().vocab_size;
    std::vector<float> row(vocab);
    for (size_t first = 0; first < tokens.size(); first += chunk_) {
        const size_t n = std::min<size_t>(chunk_, tokens.size() - first);
        errand_->tell(ModelRole::target, tokens.subspan(first, n), static_cast<uint32_t>(first), first == 0 ? pages : std::span<const PageChange>());
        AUSPEX_TRY(errand_->run(*recording_, 0, recording_->n_segments(), 1));
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
