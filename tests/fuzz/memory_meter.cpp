// Counts live bytes: by a sanitizer's hooks where there is one, which has operators new and delete of its own; else by
// replacing both for the whole program.
#include "fuzz/memory_meter.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#if defined(AUSPEX_SANITIZED)
// Of sanitizer/allocator_interface.h, which GCC does not install.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, size_t),
                                                         void (*freed)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* p);
#endif

namespace auspex::test {
namespace {

std::atomic<size_t> live = 0, peak = 0;

void count_new(size_t bytes) {
    const size_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (now > peak.load(std::memory_order_relaxed)) peak.store(now, std::memory_order_relaxed);
}
void count_delete(size_t bytes) {
    // What was allocated before counting began may be freed after it.
    const size_t held = live.load(std::memory_order_relaxed);
    live.store(held - std::min(held, bytes), std::memory_order_relaxed);
}

} // namespace

MemoryMeter::MemoryMeter() {
#if defined(AUSPEX_SANITIZED)
    static const int installed =
        __sanitizer_install_malloc_and_free_hooks([](const volatile void*, size_t bytes) { count_new(bytes); },
                                                  [](const volatile void* p) {
                                                      if (p) count_delete(__sanitizer_get_allocated_size(p));
                                                  });
    static_cast<void>(installed);
#endif
    start_ = live.load();
    peak.store(start_);
}

size_t MemoryMeter::peak_bytes() const {
    return peak.load() - start_;
}

} // namespace auspex::test

#if !defined(AUSPEX_SANITIZED)
// A header in front of each block holds its size, aligned as any type needs.
static constexpr size_t header_bytes = alignof(std::max_align_t);

void* operator new(size_t bytes) {
    auto* block = static_cast<char*>(std::malloc(bytes + header_bytes));
    if (!block) throw std::bad_alloc();
    *reinterpret_cast<size_t*>(block) = bytes;
    auspex::test::count_new(bytes);
    return block + header_bytes;
}
void operator delete(void* p) noexcept {
    if (!p) return;
    char* block = static_cast<char*>(p) - header_bytes;
    auspex::test::count_delete(*reinterpret_cast<size_t*>(block));
    std::free(block);
}
void operator delete(void* p, size_t) noexcept {
    operator delete(p);
}
#endif
