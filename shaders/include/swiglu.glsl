// silu(gate) · up: the one formula of SwiGLU, fused or not. Shazeer 2020, equation 6.
float swiglu(float gate, float up) {
    precise float v = gate / (1.0 + exp(-gate)) * up;
    return v;
}
