#version 450
// With SUBGROUP, as shuffling kernels are: an invocation's place in its subgroup counts, too.
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#endif
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HAS_BARRIER = 1; // 0: the fault that llvmpipe's order hides

layout(std430, binding = 0) writeonly buffer Numbers { uvec4 numbers[]; }; // (groups, 2 · invocations)
layout(std430, binding = 1) buffer Marks { uint marks[]; };                // (groups): 0 before

shared uint said[256];

void main() {
    uint i = gl_LocalInvocationIndex, n = gl_WorkGroupSize.x;
    said[i] = 0u;
    barrier();
    said[i] = i + 1u;
    if (HAS_BARRIER != 0u) barrier();
    uint earlier = said[i / 8u]; // of the first subgroup, on llvmpipe

    uint group = gl_WorkGroupID.x;
    if (i == 0u) atomicExchange(marks[group], 1u);
    uint groups_before = group == 0u ? 1u : atomicAdd(marks[group - 1u], 0u);

    numbers[2u * gl_GlobalInvocationID.x] = uvec4(group, gl_LocalInvocationID.x, i, gl_NumWorkGroups.x);
#ifdef SUBGROUP
    uint in_subgroups = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
    uint in_subgroups = i;
#endif
    numbers[2u * gl_GlobalInvocationID.x + 1u] = uvec4(in_subgroups, earlier, groups_before, n);
}
