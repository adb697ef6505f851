// Puts pairs of a row and a rank in the order of their experts, and makes groups of them: of one expert each, of so many pairs at most.
// One workgroup does it all. The order within an expert differs from run to run, which changes no bit: a pair is computed by itself.

layout(constant_id = 1) const uint EXPERTS = 1;
layout(constant_id = 2) const uint RANKS = 1;
// Pairs of a group, at most.
layout(constant_id = 3) const uint MOST = 16;
// Experts of an invocation.
layout(constant_id = 4) const uint OWN = 1;

// `groups`: their number, then of each the place of its first pair, how many it has and the expert. `pairs`: row times RANKS plus rank.
PUSH(Operand ids; Address groups; Address pairs;)

shared uint counts[1024];
// Pairs and groups of the experts up to an invocation's, its own included.
shared uvec2 before[256];

uint expert_of(uint pair) {
    return UINTS(push.ids).at[ROW_START(push.ids, pair / RANKS) + pair % RANKS];
}

uint groups_of(uint count) {
    return (count + MOST - 1) / MOST;
}

// Counts the pairs of each expert.
void count_pairs(uint me, uint pairs) {
    for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
        counts[expert] = 0;
    }
    barrier();
    for (uint pair = me; pair < pairs; pair += gl_WorkGroupSize.x) {
        uint expert = expert_of(pair);
        if (expert < EXPERTS) {
            atomicAdd(counts[expert], 1);
        } else {
            FAIL(0, ROW_AT(pair / RANKS).step_row, expert);
        }
    }
    barrier();
}

// Pairs and groups of the experts before this invocation's.
uvec2 sums_before(uint me) {
    uvec2 own = uvec2(0);
    for (uint expert = me * OWN; expert < min(me * OWN + OWN, EXPERTS); expert++) {
        own += uvec2(counts[expert], groups_of(counts[expert]));
    }
    before[me] = own;
    barrier();
    for (uint step = 1; step < gl_WorkGroupSize.x; step *= 2) {
        uvec2 sum = before[me];
        if (me >= step) {
            sum += before[me - step];
        }
        barrier();
        before[me] = sum;
        barrier();
    }
    return before[me] - own;
}

void main() {
    uint me = gl_LocalInvocationIndex;
    uint pairs = ROW_COUNT * RANKS;
    count_pairs(me, pairs);
    uvec2 at = sums_before(me);
    Uints groups = UINTS(push.groups);
    if (me == gl_WorkGroupSize.x - 1) {
        groups.at[0] = before[me].y;
    }
    for (uint expert = me * OWN; expert < min(me * OWN + OWN, EXPERTS); expert++) {
        uint count = counts[expert];
        for (uint done = 0; done < count; done += MOST) {
            groups.at[1 + 3 * at.y] = at.x + done;
            groups.at[2 + 3 * at.y] = min(MOST, count - done);
            groups.at[3 + 3 * at.y] = expert;
            at.y++;
        }
        // From now on the place of the expert's next pair.
        counts[expert] = at.x;
        at.x += count;
    }
    barrier();
    for (uint pair = me; pair < pairs; pair += gl_WorkGroupSize.x) {
        uint expert = expert_of(pair);
        if (expert < EXPERTS) {
            UINTS(push.pairs).at[atomicAdd(counts[expert], 1)] = pair;
        }
    }
}
