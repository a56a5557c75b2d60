// Before anything is timed on a GPU: one that had nothing to do runs at a part of its clock, an H200 at a sixth, for up to a second.
#pragma once

#include "device/device.h"

#include <functional>

namespace auspex {

// Runs `work`, which waits for the device, until 150 ms hold no more of it than the 150 ms before, for 3 s at most. On CPUs nothing.
Status wake(const Device& device, const std::function<Status()>& work);

} // namespace auspex
