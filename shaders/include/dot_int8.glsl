// What dot_rows.glsl does with a turn's weights where x is rounded to 8 bits (INT8_X): the workgroup rounds the steps of x that its
// teams need, an invocation each, while weights are on their way; then four products are one instruction. Steps after the last add 0.
        barrier(); // nobody reads the x of the turn before any more
        for (uint i = gl_LocalInvocationIndex; i < uint(ROWS) * kTurnSteps; i += LANES * TEAMS) {
            uint step = turn + i % kTurnSteps;
            if (step < args.k_steps) round_step(i, x_begin(row0 + i / kTurnSteps) + step * kQuads, step * kQuads);
            else rounded_about[i] = uvec4(0u);
        }
        barrier();
        [[unroll]] for (int ahead = 0; ahead < AHEAD; ++ahead) {
            WeightStep w[OUTS];
            uint codes_a[OUTS * 4], codes_b[OUTS * 4];
            [[unroll]] for (int o = 0; o < OUTS; ++o) {
                w[o] = scaled_step(raw[ahead * OUTS + o], steps[ahead]);
                [[unroll]] for (uint octet = 0u; octet < 4u; ++octet) signed_codes(w[o], octet, codes_a[o * 4 + octet], codes_b[o * 4 + octet]);
            }
            [[unroll]] for (int r = 0; r < ROWS; ++r) {
                uint at = r * kTurnSteps + ahead * LANES + lane;
                uvec4 xa = rounded_a[at], xb = rounded_b[at], about = rounded_about[at];
                float x_scale = uintBitsToFloat(about.x);
                ivec2 totals = ivec2(about.yz);
#ifdef NORM
                if (PREPARED == 0u) {
                    precise float sum = squares[r] + uintBitsToFloat(about.w);
                    squares[r] = sum;
                }
#endif
                [[unroll]] for (int o = 0; o < OUTS; ++o) {
                    ivec2 products = -kSignedZero * (kOneScale ? ivec2(totals.x + totals.y, 0) : totals);
                    [[unroll]] for (uint octet = 0u; octet < 4u; ++octet) {
                        products.x += packed_dot(codes_a[o * 4 + octet], xa[octet], 0);
                        int b = packed_dot(codes_b[o * 4 + octet], xb[octet], 0);
                        if (kOneScale) products.x += b;
                        else products.y += b;
                    }
                    precise float sum = fma(step_sum(w[o], products, totals), x_scale, acc[o * ROWS + r]);
                    acc[o * ROWS + r] = sum;
                }
            }
        }
