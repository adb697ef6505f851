// A word of each invocation, along x; a row of each workgroup, along y. Up to eight parts stand side by side from a first column on.

layout(constant_id = 1) const uint FIRST = 0;
// Where the parts end; those that are not there end where the one before them does.
layout(constant_id = 2) const uint END_A = 0;
layout(constant_id = 3) const uint END_B = 0;
layout(constant_id = 4) const uint END_C = 0;
layout(constant_id = 5) const uint END_D = 0;
layout(constant_id = 6) const uint END_E = 0;
layout(constant_id = 7) const uint END_F = 0;
layout(constant_id = 8) const uint END_G = 0;
layout(constant_id = 9) const uint END_H = 0;

PUSH(Operand y; Operand a; Operand b; Operand c; Operand d; Operand e; Operand f; Operand g; Operand h;)

uint word(Operand part, uint row, uint col) {
    return UINTS(part).at[ROW_START(part, row) + col];
}

uint joined(uint row, uint col) {
    if (col < END_A) {
        return word(push.a, row, col - FIRST);
    } else if (col < END_B) {
        return word(push.b, row, col - END_A);
    } else if (col < END_C) {
        return word(push.c, row, col - END_B);
    } else if (col < END_D) {
        return word(push.d, row, col - END_C);
    } else if (col < END_E) {
        return word(push.e, row, col - END_D);
    } else if (col < END_F) {
        return word(push.f, row, col - END_E);
    } else if (col < END_G) {
        return word(push.g, row, col - END_F);
    }
    return word(push.h, row, col - END_G);
}

void main() {
    uint col = FIRST + gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= END_H) {
        return;
    }
    UINTS(push.y).at[ROW_START(push.y, row) + col] = joined(row, col);
}
