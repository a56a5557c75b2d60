// Heap bytes that a run holds at its worst. Under AddressSanitizer every allocation counts, else those by operator new.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define AUSPEX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AUSPEX_ASAN 1
#endif
#endif

namespace auspex::test {

#if defined(AUSPEX_ASAN)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif

// One at a time.
class MemoryMeter {
  public:
    MemoryMeter();             // starts from what is held now
    size_t peak_bytes() const; // most held since, beyond the start
  private:
    size_t start_;
};

} // namespace auspex::test
