// A row of each workgroup.
#include "functions.glsl"
#include "sums.glsl"

layout(constant_id = 1) const uint SCORE = 0;
layout(constant_id = 2) const uint EXPERTS = 1;
layout(constant_id = 3) const uint CHOSEN = 1;
layout(constant_id = 4) const uint GROUPS = 1;
layout(constant_id = 5) const uint GROUPS_KEPT = 1;
layout(constant_id = 6) const bool GIVEN = false;
layout(constant_id = 7) const bool BIASED = false;
layout(constant_id = 8) const bool RENORMALISED = false;

#define SOFTMAX 0
#define SIGMOID 1
#define LANES 32

// Without given ids their operand is that of the logits.
PUSH(Operand logits; Operand given; Operand ids; Operand weights; Address bias; float scale;)

shared float scores[EXPERTS];
// What is chosen by, in the order of floats; 0 is not to be chosen.
shared uint keys[EXPERTS];
shared uint group_keys[GROUPS];
shared float chosen[CHOSEN];
shared float tops[LANES];

void read_logits(uint row, uint me) {
    uint start = ROW_START(push.logits, row);
    for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
        uint bits = UINTS(push.logits).at[start + expert];
        if (!is_finite(bits)) {
            FAIL(0, ROW_AT(row).step_row, 0);
            bits = 0;
        }
        scores[expert] = uintBitsToFloat(bits);
    }
    barrier();
}

// The largest score.
float largest_of(uint me) {
    if (me < LANES) {
        float top = scores[0];
        for (uint expert = me; expert < EXPERTS; expert += LANES) {
            top = max(top, scores[expert]);
        }
        tops[me] = top;
    }
    barrier();
    float largest = tops[0];
    for (uint lane = 1; lane < LANES; lane++) {
        largest = max(largest, tops[lane]);
    }
    return largest;
}

// The sum of all scores.
float total_of(uint me) {
    vec4 lanes = vec4(0.0);
    if (me < TEAM) {
        for (uint first = 4 * me; first < EXPERTS; first += LANES) {
            for (uint at = 0; at < min(EXPERTS - first, 4); at++) {
                lanes[at] += scores[first + at];
            }
        }
    }
    float sum = join_lanes(lanes);
    if (me == 0) {
        tops[0] = sum;
    }
    barrier();
    return tops[0];
}

void score(uint me) {
    if (SCORE != SOFTMAX) {
        for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
            float logit = scores[expert];
            scores[expert] = SCORE == SIGMOID ? sigmoid(logit) : sqrt_softplus(logit);
        }
        barrier();
        return;
    }
    float largest = largest_of(me);
    for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
        scores[expert] = exponential(scores[expert] - largest);
    }
    barrier();
    float total = total_of(me);
    for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
        scores[expert] /= total;
    }
    barrier();
}

void make_keys(uint row, uint me) {
    for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
        float choice = scores[expert];
        if (BIASED) {
            choice += FLOATS(push.bias).at[expert];
        }
        uint bits = floatBitsToUint(choice);
        if (!is_finite(bits)) {
            FAIL(1, ROW_AT(row).step_row, 0);
            bits = 0;
        }
        keys[expert] = ordered(bits);
    }
    barrier();
}

// A group counts as the sum of its best two.
uint group_key(uint group) {
    uint size = EXPERTS / GROUPS;
    uint first = 0;
    uint second = 0;
    for (uint at = 0; at < size; at++) {
        uint key = keys[group * size + at];
        second = max(second, min(first, key));
        first = max(first, key);
    }
    return ordered(floatBitsToUint(of_ordered(first) + of_ordered(second)));
}

// Takes the experts of all groups but the best from the choice.
void drop_groups(uint me) {
    for (uint group = me; group < GROUPS; group += gl_WorkGroupSize.x) {
        group_keys[group] = group_key(group);
    }
    barrier();
    for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
        uint group = expert / (EXPERTS / GROUPS);
        uint mine = group_keys[group];
        uint rank = 0;
        for (uint other = 0; other < GROUPS; other++) {
            uint key = group_keys[other];
            rank += key > mine || (key == mine && other < group) ? 1 : 0;
        }
        if (rank >= GROUPS_KEPT) {
            keys[expert] = 0;
        }
    }
    barrier();
}

// Each expert counts those that come before it.
void choose(uint row, uint me) {
    uint ids = ROW_START(push.ids, row);
    for (uint expert = me; expert < EXPERTS; expert += gl_WorkGroupSize.x) {
        uint mine = keys[expert];
        uint rank = 0;
        for (uint other = 0; other < EXPERTS; other++) {
            uint key = keys[other];
            rank += key > mine || (key == mine && other < expert) ? 1 : 0;
        }
        if (rank < CHOSEN && mine != 0) {
            UINTS(push.ids).at[ids + rank] = expert;
            chosen[rank] = scores[expert];
        }
    }
    barrier();
}

void take_given(uint row, uint me) {
    uint given = ROW_START(push.given, row);
    uint ids = ROW_START(push.ids, row);
    for (uint rank = me; rank < CHOSEN; rank += gl_WorkGroupSize.x) {
        uint id = UINTS(push.given).at[given + rank];
        if (id >= EXPERTS) {
            FAIL(2, ROW_AT(row).step_row, id);
            id = 0;
        }
        UINTS(push.ids).at[ids + rank] = id;
        chosen[rank] = scores[id];
    }
    barrier();
}

void weigh(uint row, uint me) {
    float divisor = 1.0;
    if (RENORMALISED) {
        float total = 0.0;
        for (uint rank = 0; rank < CHOSEN; rank++) {
            total += chosen[rank];
        }
        divisor = SCORE == SOFTMAX ? total : total + 1e-20;
    }
    uint weights = ROW_START(push.weights, row);
    for (uint rank = me; rank < CHOSEN; rank += gl_WorkGroupSize.x) {
        precise float weight = chosen[rank] / divisor * push.scale;
        FLOATS(push.weights).at[weights + rank] = weight;
    }
}

void main() {
    uint row = gl_WorkGroupID.x;
    uint me = gl_LocalInvocationIndex;
    if (row >= ROW_COUNT) {
        return;
    }
    read_logits(row, me);
    score(me);
    if (GIVEN) {
        take_given(row, me);
    } else {
        make_keys(row, me);
        if (GROUPS > 1) {
            drop_groups(me);
        }
        choose(row, me);
    }
    weigh(row, me);
}
