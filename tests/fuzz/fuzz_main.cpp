// libFuzzer's entry for the one target that AUSPEX_FUZZ_ENTRY names. Time is libFuzzer's to watch (-timeout).
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_meter.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

[[noreturn]] void report(const char* what) {
    std::fprintf(stderr, "finding: %s\n", what);
    std::abort(); // libFuzzer writes the input down
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace auspex::test;
    const MemoryMeter meter;
    try {
        AUSPEX_FUZZ_ENTRY(std::as_bytes(std::span(data, size)));
    } catch (const FuzzFailure& failure) {
        report(failure.what.c_str());
    } catch (const std::exception& error) {
        report(error.what());
    }
    if (meter.peak_bytes() > 2 * size + fuzz_extra_bytes) report("more memory than 2 x file + 64 MiB");
    return 0;
}
