// A number of each invocation, along x; a row of each workgroup, along y.
#include "functions.glsl"

layout(constant_id = 1) const uint KIND = 0;
layout(constant_id = 2) const uint REPEAT = 0;
layout(constant_id = 3) const uint GROUP = 1;

// Without a third value, c is b.
PUSH(Operand a; Operand b; Operand c; Operand y; uint width; float scale;)

float combined(float a, float b, float c) {
    precise float product = push.scale * b;
    precise float sum = a + product;
    precise float more = 1.0 + b;
    precise float modulated = a * more + c;
    precise float difference = a - b;
    switch (KIND) {
    case 0: return sum;
    case 1: return a * b;
    case 2: return a * sigmoid(b);
    case 3: return a * silu(b);
    case 4: return modulated;
    default: return abs(difference);
    }
}

void main() {
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= push.width) {
        return;
    }
    uint other = REPEAT == 0 ? col : REPEAT == 1 ? col / GROUP : col % GROUP;
    float a = FLOATS(push.a).at[ROW_START(push.a, row) + col];
    float b = FLOATS(push.b).at[ROW_START(push.b, row) + other];
    float c = KIND == 4 ? FLOATS(push.c).at[ROW_START(push.c, row) + other] : 0.0;
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = combined(a, b, c);
}
