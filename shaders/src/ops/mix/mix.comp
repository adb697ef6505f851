// A number of each invocation, along x; a row of each workgroup, along y.

layout(constant_id = 1) const uint STREAMS = 1;
layout(constant_id = 2) const bool WEIGHTED = false;

// Without weights a is h.
PUSH(Operand h; Operand a; Operand y; uint width;)

void main() {
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= push.width) {
        return;
    }
    uint h = ROW_START(push.h, row);
    uint a = ROW_START(push.a, row);
    precise float sum = 0.0;
    for (uint stream = 0; stream < STREAMS; stream++) {
        float number = FLOATS(push.h).at[h + stream * push.width + col];
        precise float term = WEIGHTED ? FLOATS(push.a).at[a + stream] * number : number;
        sum += term;
    }
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = WEIGHTED ? sum : sum / float(STREAMS);
}
