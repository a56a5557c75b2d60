// What auspex_engine* points to, and what the enumerations of its description mean inside.
#pragma once

#include "session/engine.h"

#include <auspex/auspex.h>

#include <optional>

struct auspex_engine {
    std::unique_ptr<auspex::Engine> engine;
};

// nullopt: not one of the enumeration's values.
inline std::optional<auspex::DType> cache_dtype_of(auspex_cache_type type) {
    switch (type) {
    case AUSPEX_CACHE_F16: return auspex::DType::f16;
    case AUSPEX_CACHE_F32: return auspex::DType::f32;
    case AUSPEX_CACHE_Q8_0: return auspex::DType::q8_0;
    default: return std::nullopt;
    }
}
