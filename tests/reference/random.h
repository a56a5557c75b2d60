// The random numbers of the engine once more, in double: Philox4x32-10 (Salmon et al. 2011) and what is made of it.
#pragma once

#include <array>
#include <cstdint>

namespace auspex::reference {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Standard exponential of the design: -log1p(-x), x = (r + 0.5) · 2^-32.
double exponential(uint32_t r);

// Test data: a stream of numbers that depends on the seed alone, on every platform.
class DataStream {
  public:
    explicit DataStream(uint32_t seed) : seed_(seed) {}
    uint32_t bits();
    uint32_t below(uint32_t n) { return static_cast<uint32_t>((uint64_t{bits()} * n) >> 32); }
    float uniform(float low, float high); // 24 bits
    float normal();                       // sum of twelve uniforms: bell-shaped, within ±6

  private:
    uint32_t seed_;
    uint32_t counter_ = 0;
    uint32_t used_ = 4;
    std::array<uint32_t, 4> block_{};
};

} // namespace auspex::reference
