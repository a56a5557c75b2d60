// The edge of the C interface: nothing thrown behind it reaches the host, and every status gets its public value.
#pragma once

#include <auspex/auspex.h>

#include "base/log.h"
#include "base/status.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace auspex {

static_assert(static_cast<int>(Code::internal) == AUSPEX_ERROR_INTERNAL && static_cast<int>(Code::device_lost) == AUSPEX_ERROR_DEVICE_LOST &&
              static_cast<int>(Code::capacity) == AUSPEX_ERROR_CAPACITY && static_cast<int>(Code::bad_file) == AUSPEX_ERROR_BAD_FILE && static_cast<int>(Code::no_device) == AUSPEX_ERROR_NO_DEVICE);

inline auspex_status to_public(const Status& status, const Logger& log) {
    if (!status.ok()) log(LogLevel::error, status.message());
    return static_cast<auspex_status>(status.code());
}

template <typename Body> auspex_status guard(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return AUSPEX_ERROR_OUT_OF_HOST_MEMORY;
    } catch (...) {
        return AUSPEX_ERROR_INTERNAL;
    }
}

// A struct of the caller's: type and size first, so that older and newer callers both fit. set_defaults writes what is
// not zero; padding is zero too, because a later version may have members there.
inline constexpr auto no_defaults = [](auto&) {};
template <typename T, typename SetDefaults = decltype(no_defaults)>
auspex_status init_struct(T* out, size_t size, auspex_struct_type type, SetDefaults set_defaults = no_defaults) {
    if (!out || size < sizeof(auspex_header)) return AUSPEX_ERROR_INVALID_ARGUMENT;
    T value;
    std::memset(&value, 0, sizeof value);
    set_defaults(value);
    value.header.type = type;
    value.header.size = static_cast<uint32_t>(size);
    size_t n = size < sizeof value ? size : sizeof value;
    unsigned char* to = reinterpret_cast<unsigned char*>(out);
    const unsigned char* from = reinterpret_cast<const unsigned char*>(&value);
    for (size_t i = 0; i < size; ++i) to[i] = i < n ? from[i] : 0;
    return AUSPEX_OK;
}

// What the caller compiled of T, the rest as initialised. False when type or size are not T's.
template <typename T> bool read_struct(const T* in, auspex_struct_type type, T& out) {
    if (!in || in->header.type != type || in->header.size < sizeof(auspex_header)) return false;
    const size_t n = in->header.size < sizeof out ? in->header.size : sizeof out;
    std::memcpy(&out, in, n);
    return true;
}

// Writes the part of `value` that the caller's struct has, keeping its header.
template <typename T> bool write_struct(T* out, auspex_struct_type type, T value) {
    if (!out || out->header.type != type || out->header.size < sizeof(auspex_header)) return false;
    value.header = out->header;
    const size_t n = out->header.size < sizeof value ? out->header.size : sizeof value;
    std::memcpy(out, &value, n);
    return true;
}

template <size_t N> void copy_text(char (&to)[N], const std::string& from) {
    size_t n = from.size() < N - 1 ? from.size() : N - 1;
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
    to[n] = '\0';
}

// Copies as much of a list or text as fits; capacity when that is not all. *count is the number needed.
template <typename From, typename T> auspex_status give(const From& from, T* to, size_t capacity, size_t* count) {
    *count = from.size();
    std::copy_n(from.begin(), std::min(capacity, from.size()), to);
    return to && capacity < from.size() ? AUSPEX_ERROR_CAPACITY : AUSPEX_OK;
}

inline Logger make_logger(auspex_log_callback callback, void* user_data) {
    Logger log;
    if (callback)
        log.sink = [callback, user_data](LogLevel level, std::string_view message) {
            callback(user_data, static_cast<auspex_log_level>(level), std::string(message).c_str());
        };
    return log;
}

} // namespace auspex
