// Writes down how many rows run and where each stands, for a kernel that knows nothing of the step.
PUSH(Address to;)

void main() {
    uint row = gl_GlobalInvocationID.x;
    if (row == 0) {
        UINTS(push.to).at[0] = ROW_COUNT;
        for (uint word = 1; word < 4; word++) {
            UINTS(push.to).at[word] = 0;
        }
    }
    if (row >= ROW_COUNT) {
        return;
    }
    RowAt at = ROW_AT(row);
    uint first = 4 + 4 * row;
    UINTS(push.to).at[first] = at.conv;
    UINTS(push.to).at[first + 1] = at.pos;
    UINTS(push.to).at[first + 2] = at.step_row;
    UINTS(push.to).at[first + 3] = 0;
}
