// One block of 256 floats to q4_k (144 bytes) or q6_k (210 bytes), for quant_encode.cpp.
#pragma once

#include <cstdint>

namespace auspex {

void encode_q4_k(const float* in, uint8_t* out);
void encode_q6_k(const float* in, uint8_t* out);

} // namespace auspex
