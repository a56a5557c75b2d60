// Whether drafts by a copy of the target's own weights are worth its memory, before anything is measured.
#pragma once

#include <auspex/auspex_tools.h>

#include <string>

namespace auspex::cli {

struct SelfDraftVerdict {
    auspex_memory_plan plan; // with the copy
    std::string refusal;     // why it is not loaded; "": it is
    bool is_taken() const { return refusal.empty(); }
};

// A copy is taken where a pass by it reads at most 0.55 of what the target's reads, a tenth of the memory stays free, and the device is
// no CPU, on which passes cost arithmetic rather than bytes. "": it is.
inline std::string self_draft_refusal(const auspex_memory_plan& plan) {
    if (plan.device_is_cpu != 0) return "the device is a CPU";
    if (static_cast<double>(plan.draft_pass_bytes) > 0.55 * static_cast<double>(plan.target_pass_bytes)) return "it saves too little";
    if (plan.total > plan.device_free_bytes / 10 * 9) return "it leaves less than a tenth of the memory";
    return "";
}

} // namespace auspex::cli
