// x as a draft's pass takes it (INT8_X): each step of 32 numbers as 8-bit codes and a scale, x = scale · code.
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450) // OpSDot
int packed_dot(uint a, uint b, spirv_literal int format); // of four signed bytes each; format 0

// (row, step of the turn)
shared uvec4 rounded_a[uint(ROWS) * kTurnSteps];
shared uvec4 rounded_b[uint(ROWS) * kTurnSteps];
shared uvec4 rounded_about[uint(ROWS) * kTurnSteps]; // scale; sums of codes a and b; sum of the squares of x before all that

void round_step(uint at, uint first_x, uint first_norm) {
    vec4 v[kQuads];
    [[unroll]] for (uint q = 0u; q < kQuads; ++q) v[q] = x_vec(first_x + q);
    precise float squares = 0.0;
#ifdef NORM
    if (PREPARED == 0u) {
        vec4 n[kQuads];
        [[unroll]] for (uint q = 0u; q < kQuads; ++q) n[q] = norm_vec(first_norm + q);
        [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
            squares = dot_quad(v[q], v[q], squares);
            precise vec4 product = v[q] * n[q];
            v[q] = product;
        }
    }
#endif
    vec4 most = abs(v[0]);
    [[unroll]] for (uint q = 1u; q < kQuads; ++q) most = max(most, abs(v[q]));
    float largest = max(max(most.x, most.y), max(most.z, most.w));
    precise float scale = largest / 127.0;
    precise float inverse = largest > 0.0 ? 127.0 / largest : 0.0;
    uint words[kQuads];
    [[unroll]] for (uint q = 0u; q < kQuads; ++q) {
        precise vec4 scaled = v[q] * inverse;
        uvec4 codes = uvec4(ivec4(roundEven(scaled))) & 0xffu;
        words[q] = codes.x | codes.y << 8 | codes.z << 16 | codes.w << 24;
    }
    int total_a = 0, total_b = 0;
    [[unroll]] for (uint q = 0u; q < 4u; ++q) {
        total_a += packed_dot(words[q], 0x01010101u, 0);
        total_b += packed_dot(words[4u + q], 0x01010101u, 0);
    }
    rounded_a[at] = uvec4(words[0], words[1], words[2], words[3]);
    rounded_b[at] = uvec4(words[4], words[5], words[6], words[7]);
    rounded_about[at] = uvec4(floatBitsToUint(scale), uint(total_a), uint(total_b), floatBitsToUint(squares));
}

// Codes of weights as signed bytes: those of 8 bits lie around 128, the others are small enough as they are.
void signed_codes(WeightStep s, uint octet, out uint a, out uint b) {
    octet_codes(s, octet, a, b);
    if (kLowBits == 8u) {
        a ^= 0x80808080u;
        b ^= 0x80808080u;
    }
}
const int kSignedZero = kLowBits == 8u ? 0 : int(kZeroCode);
const bool kOneScale = kScaleKind == kScalesHalf || kScaleKind == kScalesPair || kScaleKind == kScalesPacked; // of a and b

// Σ weight · code of x, of a step. products: Σ (weight's code - zero) · code of x, of a and b, or of both in the first.
float step_sum(WeightStep w, ivec2 products, ivec2 totals) {
    precise float sum;
    if (kOneScale) {
        sum = w.scale.x * float(products.x);
        if (kZeroCode == 0u) sum = sum - w.min_or_bias.x * float(totals.x + totals.y);
    } else {
        precise vec2 sums = w.scale * vec2(products);
        if (kZeroCode == 0u) sums = sums - w.min_or_bias * vec2(totals);
        sum = sums.x + sums.y;
    }
    return sum;
}
