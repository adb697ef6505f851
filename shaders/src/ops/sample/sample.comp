// A row of each workgroup: the highest logit's id, or one that is drawn.
//
// Ids that may be drawn are those above a bound: a logit, and the last id among equal ones. `top_k` is where the count of ids above a
// bound reaches k, `top_p` where the sum of their units reaches a share; both are found without sorting, from the bits of logits, highest
// first. Then an id is found by a sum of units in the order of ids. Sums are whole numbers of 64 bits, so that the order in which
// invocations add to them does not matter.
#include "functions.glsl"

layout(constant_id = 1) const uint VOCAB = 1;

#define SAMPLING_WORDS 8

PUSH(Operand logits; Operand y; uint sampling;)

// Bins of a digit of 6 bits, and copies of each, so that invocations do not wait for each other; or a word for each invocation.
#define BITS 6
#define BINS 64
#define COPIES 16
#define WORDS 1024
// Parts of a range of ids.
#define PARTS 32

#include "wide.glsl"

shared uint low_words[WORDS];
shared uint high_words[WORDS];
shared uvec2 sums[BINS];

uint me;
uint first_logit;
float largest;
float temperature;

// The bound: a logit's place in the order of floats, and the last id that has it.
uint bound_key = 0;
uint bound_id = 0xffffffffu;
// The fewest units of an id that may be drawn.
uint least_units = 0;

// Logits.

// A place in the order of floats; a NaN has the highest.
uint key_of(uint id) {
    uint bits = UINTS(push.logits).at[first_logit + id];
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0xffffffffu : ordered(bits);
}

bool is_kept(uint key, uint id) {
    return key > bound_key || (key == bound_key && id <= bound_id);
}

// The probability of a logit in units: 2^31 of the largest one's.
uint units_of(uint key) {
    precise float distance = of_ordered(key) - largest;
    if (distance == 0.0) {
        return 0x80000000u;
    }
    // Below e^-64 there is not half a unit.
    if (!(distance / temperature > -64.0)) {
        return 0;
    }
    float units = exponential(quotient(distance, temperature)) * 2147483648.0;
    float whole = floor(units);
    return uint(whole) + (units - whole >= 0.5 ? 1 : 0);
}

// The best logit's place and the lowest id of it.
uvec2 best_of_all() {
    uvec2 best = uvec2(0);
    for (uint base = me; base < VOCAB; base += 4 * gl_WorkGroupSize.x) {
        // Four at a time, since one would wait for the other.
        uint keys[4];
        [[unroll]] for (uint at = 0; at < 4; at++) {
            uint id = base + at * gl_WorkGroupSize.x;
            keys[at] = id < VOCAB ? key_of(id) : 0;
        }
        [[unroll]] for (uint at = 0; at < 4; at++) {
            if (keys[at] > best.x) {
                best = uvec2(keys[at], base + at * gl_WorkGroupSize.x);
            }
        }
    }
    low_words[me] = best.x;
    high_words[me] = best.y;
    barrier();
    for (uint other = gl_WorkGroupSize.x / 2; other > 0; other /= 2) {
        if (me < other) {
            uint key = low_words[me + other];
            uint id = high_words[me + other];
            if (key > low_words[me] || (key == low_words[me] && id < high_words[me])) {
                low_words[me] = key;
                high_words[me] = id;
            }
        }
        barrier();
    }
    best = uvec2(low_words[0], high_words[0]);
    barrier();
    return best;
}

// What an id counts in a sum.
#define EQUAL 0
#define UNITS 1

uint weight_of(uint key, uint id, uint kind) {
    if (kind == EQUAL) {
        return key == bound_key && id <= bound_id ? 1 : 0;
    }
    uint units = is_kept(key, id) ? units_of(key) : 0;
    return units >= least_units ? units : 0;
}

// Sums of the parts of a range of ids, into `sums`.
void measure(uint first, uint count, uint kind) {
    uint members = gl_WorkGroupSize.x / PARTS;
    uint size = (count + PARTS - 1) / PARTS;
    uint begin = min(me / members * size, count);
    uint end = min(begin + size, count);
    uvec2 sum = uvec2(0);
    for (uint at = begin + me % members; at < end; at += members) {
        sum = plus(sum, uvec2(weight_of(key_of(first + at), first + at, kind), 0));
    }
    low_words[me] = sum.x;
    high_words[me] = sum.y;
    barrier();
    if (me < PARTS) {
        sum = uvec2(0);
        for (uint at = me * members; at < (me + 1) * members; at++) {
            sum = plus(sum, uvec2(low_words[at], high_words[at]));
        }
        sums[me] = sum;
    }
    barrier();
}

// The sum of the parts.
uvec2 measured() {
    uvec2 sum = uvec2(0);
    for (uint part = 0; part < PARTS; part++) {
        sum = plus(sum, sums[part]);
    }
    return sum;
}

