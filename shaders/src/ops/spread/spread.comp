// A number of each invocation, along x; a row of each workgroup, along y.

layout(constant_id = 1) const uint STREAMS = 1;
layout(constant_id = 2) const bool COMBINED = false;

// Without a matrix that combines streams, comb is b.
PUSH(Operand h; Operand y; Operand b; Operand comb; Operand spread; uint width;)

void main() {
    uint at = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || at >= STREAMS * push.width) {
        return;
    }
    uint stream = at / push.width;
    uint col = at % push.width;
    uint h = ROW_START(push.h, row);
    uint shares = ROW_START(push.comb, row) + stream;
    precise float sum = FLOATS(push.b).at[ROW_START(push.b, row) + stream] * FLOATS(push.y).at[ROW_START(push.y, row) + col];
    if (COMBINED) {
        for (uint other = 0; other < STREAMS; other++) {
            precise float term = FLOATS(push.comb).at[shares + other * STREAMS] * FLOATS(push.h).at[h + other * push.width + col];
            sum += term;
        }
    } else {
        sum += FLOATS(push.h).at[h + at];
    }
    FLOATS(push.spread).at[ROW_START(push.spread, row) + at] = sum;
}
