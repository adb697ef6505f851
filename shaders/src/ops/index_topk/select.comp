// A row of each workgroup, along y: lists the K largest keys, the lower index among equals, in ascending order of the index.

layout(constant_id = 3) const uint K = 1;
// Numbers of the list.
layout(constant_id = 4) const uint WIDTH = 1;
// Whether keys are those of blocks, and whether an index stands for its positions.
layout(constant_id = 5) const bool OF_BLOCKS = false;
layout(constant_id = 6) const bool EXPAND = false;

PUSH(Operand list; Address keys; uint row0; uint slots;)

const uint MOST = 256;
const uint BINS = 256;

shared uint counts[BINS];
shared uint sums[16];
shared uint digit;
shared uint below;
shared uvec2 before[MOST];

uint start;
uint count;

uint key(uint i) {
    return UINTS(push.keys).at[start + i];
}

// Counts the keys that begin like `prefix`, by the 8 bits that follow.
void count_digits(uint prefix, uint shift) {
    for (uint i = gl_LocalInvocationIndex; i < BINS; i += gl_WorkGroupSize.x) {
        counts[i] = 0;
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < count; i += gl_WorkGroupSize.x) {
        uint of = key(i);
        if (of != 0 && (shift == 24 || of >> (shift + 8) == prefix)) {
            atomicAdd(counts[of >> shift & 255u], 1);
        }
    }
    barrier();
    if (gl_LocalInvocationIndex < 16) {
        uint sum = 0;
        for (uint i = 0; i < 16; i++) {
            sum += counts[gl_LocalInvocationIndex * 16 + i];
        }
        sums[gl_LocalInvocationIndex] = sum;
    }
    barrier();
}

// The largest digit with at least `wanted` keys that have it or a larger one, if any; and how many of them have it.
void choose_digit(uint wanted) {
    if (gl_LocalInvocationIndex == 0) {
        uint left = wanted;
        uint group = 16;
        while (group > 0 && sums[group - 1] < left) {
            group--;
            left -= sums[group];
        }
        uint bin = group * 16;
        while (group > 0 && bin > (group - 1) * 16 && counts[bin - 1] < left) {
            bin--;
            left -= counts[bin];
        }
        digit = bin - 1;
        below = left;
    }
    barrier();
}

// The smallest key that is listed, and how many with that key are; all of them where there are not more than K: (0, 0).
uvec2 threshold() {
    uint prefix = 0;
    uint wanted = K;
    for (uint shift = 24;; shift -= 8) {
        count_digits(prefix, shift);
        choose_digit(wanted);
        uint found = digit;
        wanted = below;
        barrier();
        if (found == ~0u) {
            return uvec2(0);
        }
        prefix = prefix << 8 | found;
        if (shift == 0) {
            return uvec2(prefix, wanted);
        }
    }
}

// The sums of all invocations before, and of all.
uvec2 sum_before(uvec2 mine, out uvec2 all) {
    uint me = gl_LocalInvocationIndex;
    before[me] = mine;
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
    all = before[gl_WorkGroupSize.x - 1];
    return before[me] - mine;
}

void put(uint at, uint number) {
    if (at < WIDTH) {
        UINTS(push.list).at[at + ROW_START(push.list, push.row0 + gl_WorkGroupID.y)] = number;
    }
}

void list_one(uint place, uint index) {
    if (!EXPAND) {
        put(place, index);
        return;
    }
    for (uint i = 0; i < STRIDE; i++) {
        put(place * STRIDE + i, index * STRIDE + i);
    }
}

void main() {
    uint row = push.row0 + gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    uint pos = ROW_AT(row).pos;
    uint seen = seen_at(pos);
    start = gl_WorkGroupID.y * push.slots;
    count = OF_BLOCKS ? blocks_of(seen) : seen;
    uvec2 least = threshold();
    // Each invocation takes a run of keys, so that places follow from sums over invocations.
    uint each = (count + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
    uint first = gl_LocalInvocationIndex * each;
    uint end = min(first + each, count);
    uvec2 mine = uvec2(0);
    for (uint i = first; i < end; i++) {
        uint of = key(i);
        mine += uvec2(of > least.x ? 1 : 0, of == least.x ? 1 : 0);
    }
    uvec2 all;
    uvec2 passed = sum_before(mine, all);
    for (uint i = first; i < end; i++) {
        uint of = key(i);
        uint place = passed.x + min(passed.y, least.y);
        if (of > least.x) {
            list_one(place, i);
            passed.x++;
        } else if (of == least.x) {
            if (passed.y < least.y) {
                list_one(place, i);
            }
            passed.y++;
        }
    }
    uint listed = all.x + min(all.y, least.y);
    if (EXPAND) {
        listed *= STRIDE;
        uint rest = pos + 1 - seen * STRIDE;
        for (uint i = gl_LocalInvocationIndex; i < rest; i += gl_WorkGroupSize.x) {
            put(listed + i, seen * STRIDE + i);
        }
        listed += rest;
    }
    for (uint i = listed + gl_LocalInvocationIndex; i < WIDTH; i += gl_WorkGroupSize.x) {
        put(i, ~0u);
    }
}
