// Value of an f16. By integers, because a device may flush f16's subnormal numbers, and scales often are; those are the difference of
// two normal numbers. Nothing here takes long enough for a compiler to branch, so that loads that follow need not wait for this one.
float half_value(uint h) {
    uint magnitude = h & 0x7fffu;
    uint bits = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
    precise float subnormal = uintBitsToFloat(bits + 0x00800000u) - 1.0 / 16384.0;
    bits = magnitude < 0x400u ? floatBitsToUint(subnormal) : bits;
    return uintBitsToFloat(bits | (h & 0x8000u) << 16); // higher bits than 16 of h do not matter
}
