// A number of each invocation, along x; a row of each workgroup, along y.
#include "functions.glsl"

layout(constant_id = 1) const uint KIND = 0;
layout(constant_id = 2) const bool WEIGHTED = false;

PUSH(Operand x; Operand y; Address w; uint width; float scale; float add; float limit;)

float function(float x) {
    switch (KIND) {
    case 1: return silu(x);
    case 2: return sigmoid(x);
    case 3: return gelu(x);
    case 4: return gelu_tanh(x);
    case 5: return relu(x);
    case 6: return hyperbolic_tangent(x);
    case 7: return exponential(x);
    case 8: return sqrt_softplus(x);
    case 9: return signsqrt_sigmoid(x);
    case 10: return x < -push.limit ? -push.limit : x > push.limit ? push.limit : x;
    default: return x;
    }
}

void main() {
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= push.width) {
        return;
    }
    precise float v = push.scale * FLOATS(push.x).at[ROW_START(push.x, row) + col];
    if (WEIGHTED) {
        v += FLOATS(push.w).at[col];
    }
    v += push.add;
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = function(v);
}
