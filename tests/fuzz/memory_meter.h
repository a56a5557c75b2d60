// Heap bytes that a run holds at its worst. Under AddressSanitizer every allocation counts, else those by operator new.
#pragma once

#include <cstddef>

namespace auspex::test {

// One at a time.
class MemoryMeter {
  public:
    MemoryMeter();             // starts from what is held now
    size_t peak_bytes() const; // most held since, beyond the start
  private:
    size_t start_;
};

} // namespace auspex::test
