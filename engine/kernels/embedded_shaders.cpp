// The hash that tells one build's shaders from another's. The words themselves are generated.
#include "kernels/embedded_shaders.h"

namespace auspex {

std::string embedded_shaders_hash() {
    uint64_t hash = 0xcbf29ce484222325u;
    const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
    for (std::string_view name : embedded_shader_names()) {
        for (char c : name) add(static_cast<unsigned char>(c));
        for (uint32_t word : embedded_shader(name)) add(word);
    }
    constexpr char hex[] = "0123456789abcdef";
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += hex[(hash >> shift) & 15];
    return text;
}

} // namespace auspex
