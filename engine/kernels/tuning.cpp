// The tables. Every workaround names what it is for.
#include "kernels/tuning.h"

#include <algorithm>

namespace auspex {

namespace {
constexpr uint32_t kVendorNvidia = 0x10de;

bool is_llvmpipe(const DeviceCaps& caps) {
    return caps.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE;
}
} // namespace

Tuning choose_tuning(const DeviceCaps& caps) {
    Tuning tuning;
    // One subgroup size for every kernel, or none: shuffles need to know it. NVIDIA and llvmpipe have one size.
    bool one_size = caps.subgroup_size_control || caps.vendor_id == kVendorNvidia || is_llvmpipe(caps);
    uint32_t lanes = caps.subgroup_size;
    if (caps.subgroup_size_control && caps.subgroup_size_min <= 32 && 32 <= caps.subgroup_size_max) lanes = 32;
    bool power_of_two = lanes >= 8 && lanes <= 64 && (lanes & (lanes - 1)) == 0;
    tuning.subgroup = caps.subgroup_shuffle && one_size && power_of_two;
    tuning.lanes = tuning.subgroup ? lanes : 32;
    tuning.pinned_subgroup_size = tuning.subgroup && caps.subgroup_size_control ? lanes : 0;

    // Metal has no buffers that workgroups of one dispatch see each other's writes in.
    tuning.attention_combines = caps.driver_id != VK_DRIVER_ID_MOLTENVK;

    if (caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
        // Compute-bound: every row count is built, and many outputs share the activations a team loads.
        tuning.matvec_rows = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};
        tuning.matvec_quant_rows = {1, 2, 4, 6, 8};
        tuning.matvec_outs = 8;
        tuning.wide = tuning.subgroup && tuning.lanes == 8 && caps.shader_int64;
        tuning.prompt_by_rows = true;
        tuning.matrix_rows = tuning.matrix_outs = 16; // each product is hundreds of instructions
        tuning.vocab_threads = 8; // a barrier costs per subgroup
    } else {
        // Memory-bound: padding rows is free, few variants; four teams keep enough loads in flight.
        tuning.matvec_rows = tuning.matvec_quant_rows = {1, 2, 4, 8, 16};
        tuning.matvec_teams = 4;
        tuning.matvec_outs = 2;
    }
    // The matrix kernel has four subgroups of a known size.
    if (caps.matrix && tuning.subgroup && caps.max_shared_memory_bytes >= 32768 && caps.max_workgroup_invocations >= 4 * tuning.lanes) {
        tuning.matmul_parts = 2;
        tuning.matrix = caps.matrix;
    }
    tuning.prompt_attention = caps.max_shared_memory_bytes >= 32768;
    tuning.matvec_teams = std::min(tuning.matvec_teams, std::max(caps.max_workgroup_invocations / tuning.lanes, 1u));
    while (tuning.vocab_threads > caps.max_workgroup_invocations) tuning.vocab_threads /= 2;
    return tuning;
}

std::string Tuning::numerics_id() const {
    std::string id = "n1-l" + std::to_string(lanes) + "-s" + std::to_string(attention_split);
    if (prompt_by_rows) return id + "-r";
    if (prompt_attention) id += "-p";
    if (matmul_parts > 0) id += "-m" + std::to_string(matmul_parts);
    return id;
}

} // namespace auspex