// The id with which the sum in the order of ids exceeds `left`, after `measure` of all of them.
uint find(uvec2 left, uint kind) {
    uint first = 0;
    uint count = VOCAB;
    while (true) {
        uint size = (count + PARTS - 1) / PARTS;
        uint part = 0;
        while (part < PARTS - 1 && !less(left, sums[part])) {
            left = minus(left, sums[part]);
            part++;
        }
        uint skipped = min(part * size, count - 1);
        first += skipped;
        count = min(size, count - skipped);
        if (count <= 1) {
            return first;
        }
        measure(first, count, kind);
    }
}

// Adds to a bin of the invocation's copy.
void add_to_bin(uint bin, uint weight) {
    uint at = bin * COPIES + me % COPIES;
    uint before = atomicAdd(low_words[at], weight);
    if (before + weight < before) {
        atomicAdd(high_words[at], 1);
    }
}

// The bins of the digit at `shift` of the keys that begin with `prefix` above it, into `sums`.
void fill_bins(uint prefix, uint shift, bool counted) {
    for (uint at = me; at < WORDS; at += gl_WorkGroupSize.x) {
        low_words[at] = 0;
        high_words[at] = 0;
    }
    barrier();
    for (uint id = me; id < VOCAB; id += gl_WorkGroupSize.x) {
        uint key = key_of(id);
        // In two shifts, since the first digit has nothing above it.
        if (((key ^ prefix) >> shift >> (BITS - 1) >> 1) == 0 && is_kept(key, id)) {
            uint weight = counted ? 1 : units_of(key);
            if (weight > 0) {
                add_to_bin(key >> shift & (BINS - 1), weight);
            }
        }
    }
    barrier();
    for (uint bin = me; bin < BINS; bin += gl_WorkGroupSize.x) {
        uvec2 sum = uvec2(0);
        for (uint at = bin * COPIES; at < (bin + 1) * COPIES; at++) {
            sum = plus(sum, uvec2(low_words[at], high_words[at]));
        }
        sums[bin] = sum;
    }
    barrier();
}

// The place at which the sum, from the highest logit down, reaches `wanted`, of which is left what equal logits must reach.
uint reached(inout uvec2 wanted, bool counted) {
    uint prefix = 0;
    // The first digit has fewer bits than the others.
    for (int shift = 30; shift >= 0; shift -= BITS) {
        fill_bins(prefix, uint(shift), counted);
        uint bin = BINS - 1;
        while (bin > 0 && less(sums[bin], wanted)) {
            wanted = minus(wanted, sums[bin]);
            bin--;
        }
        prefix |= bin << shift;
    }
    return prefix;
}

// Moves the bound down to a place, and to the id of the `count`th of the equal logits there.
void bound(uint key, uint count) {
    bound_id = key == bound_key ? bound_id : 0xffffffffu;
    bound_key = key;
    measure(0, VOCAB, EQUAL);
    bound_id = find(uvec2(count - 1, 0), EQUAL);
}

void keep_top_k(uint count) {
    uvec2 wanted = uvec2(count, 0);
    uint key = reached(wanted, true);
    bound(key, wanted.x);
}

void keep_top_p(float share) {
    measure(0, VOCAB, UNITS);
    uvec2 wanted = share_of(share, measured());
    uint key = reached(wanted, false);
    bound(key, count_to(wanted, units_of(key)));
}

// An id by the step's words from `entry` on; `best` where none is kept.
uint drawn(uint row, uint entry, uint best) {
    uint top_k = STEP.at[entry + 1];
    float top_p = uintBitsToFloat(STEP.at[entry + 2]);
    float min_p = uintBitsToFloat(STEP.at[entry + 3]);
    if (top_k > 0 && top_k < VOCAB) {
        keep_top_k(top_k);
    }
    if (top_p < 1.0) {
        keep_top_p(top_p);
    }
    least_units = min_p > 1.0 ? 0xffffffffu : uint(ceil(max(min_p, 0.0) * 2147483648.0));
    measure(0, VOCAB, UNITS);
    uvec2 total = measured();
    if (total == uvec2(0)) {
        return best;
    }
    uvec2 seed = uvec2(STEP.at[entry + 4], STEP.at[entry + 5]);
    return find(upper_product(random(seed, ROW_AT(row).pos), total), UNITS);
}

void main() {
    uint row = gl_WorkGroupID.x;
    me = gl_LocalInvocationIndex;
    if (row >= ROW_COUNT) {
        return;
    }
    first_logit = ROW_START(push.logits, row);
    uint entry = push.sampling + SAMPLING_WORDS * row;
    temperature = uintBitsToFloat(STEP.at[entry]);
    uvec2 best = best_of_all();
    uint id = best.y;
    largest = of_ordered(best.x);
    if (best.x == 0xffffffffu || !is_finite(floatBitsToUint(largest))) {
        if (me == 0) {
            FAIL(best.x == 0xffffffffu ? 0 : 1, ROW_AT(row).step_row, 0);
        }
        id = 0;
    } else if (temperature != 0.0) {
        id = drawn(row, entry, best.y);
    }
    if (me == 0) {
        UINTS(push.y).at[ROW_START(push.y, row)] = id;
    }
}
