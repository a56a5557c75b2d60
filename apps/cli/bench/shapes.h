// Shapes of random models, as --shape takes them.
#pragma once

#include "cli/common/input/values.h"

namespace auspex::cli {

// d=1024,L=12,ffn=2816,heads=16,kv_heads=4,head_dim=64,vocab=32000,ctx=4096,dtype=f16,tied=0,on=device, or the name of a
// published model followed by whatever differs: llama-3.2-1b,dtype=q4_0
auspex_synthetic_shape parse_shape(const std::string& flag, const std::string& text);

} // namespace auspex::cli
