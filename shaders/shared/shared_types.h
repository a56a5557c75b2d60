// Teaches C++ and GLSL each other's type names; defines no data. Every shared struct is flat: uint, int and float only.
#ifndef SHARED_TYPES_H
#define SHARED_TYPES_H

#ifdef __cplusplus
#include <cstdint>
namespace auspex::gpu {
using uint = std::uint32_t;
}
#define SHARED_CONST inline constexpr
#define SHARED_FUNCTION inline constexpr
#define SHARED_BEGIN namespace auspex::gpu {
#define SHARED_END }
#else
#define SHARED_CONST const
#define SHARED_FUNCTION
#define SHARED_BEGIN
#define SHARED_END
#endif

#endif
