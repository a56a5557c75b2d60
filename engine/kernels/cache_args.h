// Fills in what every op that reads or writes a cache is told of it (CACHE_MEMBERS), and attention's arguments.
#pragma once

#include "kernels/attention_shape.h"
#include "kernels/tuning.h"
#include "shared/attention_args.h"

#include <bit>
#include <cmath>

namespace auspex {

template <typename Args> Args cache_args(const AttentionShape& shape) {
    Args args = {};
    args.n_heads = shape.n_heads;
    args.n_kv_heads = shape.n_kv_heads;
    args.pages_per_slot = shape.pages_per_slot;
    args.n_pages = shape.n_pages;
    args.page_bits = static_cast<uint32_t>(std::countr_zero(shape.page_size));
    return args;
}

inline gpu::AttentionArgs attention_args(const AttentionShape& shape, const Tuning& tuning, uint32_t max_splits, uint32_t n_rows) {
    auto args = cache_args<gpu::AttentionArgs>(shape);
    args.split = tuning.attention_split;
    args.max_splits = max_splits;
    args.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    args.n_rows = n_rows;
    return args;
}

} // namespace auspex
