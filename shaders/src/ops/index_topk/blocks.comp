// A block of each invocation, along x; a row along y: the key of the block's best row. The newest block beats all.

PUSH(Address keys; Address blocks; uint row0; uint slots; uint block_slots;)

void main() {
    uint row = push.row0 + gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    uint seen = seen_at(ROW_AT(row).pos);
    uint block = gl_GlobalInvocationID.x;
    if (block >= blocks_of(seen)) {
        return;
    }
    uint best = 0;
    for (uint index = block * BLOCK; index < min((block + 1) * BLOCK, seen); index++) {
        best = max(best, UINTS(push.keys).at[gl_WorkGroupID.y * push.slots + index]);
    }
    UINTS(push.blocks).at[gl_WorkGroupID.y * push.block_slots + block] = block == (seen - 1) / BLOCK ? ~0u : best;
}
