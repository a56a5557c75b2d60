// The body of a mat-vec, for inside main() because glslang passes no arrays whose size is a specialisation constant. Every
// invocation of the workgroup takes part. Leaves: out0, row0, the first output of the team and row of the tile; acc,
// (outputs, ROWS), the sums of outputs out0 + first_out …, kHeld of them; writes, of the lanes that hold the same ones one.
// PAIRS_OUT: goes on to emit_pair(output, row, even, odd), the op's, for every two neighbours (the first even, below
// args.n_out) of every row below args.n_rows. OUTS is at least 2 then, args.n_out even.
    uint lane = lane_index();
    uint group = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * TEAMS + team_index();
    uint out0 = group * OUTS;
    uint row0 = gl_WorkGroupID.z * ROWS;

    uint w_row[OUTS]; // where each begins
    uint first_in_tile = row_begin(min(out0, args.n_out - OUTS), args.k_steps); // tiles are whole, and whole teams share one
    [[unroll]] for (int o = 0; o < OUTS; ++o)
        w_row[o] = kInTiles ? first_in_tile + o * TILE_VECTORS(FORMAT) : row_begin(min(out0 + o, args.n_out - 1u), args.k_steps);
    uint x_base[ROWS];
    [[unroll]] for (int r = 0; r < ROWS; ++r)
        x_base[r] = x_begin(row0 + r);

    precise float acc[OUTS * ROWS];
    [[unroll]] for (int i = 0; i < OUTS * ROWS; ++i) acc[i] = 0.0;
#ifdef NORM
    precise float squares[ROWS];
    [[unroll]] for (int r = 0; r < ROWS; ++r) squares[r] = 0.0;
