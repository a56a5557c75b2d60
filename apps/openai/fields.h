// The fields of one JSON object, read with their types and ranges. null is as good as absent; what nobody asks for is
// ignored. Whatever is wrong throws a RequestError that names the field.
#pragma once

#include "openai/error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace auspex::openai {

// "found 7", "found an array": what a message says of a value.
std::string found(const Json& value);

class Fields {
  public:
    // prefix: what goes before the names in errors: "messages[2].".
    explicit Fields(const Json& object, std::string prefix = {}) : object_(object), prefix_(std::move(prefix)) {}

    const Json* find(const char* name) const; // nullptr: absent or null
    std::string param(const char* name) const { return prefix_ + name; }
    [[noreturn]] void refuse(const char* name, const std::string& expected) const; // with what was found

    std::optional<bool> boolean(const char* name) const;
    std::optional<int64_t> whole(const char* name, int64_t lowest, int64_t highest) const;
    std::optional<double> number(const char* name, double lowest, double highest) const;
    std::optional<std::string> text(const char* name, size_t most_bytes) const;

  private:
    const Json& object_;
    std::string prefix_;
};

} // namespace auspex::openai
