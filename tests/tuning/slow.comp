// Computes nothing, for a while that no compiler leaves out. It binds what any kernel binds first.
#version 450

layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Out { uint result[]; }; // (1)
shared uint counted;

void main() {
    counted = 0u;
    for (uint i = 0; i < 1000u; ++i) atomicAdd(counted, 1u);
    if (counted != 1000u) result[0] = counted; // never
}
