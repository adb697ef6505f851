// A word of each invocation, along x; a wanted row of each workgroup, along y.

PUSH(Operand x; Operand y; uint width;)

void main() {
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= push.width) {
        return;
    }
    // A row of the step, wherever the wanted ones among them begin.
    uint taken = ROW_AT(row).step_row * (push.x.stride & 0x7fffffffu);
    UINTS(push.y).at[ROW_START(push.y, row) + col] = UINTS(push.x).at[taken + col];
}
