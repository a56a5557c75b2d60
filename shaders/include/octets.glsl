// What a lane meets on its way through a row: steps of kOctets octets, each of two quads of x, "a" and "b", in units of vec4. Define
// kOctets before including: 1 for numbers, 4 for blocks (shared/weight_format.h).
uint x_of_a(uint step, uint octet) { return 2u * kOctets * step + octet; }
uint x_of_b(uint step, uint octet) { return 2u * kOctets * step + kOctets + octet; }

float dot_quad(vec4 w, vec4 v, float sum) {
    precise float a = sum;
    a = fma(w.x, v.x, a);
    a = fma(w.y, v.y, a);
    a = fma(w.z, v.z, a);
    a = fma(w.w, v.w, a);
    return a;
}
float add_squares(vec4 a, vec4 b, float sum) { return dot_quad(b, b, dot_quad(a, a, sum)); }
