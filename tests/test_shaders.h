// SPIR-V of shader variants that only tests use (tests/*/faults.cmake and tests/*/*.comp): planted faults, probes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace auspex {

// The words of the test-only variant called `name`; empty when there is none. Lives as long as the program.
std::span<const uint32_t> test_shader(std::string_view name);

// Every test-only variant's name.
std::vector<std::string_view> test_shader_names();

} // namespace auspex
