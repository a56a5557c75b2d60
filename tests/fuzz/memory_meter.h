// Heap bytes that a run holds at its worst. Under AddressSanitizer and ThreadSanitizer every allocation counts, else those by operator new.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define AUSPEX_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define AUSPEX_SANITIZED 1
#endif
#endif

namespace auspex::test {

#if defined(AUSPEX_SANITIZED)
inline constexpr bool under_sanitizer = true;
#else
inline constexpr bool under_sanitizer = false;
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
