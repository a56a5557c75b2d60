// Keeps llvmpipe, Mesa's device on CPUs, from waking threads for a small model. Client asks for it before it opens a device.
#pragma once

#include "cli/common/engine/client.h"

namespace auspex::cli {

// llvmpipe wakes its threads for every dispatch and waits for them, which takes a small model longer than its sums: without
// threads it computes where it stands. It reads this when the device is opened; no other driver does.
void keep_llvmpipe_from_waking_threads(const Client::Request& request);

} // namespace auspex::cli
