// top_k, top_p and min_p: which logits of a row can be drawn, as one Cut per row. Penalties and biases come before
// (edit_logits), the temperature after (vocab).
#pragma once

#include "kernels/vocab.h"
#include "shared/truncate_args.h"

#include <compare>

namespace auspex {

namespace ops {
struct TruncatePrepare {
    static constexpr std::string_view kShader = "truncate_prepare";
    using Args = gpu::TruncateArgs;
    struct Bindings {
        BufferView logits, state, rows, scratch;
    };
};

struct TruncateLevel {
    static constexpr std::string_view kShader = "truncate_level";
    using Args = gpu::TruncateArgs;
    using Bindings = TruncatePrepare::Bindings;
};

struct TruncateCut {
    static constexpr std::string_view kShader = "truncate_cut";
    using Args = gpu::TruncateArgs;
    struct Bindings {
        BufferView logits, state, rows, scratch, cuts;
    };
};
} // namespace ops

// What any slot of a recording asks for; a slot may ask for less.
struct Truncation {
    bool top_k = false, top_p = false, min_p = false;

    bool any() const { return top_k || top_p || min_p; }
    auto operator<=>(const Truncation&) const = default;
};

struct TruncateBuffers {
    BufferView logits;      // rows of (vocab) f32
    BufferView state;       // (slots) SlotState: top_k, top_p, min_p, temperature
    BufferView scratch;     // (n_rows, truncate_words(vocab)) uint, contents indifferent
    BufferView cuts;        // (n_rows) Cut; those of rows that take no part stay unset
};

uint64_t truncate_words(uint32_t vocab);

void record_truncate(Recorder& to, const TruncateBuffers& buffers, const VocabShape& shape, Truncation what);

} // namespace auspex
