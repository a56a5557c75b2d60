// What Vulkan leaves in no order, in another order than llvmpipe's. In modules that go through this hook the last workgroup of a dispatch
// has the first's number. So it is with the subgroups of a workgroup; where a module knows none, neighbours are of different subgroups,
// too, if these have at most eight invocations. llvmpipe runs workgroups one after the other, subgroups likewise from barrier to barrier,
// and those of a subgroup in step, so a missing barrier, or a workgroup that reads what another of the same dispatch writes, can go
// unseen for ever. Under both orders it is seen where one of them reads too soon.
#pragma once

#include "device/device.h"

#include <span>
#include <vector>

namespace auspex::test {

// spirv: a valid module of SPIR-V 1.3 with one entry point, whose workgroups extend along x only. Throws std::runtime_error otherwise.
std::vector<uint32_t> reordered(std::span<const uint32_t> spirv);

// For DeviceChoice: the driver, and what `then` puts before it, gets every module reordered.
VkHook reordering(VkHook then = {});

// AUSPEX_TEST_ORDER=other: tests of kernels and engines run so. Another value ends the program.
bool process_is_reordered();

} // namespace auspex::test
