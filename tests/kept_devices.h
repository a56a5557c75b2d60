// Instance, devices, layouts and pipelines that outlive the engine that asked for them: the next engine of the process that asks for the
// same on such a device is given it again. Tests make hundreds of engines of the same kernels, and most of their time was the
// driver's compiler. An engine has its device for itself as long as it lives, and sees no difference: buffers, memory, pools,
// fences and everything else are its own. Where a layer watches how long objects live (VK_INSTANCE_LAYERS), nothing is kept.
#pragma once

#include "device/device.h"

namespace auspex::test {

// For DeviceChoice; `then` goes over it, and sees every call of the engine.
VkHook keeping_devices(VkHook then = {});

} // namespace auspex::test
