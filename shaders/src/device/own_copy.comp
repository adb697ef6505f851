// Copies rows of an operand to memory without gaps (INTO 1), or back (0). Bits, so that ids are copied as well.
layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint INTO = 1;

PUSH(Operand x; Address dense;)

void main() {
    uint row = gl_WorkGroupID.y;
    uint column = gl_GlobalInvocationID.x;
    if (row >= ROW_COUNT || column >= WIDTH) {
        return;
    }
    uint here = ROW_START(push.x, row) + column;
    uint there = row * WIDTH + column;
    if (INTO == 1) {
        UINTS(push.dense).at[there] = UINTS(push.x).at[here];
    } else {
        UINTS(push.x).at[here] = UINTS(push.dense).at[there];
    }
}
