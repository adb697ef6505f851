// Transposed products of groups: the sum over a group's rows of the matrix, in the order of exact mode (`sums.rs`). A workgroup has 16
// columns, four in each of 4 invocations of a lane, and 32 lanes.
#include "product.glsl"

// Rows of x that share a decode.
layout(constant_id = 16) const uint ROWS = 1;

const uint LANES = 32;
const uint QUADS = 4;

shared vec4 joins[LANES * QUADS];

// Of each row of x: the sums of four columns over the rows of one lane.
vec4 lanes[ROWS];

// The sum of the lanes of row `r`, in the invocations of lane 0.
vec4 joined(uint r, uint lane) {
    uint me = gl_LocalInvocationIndex;
    joins[me] = lanes[r];
    barrier();
    [[unroll]] for (uint other = LANES / 2; other > 0; other /= 2) {
        precise vec4 sum = joins[me];
        if (lane < other) {
            sum += joins[me + other * QUADS];
        }
        barrier();
        joins[me] = sum;
        barrier();
    }
    return joins[me];
}

void main() {
    Part part = part_at(gl_WorkGroupID.y, ROWS);
    if (part.count == 0) {
        return;
    }
    uint me = gl_LocalInvocationIndex;
#ifdef FMT_GRID
    fmt_grid_fill(me, gl_WorkGroupSize.x);
    barrier();
#endif
    uint lane = me / QUADS;
    uint blocks = (COLS + 4 * QUADS - 1) / (4 * QUADS);
    uint group = place_x() / blocks;
    uint col = (place_x() % blocks * QUADS + me % QUADS) * 4;
    bool live = group < OUTS / GROUP_OUTS && col < COLS;
    uvec2 matrix = matrix_of(part, WHICH);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        lanes[r] = vec4(0.0);
    }
    for (uint o = lane; live && o < GROUP_OUTS; o += LANES) {
        precise vec4 w = w_columns(w_row(matrix, group * GROUP_OUTS + o), col);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            uint row = part.first + min(r, part.count - 1);
            precise vec4 product = w * FLOATS(push.x).at[ROW_START(push.x, row) + group * GROUP_OUTS + o];
            precise vec4 sum = lanes[r] + product;
            lanes[r] = sum;
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        vec4 sums = joined(r, lane);
        uint row = part.first + r;
        for (uint at = 0; live && lane == 0 && r < part.count && at < 4 && col + at < COLS; at++) {
            FLOATS(push.y).at[ROW_START(push.y, row) + group * COLS + col + at] = sums[at];
        }
        barrier();
    }
}
