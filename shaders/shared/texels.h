// Storage buffers that a ".wide" variant can also read as storage texel buffers: binding kTexel… + b sees the buffer of binding b.
#ifndef TEXELS_H
#define TEXELS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kTexelVecs = 16u;  // R32G32B32A32_UINT
SHARED_CONST uint kTexelWords = 32u; // R32_UINT

SHARED_CONST uint kTexelsConstant = 15u; // the specialisation constant that says which way to read; 1: texels

SHARED_END
#endif
