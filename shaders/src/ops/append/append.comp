// A word of a row of the state of each invocation, along x; a row of each workgroup, along y.
#include "states.glsl"

layout(constant_id = 1) const uint STRIDE = 1;
// The first column that is written, and the columns where the operands end.
layout(constant_id = 2) const uint FIRST = 0;
layout(constant_id = 3) const uint END_A = 1;
layout(constant_id = 4) const uint END_B = 1;
layout(constant_id = 5) const uint END_C = 1;
layout(constant_id = 6) const uint END_D = 1;
layout(constant_id = 7) const uint END_E = 1;
layout(constant_id = 8) const uint END_F = 1;
layout(constant_id = 9) const uint END_G = 1;
layout(constant_id = 10) const uint END = 1;

PUSH(State state; Operand a; Operand b; Operand c; Operand d; Operand e; Operand f; Operand g; Operand h;)

#define NUMBER_OF(operand, first) FLOATS(operand).at[ROW_START(operand, row) + col - (first)]

// What the operands, side by side, have in a column.
float number(uint row, uint col) {
    if (col < END_A) {
        return NUMBER_OF(push.a, FIRST);
    }
    if (col < END_B) {
        return NUMBER_OF(push.b, END_A);
    }
    if (col < END_C) {
        return NUMBER_OF(push.c, END_B);
    }
    if (col < END_D) {
        return NUMBER_OF(push.d, END_C);
    }
    if (col < END_E) {
        return NUMBER_OF(push.e, END_D);
    }
    if (col < END_F) {
        return NUMBER_OF(push.f, END_E);
    }
    if (col < END_G) {
        return NUMBER_OF(push.g, END_F);
    }
    return NUMBER_OF(push.h, END_G);
}

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    RowAt at = ROW_AT(row);
    if (at.pos % STRIDE != STRIDE - 1) {
        return;
    }
    uint index = at.pos / STRIDE;
    if (!has_row(STEP, push.state, at.conv, index)) {
        if (gl_GlobalInvocationID.x == 0) {
            FAIL(0, at.step_row, at.pos)
        }
        return;
    }
    Uints page = page_of(STEP, push.state, at.conv, index);
    uint word = row_word(push.state, index);
    if (!is_half(push.state)) {
        uint col = FIRST + gl_GlobalInvocationID.x;
        if (col < END) {
            page.at[word + col] = floatBitsToUint(number(row, col));
        }
        return;
    }
    uint col = (FIRST & ~1u) + 2 * gl_GlobalInvocationID.x;
    if (col < END) {
        // A first column that is odd: the dispatch before has written the other half.
        uint low = col < FIRST ? page.at[word + col / 2] & 0xffffu : half_bits(number(row, col));
        uint high = col + 1 < END ? half_bits(number(row, col + 1)) : 0;
        page.at[word + col / 2] = low | high << 16;
    }
}
