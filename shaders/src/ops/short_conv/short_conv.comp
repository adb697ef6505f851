// A column of each invocation, along x; a row of each workgroup, along y. The step's rows are stored already.
#include "states.glsl"
#include "lanes.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint TAPS = 1;
layout(constant_id = 3) const uint DILATION = 1;
layout(constant_id = 4) const bool SILU = false;
layout(constant_id = 5) const bool RESIDUAL = false;

PUSH(Operand x; Operand y; Address w; State state;)

// What a tap sees: 0 before position 0.
float tap_number(RowAt at, uint tap, uint col) {
    uint back = (TAPS - 1 - tap) * DILATION;
    if (back > at.pos) {
        return 0.0;
    }
    uint index = at.pos - back;
    if (!has_row(STEP, push.state, at.conv, index)) {
        // The row's own place has been told already.
        if (col == 0 && back > 0) {
            FAIL(1, at.step_row, index)
        }
        return 0.0;
    }
    Uints page = page_of(STEP, push.state, at.conv, index);
    return uintBitsToFloat(page.at[row_word(push.state, index) + col]);
}

void main() {
    uint row = gl_WorkGroupID.y;
    uint col = gl_GlobalInvocationID.x;
    if (row >= ROW_COUNT || col >= WIDTH) {
        return;
    }
    RowAt at = ROW_AT(row);
    precise vec4 lanes[LANE_VECTORS];
    [[unroll]] for (uint i = 0; i < LANE_VECTORS; i++) {
        lanes[i] = vec4(0.0);
    }
    for (uint first = 0; first < TAPS; first += 4 * LANE_VECTORS) {
        float products[4 * LANE_VECTORS];
        for (uint i = 0; i < 4 * LANE_VECTORS; i++) {
            precise float product = 0.0;
            if (first + i < TAPS) {
                product = FLOATS(push.w).at[col * TAPS + first + i] * tap_number(at, first + i, col);
            }
            products[i] = product;
        }
        [[unroll]] for (uint i = 0; i < LANE_VECTORS; i++) {
            lanes[i] += vec4(products[4 * i], products[4 * i + 1], products[4 * i + 2], products[4 * i + 3]);
        }
    }
    precise float number = joined(lanes);
    if (SILU) {
        number /= 1.0 + exp(-number);
    }
    if (RESIDUAL) {
        number += FLOATS(push.x).at[ROW_START(push.x, row) + col];
    }
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = number;
}
