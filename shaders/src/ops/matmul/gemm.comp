// Products of tiles of 64 rows and 64 outputs, in f32: an invocation has 4 rows and 4 outputs, whose sums go through the columns in order.
#include "product.glsl"

const uint TILE = 64;
const uint DEPTH = 16;
// Of a column in shared memory: lines of a tile, and a few more so that columns begin in different banks.
const uint PITCH = TILE + 4;

shared float xs[DEPTH * PITCH];
shared float ws[DEPTH * PITCH];

void main() {
    Part part = part_at(gl_WorkGroupID.y, TILE);
    if (part.count == 0) {
        return;
    }
    uint me = gl_LocalInvocationIndex;
#ifdef FMT_GRID
    fmt_grid_fill(me, gl_WorkGroupSize.x);
#endif
    // Tiles do not reach over outputs that read other columns.
    uint tiles = (GROUP_OUTS + TILE - 1) / TILE;
    uint group = place_x() / tiles;
    uint first = group * GROUP_OUTS + place_x() % tiles * TILE;
    uint end = min((group + 1) * GROUP_OUTS, OUTS);
    if (first >= end) {
        return;
    }
    // What this invocation brings: four columns of a row of x and of one of the matrix.
    uint line = me / 4;
    uint quad = me % 4 * 4;
    bool has_x = line < part.count;
    uint start = has_x ? x_start(part.first + line, first) : 0;
    Row row = row_beside(w_row(matrix_of(part, WHICH), first), first, min(first + line, end - 1));
    bool vectors = has_vectors();
    uint rows = me / 16 * 4;
    uint outs = me % 16 * 4;
    float sums[16];
    [[unroll]] for (uint at = 0; at < 16; at++) {
        sums[at] = 0.0;
    }
    for (uint base = 0; base < COLS; base += DEPTH) {
        uint col = base + quad;
        barrier();
        vec4 x = has_x && col < COLS ? x_columns(start, col, vectors) : vec4(0.0);
        vec4 w = col < COLS ? w_columns(row, col) : vec4(0.0);
        [[unroll]] for (uint at = 0; at < 4; at++) {
            xs[(quad + at) * PITCH + line] = x[at];
            ws[(quad + at) * PITCH + line] = w[at];
        }
        barrier();
        for (uint k = 0; k < DEPTH; k++) {
            [[unroll]] for (uint r = 0; r < 4; r++) {
                float number = xs[k * PITCH + rows + r];
                [[unroll]] for (uint o = 0; o < 4; o++) {
                    precise float sum = fma(number, ws[k * PITCH + outs + o], sums[4 * r + o]);
                    sums[4 * r + o] = sum;
                }
            }
        }
    }
    [[unroll]] for (uint r = 0; r < 4; r++) {
        if (rows + r < part.count) {
            uint y = y_row(part.first + rows + r);
            [[unroll]] for (uint o = 0; o < 4; o++) {
                if (first + outs + o < end) {
                    finish(sums[4 * r + o], y, first + outs + o);
                }
            }
        }
    }
}
