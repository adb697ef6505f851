// Adds the ranks of a row in order, each times its weight. A number of each invocation, along x; a row of each workgroup, along y.

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint RANKS = 1;

// `parts`: a row for each pair of a row and a rank.
PUSH(Operand parts; Operand weights; Operand y;)

void main() {
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= WIDTH) {
        return;
    }
    precise float sum = 0.0;
    for (uint rank = 0; rank < RANKS; rank++) {
        float number = FLOATS(push.parts).at[ROW_START(push.parts, row * RANKS + rank) + col];
        precise float product = number * FLOATS(push.weights).at[ROW_START(push.weights, row) + rank];
        sum += product;
    }
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = sum;
}
