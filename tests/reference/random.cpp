// Written from the paper; shares no source with the engine.
#include "reference/random.h"

#include <cmath>

namespace auspex::reference {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
        const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
        counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
                   static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return counter;
}

double exponential(uint32_t r) {
    return -std::log1p(-(double(r) + 0.5) * 0x1p-32);
}

uint32_t DataStream::bits() {
    if (used_ == 4) {
        block_ = philox({counter_++, 0, 0, 0}, {seed_, 0x7e57da7a});
        used_ = 0;
    }
    return block_[used_++];
}

float DataStream::uniform(float low, float high) {
    return low + (high - low) * (static_cast<float>(bits() >> 8) * 0x1p-24f);
}

float DataStream::normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i)
        sum += double(bits()) * 0x1p-32;
    return static_cast<float>(sum);
}

} // namespace auspex::reference