#endif
#ifdef UNROLLED
    for (uint first_step = lane; first_step < args.k_steps; first_step += LANES * uint(AHEAD)) {
#else
    // All lanes go round as often, whether they stage x or not: SwiftShader counts a barrier that nobody comes to.
    for (uint turn = 0u; turn < args.k_steps; turn += LANES * uint(AHEAD)) {
        uint first_step = turn + lane;
        if (STAGED == 0u && first_step >= args.k_steps) continue;
#endif
        uint steps[AHEAD]; // those after the last take the last, and do not count
        [[unroll]] for (int i = 0; i < AHEAD; ++i)
            steps[i] = AHEAD == 1 && STAGED == 0u ? first_step : min(first_step + i * LANES, args.k_steps - 1u);
        RawStep raw[AHEAD * OUTS];
        [[unroll]] for (int i = 0; i < AHEAD; ++i)
            [[unroll]] for (int o = 0; o < OUTS; ++o) raw[i * OUTS + o] = load_raw_step(w_row[o], steps[i], args.k_steps);
#ifdef INT8_X
#include "include/dot_int8.glsl"
#else
#ifndef UNROLLED
        if (STAGED != 0u) {
            barrier(); // nobody reads the x of the turn before any more
            uint first_quad = turn * kQuads, n_quads = min(kTurnSteps, args.k_steps - turn) * kQuads;
            for (uint v = gl_LocalInvocationIndex; v < n_quads; v += LANES * TEAMS) {
                uint place = staged_place(0u, v % kQuads, v / kQuads);
                [[unroll]] for (int r = 0; r < ROWS; ++r) staged[place + r * kQuads * kStagedPitch] = x_vec(x_base[r] + first_quad + v);
#ifdef NORM
                if (PREPARED == 0u) staged[place + ROWS * kQuads * kStagedPitch] = norm_vec(first_quad + v);
#endif
            }
            barrier();
        }
#endif
        WeightStep w[AHEAD * OUTS]; // only now: a compiler may branch here, and would wait for each load before it asks for the next
        [[unroll]] for (int i = 0; i < AHEAD * OUTS; ++i) w[i] = scaled_step(raw[i], steps[i / OUTS]);
        [[unroll]] for (uint i = 0u; i < uint(AHEAD) * kOctets; ++i) {
            int ahead = int(i / kOctets);
            uint octet = i % kOctets;
            bool counts = (AHEAD == 1 && STAGED == 0u) || first_step + ahead * LANES < args.k_steps;
            vec4 xa[ROWS];
            vec4 xb[ROWS];
            [[unroll]] for (int r = 0; r < ROWS; ++r) {
                xa[r] = X_QUAD(r, x_vec(x_base[r] + x_of_a(steps[ahead], octet)), x_of_a(0u, octet));
                xb[r] = X_QUAD(r, x_vec(x_base[r] + x_of_b(steps[ahead], octet)), x_of_b(0u, octet));
            }
#ifdef NORM
            if (PREPARED == 0u) {
                vec4 norm_a = X_QUAD(ROWS, norm_vec(x_of_a(steps[ahead], octet)), x_of_a(0u, octet));
                vec4 norm_b = X_QUAD(ROWS, norm_vec(x_of_b(steps[ahead], octet)), x_of_b(0u, octet));
                [[unroll]] for (int r = 0; r < ROWS; ++r) {
                    float sum = add_squares(xa[r], xb[r], squares[r]);
                    squares[r] = counts ? sum : squares[r];
                    precise vec4 a = xa[r] * norm_a;
                    precise vec4 b = xb[r] * norm_b;
                    xa[r] = a;
                    xb[r] = b;
                }
            }
#endif
            [[unroll]] for (int o = 0; o < OUTS; ++o) {
                vec4 wa, wb;
                octet_weights(w[ahead * OUTS + o], octet, wa, wb);
                [[unroll]] for (int r = 0; r < ROWS; ++r) {
                    float sum = dot_quad(wb, xb[r], dot_quad(wa, xa[r], acc[o * ROWS + r]));
                    acc[o * ROWS + r] = counts ? sum : acc[o * ROWS + r];
                }
            }
        }
#endif
    }

#ifdef NORM
    float scales[ROWS]; // asked for before the sums meet
    if (PREPARED != 0u) {
        [[unroll]] for (int r = 0; r < ROWS; ++r) scales[r] = norm_scales[min(row0 + r, args.n_rows - 1u)];
    }
#endif
    int first_out = 0;
    bool writes = true;
    REDUCE_LEVEL(0)
    REDUCE_LEVEL(1)
    REDUCE_LEVEL(2)
    REDUCE_LEVEL(3)
    REDUCE_LEVEL(4)
    REDUCE_LEVEL(5)
#ifdef NORM
    if (PREPARED == 0u) {
        LANE_TREE(SQUARES_LEVEL)
        [[unroll]] for (int r = 0; r < ROWS; ++r) scales[r] = norm_scale(squares[r], args.norm_width, args.norm_eps);
    }
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
        [[unroll]] for (int o = 0; o < kHeld; ++o) {
            precise float scaled = acc[o * ROWS + r] * scales[r];
            acc[o * ROWS + r] = scaled;
        }
    }
#endif
#ifdef PAIRS_OUT
    if (kHeld > 1) {
        [[unroll]] for (int o = 0; o < kHeld - 1; o += 2)
            [[unroll]] for (int r = 0; r < ROWS; ++r)
                if (out0 + first_out + o < args.n_out && row0 + r < args.n_rows)
                    emit_pair(out0 + first_out + o, row0 + r, acc[o * ROWS + r], acc[(o + 1) * ROWS + r]);
    } else {
        uint team_sums = team_index() * kTeamSums;
        if (writes) {
            [[unroll]] for (int r = 0; r < ROWS; ++r) sums[team_sums + uint(first_out * ROWS + r)] = acc[r];
        }
        team_barrier();
        for (uint pair = lane; pair < kTeamSums / 2u; pair += LANES) {
            uint r = pair % uint(ROWS);
            uint o = 2u * (pair / uint(ROWS));
            if (out0 + o < args.n_out && row0 + r < args.n_rows)
                emit_pair(out0 + o, row0 + r, sums[team_sums + o * uint(ROWS) + r], sums[team_sums + (o + 1u) * uint(ROWS) + r]);
        }
    }
#endif
