// Products of tiles by the matrices that a subgroup multiplies: f16 operands in shared memory, f32 sums.
#include "product.glsl"

// Rows, columns and depth of a subgroup's matrices, and its invocations.
layout(constant_id = 16) const uint M = 16;
layout(constant_id = 17) const uint N = 16;
layout(constant_id = 18) const uint K = 16;
layout(constant_id = 19) const uint SUBGROUP = 32;
// Of a workgroup's tile: rows, outputs, columns at a time; and the subgroups along its rows and along its outputs.
layout(constant_id = 20) const uint TILE_ROWS = 64;
layout(constant_id = 21) const uint TILE_OUTS = 64;
layout(constant_id = 22) const uint DEPTH = 32;
layout(constant_id = 23) const uint ALONG_ROWS = 2;
layout(constant_id = 24) const uint ALONG_OUTS = 2;

// Vectors of a line in shared memory: two more than there are, so that lines begin in different banks.
const uint QUADS = DEPTH / 4;
const uint PITCH = QUADS + 2;
// A subgroup's matrices.
const uint HIGH = TILE_ROWS / ALONG_ROWS / M;
const uint WIDE = TILE_OUTS / ALONG_OUTS / N;

shared f16vec4 xs[TILE_ROWS * PITCH];
shared f16vec4 ws[TILE_OUTS * PITCH];
shared float stage[ALONG_ROWS * ALONG_OUTS * M * N];
shared uint starts[TILE_ROWS];

// The largest binary16, for numbers beyond it.
const float MOST = 65504.0;

void main() {
    Part part = part_at(gl_WorkGroupID.y, TILE_ROWS);
    if (part.count == 0) {
        return;
    }
    // Tiles do not reach over outputs that read other columns.
    uint tiles = (GROUP_OUTS + TILE_OUTS - 1) / TILE_OUTS;
    uint group = place_x() / tiles;
    uint first = group * GROUP_OUTS + place_x() % tiles * TILE_OUTS;
    uint end = min((group + 1) * GROUP_OUTS, OUTS);
    if (first >= end) {
        return;
    }
    uint me = gl_LocalInvocationIndex;
#ifdef FMT_GRID
    fmt_grid_fill(me, gl_WorkGroupSize.x);
#endif
    for (uint line = me; line < TILE_ROWS; line += gl_WorkGroupSize.x) {
        starts[line] = line < part.count ? x_start(part.first + line, first) : 0;
    }
    Row top = w_row(matrix_of(part, WHICH), first);
    bool vectors = has_vectors();
    uint row0 = gl_SubgroupID / ALONG_OUTS * (HIGH * M);
    uint out0 = gl_SubgroupID % ALONG_OUTS * (WIDE * N);
    coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[HIGH * WIDE];
    [[unroll]] for (uint at = 0; at < HIGH * WIDE; at++) {
        sums[at] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
    }
    barrier();
    for (uint base = 0; base < COLS; base += DEPTH) {
        [[unroll]] for (uint at = me; at < TILE_ROWS * QUADS; at += gl_WorkGroupSize.x) {
            uint line = at / QUADS;
            uint col = base + at % QUADS * 4;
            vec4 x = line < part.count && col < COLS ? x_columns(starts[line], col, vectors) : vec4(0.0);
            xs[line * PITCH + at % QUADS] = f16vec4(clamp(x, -MOST, MOST));
        }
        [[unroll]] for (uint at = me; at < TILE_OUTS * QUADS; at += gl_WorkGroupSize.x) {
            uint o = first + at / QUADS;
            uint col = base + at % QUADS * 4;
            vec4 w = o < end && col < COLS ? w_columns(row_beside(top, first, o), col) : vec4(0.0);
            ws[at / QUADS * PITCH + at % QUADS] = f16vec4(clamp(w, -MOST, MOST));
        }
        barrier();
        [[unroll]] for (uint k = 0; k < DEPTH; k += K) {
            coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> left[HIGH];
            [[unroll]] for (uint r = 0; r < HIGH; r++) {
                coopMatLoad(left[r], xs, (row0 + r * M) * PITCH + k / 4, PITCH, gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint o = 0; o < WIDE; o++) {
                coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> right;
                coopMatLoad(right, ws, (out0 + o * N) * PITCH + k / 4, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint r = 0; r < HIGH; r++) {
                    sums[r * WIDE + o] = coopMatMulAdd(left[r], right, sums[r * WIDE + o]);
                }
            }
        }
        barrier();
    }
    uint mine = gl_SubgroupID * M * N;
    [[unroll]] for (uint at = 0; at < HIGH * WIDE; at++) {
        coopMatStore(sums[at], stage, mine, N, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint e = gl_SubgroupInvocationID; e < M * N; e += SUBGROUP) {
            uint line = row0 + at / WIDE * M + e / N;
            uint o = first + out0 + at % WIDE * N + e % N;
            if (line < part.count && o < end) {
                finish(stage[mine + e], y_row(part.first + line), o);
            }
        }
        barrier();
    }
}
