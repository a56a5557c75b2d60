// --shape and --draft-shape: random weights in a model's shape instead of a file.
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

// d=1024,L=12,ffn=2816,heads=16,kv_heads=4,head_dim=64,vocab=32000,ctx=4096,dtype=f16,tied=0,on=device, or the name of a
// published model followed by whatever differs: llama-3.2-1b,dtype=q4_0
void add_shapes(CLI::App& app, ShapeOptions& shapes);

// What a Client::Request needs of them. A draft of the target's shape has other weights.
auspex_synthetic_models synthetic_models(const ShapeOptions& shapes);

} // namespace auspex::cli
