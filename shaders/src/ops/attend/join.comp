// A head of each workgroup, along x; a row along y; columns along z: joins what `attend` left of the splits.

PUSH(Operand y; Address parts; Address sinks; uint row0; uint slots;)

void main() {
    uint row = push.row0 + gl_WorkGroupID.y;
    uint head = gl_WorkGroupID.x;
    uint col = gl_GlobalInvocationID.z * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    if (row >= ROW_COUNT || col >= V_WIDTH) {
        return;
    }
    uint pos = ROW_AT(row).pos;
    uint splits = splits_of(seen_0(pos)) + splits_of(seen_1(pos));
    uint start = (gl_WorkGroupID.y * HEADS + head) * push.slots * (V_WIDTH + 2);
    Softmax all = Softmax(LOWEST, 0.0);
    precise float number = 0.0;
    for (uint first = 0; first < splits; first += 4) {
        // Reads of four splits do not wait for each other.
        vec3 parts[4];
        [[unroll]] for (uint i = 0; i < 4; i++) {
            uint at = start + min(first + i, splits - 1) * (V_WIDTH + 2);
            Floats from = FLOATS(push.parts);
            parts[i] = vec3(from.at[at + col], from.at[at + V_WIDTH], from.at[at + V_WIDTH + 1]);
        }
        [[unroll]] for (uint i = 0; i < 4; i++) {
            if (first + i < splits) {
                vec2 factors = take_part(all, parts[i].y, parts[i].z);
                precise float before = number * factors.x;
                precise float now = parts[i].x * factors.y;
                number = before + now;
            }
        }
    }
    if (SINK) {
        number *= take_sink(all, FLOATS(push.sinks).at[head]);
    }
    // Precise, so that no compiler moves the sink's factor behind the division in one of the kernels.
    precise float share = number / all.sum;
    FLOATS(push.y).at[ROW_START(push.y, row) + head * V_WIDTH + col] = all.sum == 0.0 ? 0.0 : share;
}
