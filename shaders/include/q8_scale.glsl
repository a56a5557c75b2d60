// f16 scales of q8_0 cache blocks, by integers: Vulkan lets packHalf2x16 round either way and flush subnormal halves.
#include "include/half_value.glsl" // decodes them

const float kScaleUnit = 1.0 / 16777216.0; // spacing of subnormal halves
const uint kNanScale = 0x7e00u;            // of a block that is not finite

// The smallest half that is not below `scale` (at least 2^-32), at most 65504.
uint encode_scale(float scale) {
    uint normal = ((floatBitsToUint(scale) + 0x1fffu) >> 13) - (112u << 10);
    return scale < 1024.0 * kScaleUnit ? uint(ceil(scale * 16777216.0)) : min(normal, 0x7bffu);
}
