// A row of each workgroup, along y: a bit for each block that the candidates name.

layout(constant_id = 3) const uint IDS = 1;

PUSH(Operand ids; Address marks; uint row0; uint words;)

void main() {
    uint row = push.row0 + gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    uint start = gl_WorkGroupID.y * push.words;
    for (uint i = gl_LocalInvocationIndex; i < push.words; i += gl_WorkGroupSize.x) {
        UINTS(push.marks).at[start + i] = 0;
    }
    memoryBarrierBuffer();
    barrier();
    uint blocks = blocks_of(seen_at(ROW_AT(row).pos));
    for (uint i = gl_LocalInvocationIndex; i < IDS; i += gl_WorkGroupSize.x) {
        uint id = UINTS(push.ids).at[ROW_START(push.ids, row) + i];
        if (id < blocks) {
            atomicOr(UINTS(push.marks).at[start + id / 32], 1u << id % 32);
        }
    }
}
