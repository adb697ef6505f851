// A group of columns of each team, or of each workgroup where sums are wide, along x; a row of each workgroup, along y.

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint GROUPS = 1;
layout(constant_id = 3) const bool WIDE = false;

PUSH(Operand a; Operand b; Operand y; float scale;)

uint a_start;
uint b_start;

float term(uint col) {
    precise float product = FLOATS(push.a).at[a_start + col] * FLOATS(push.b).at[b_start + col];
    return product;
}

#include "staged.glsl"

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    uint group = WIDE ? gl_WorkGroupID.x : gl_GlobalInvocationID.x / TEAM;
    a_start = ROW_START(push.a, row) + group * WIDTH;
    b_start = ROW_START(push.b, row) + group * WIDTH;
    float sum = sum_of_terms(WIDE, group < GROUPS ? WIDTH : 0);
    bool first = WIDE ? gl_LocalInvocationIndex == 0 : gl_LocalInvocationIndex % TEAM == 0;
    if (first && group < GROUPS) {
        FLOATS(push.y).at[ROW_START(push.y, row) + group] = push.scale * sum;
    }
}
