// A number of each invocation, along x; a row of each workgroup, along y.
#include "functions.glsl"

layout(constant_id = 1) const uint KIND = 0;

PUSH(Operand gate; Operand up; Operand y; uint width; float limit;)

float glu(float gate, float up) {
    switch (KIND) {
    case 1: return silu(min(gate, push.limit)) * clamp(up, -push.limit, push.limit);
    case 2: return gelu(gate) * up;
    default: return silu(gate) * up;
    }
}

void main() {
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= push.width) {
        return;
    }
    float gate = FLOATS(push.gate).at[ROW_START(push.gate, row) + col];
    float up = FLOATS(push.up).at[ROW_START(push.up, row) + col];
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = glu(gate, up);
}
