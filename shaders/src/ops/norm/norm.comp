// A group of columns of each team, or of each workgroup where sums are wide, along x; a row of each workgroup, along y.

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint GROUPS = 1;
layout(constant_id = 3) const bool WIDE = false;
layout(constant_id = 4) const uint KIND = 0;
layout(constant_id = 5) const uint WEIGHTING = 0;
layout(constant_id = 6) const bool ZERO_CENTRED = false;
layout(constant_id = 7) const bool BIASED = false;
layout(constant_id = 8) const bool EPS_OUTSIDE = false;

#define LAYER 1
#define L2 2
#define FULL 2

PUSH(Operand x; Operand y; Address weight; Address bias; float eps; float scale;)

// Where the group begins, what is subtracted from its numbers, and whether their squares are summed.
uint x_start;
float centre = 0.0;
bool squared = false;

float centred(uint col) {
    precise float number = FLOATS(push.x).at[x_start + col] - centre;
    return number;
}

float term(uint col) {
    float number = centred(col);
    precise float square = number * number;
    return squared ? square : number;
}

#include "staged.glsl"

// What a group's numbers are multiplied by, of the sum of their squares.
float factor_of(float squares) {
    float size = KIND == L2 ? squares : squares / float(WIDTH);
    float root = EPS_OUTSIDE ? sqrt(size) + push.eps : sqrt(size + push.eps);
    return 1.0 / root;
}

float weighted(uint col, uint weight, float factor) {
    precise float number = centred(col) * factor;
    if (WEIGHTING != 0) {
        precise float by = FLOATS(push.weight).at[weight + col];
        if (ZERO_CENTRED) {
            by += 1.0;
        }
        number *= by;
    }
    if (BIASED) {
        number += FLOATS(push.bias).at[weight + col];
    }
    number *= push.scale;
    return number;
}

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    uint group = WIDE ? gl_WorkGroupID.x : gl_GlobalInvocationID.x / TEAM;
    uint count = group < GROUPS ? WIDTH : 0;
    x_start = ROW_START(push.x, row) + group * WIDTH;
    if (KIND == LAYER) {
        centre = sum_of_terms(WIDE, count) / float(WIDTH);
    }
    squared = true;
    float factor = factor_of(sum_of_terms(WIDE, count));
    uint y = ROW_START(push.y, row) + group * WIDTH;
    uint weight = WEIGHTING == FULL ? group * WIDTH : 0;
    uint first = WIDE ? gl_LocalInvocationIndex : gl_LocalInvocationIndex % TEAM;
    for (uint col = first; col < count; col += WIDE ? gl_WorkGroupSize.x : TEAM) {
        FLOATS(push.y).at[y + col] = weighted(col, weight, factor);
    }
}
