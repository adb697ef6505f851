// Some heads of a K/V head of each workgroup, along x; a row along y. Without WALK a split along z, whose part goes to memory for
// `attend_join`; with it all splits in order, and the results. Either way every number is made by the same operations.

vec4 key(uvec4 place, uint col) {
    return place.w != 0 ? row_quad(place.xy, place.z, rounded, k_col + col, K_WIDTH - col) : vec4(0.0);
}

// The scores of the located rows: a team of 8 makes two at a time, of every head.
void score() {
    uint me = gl_LocalInvocationIndex;
    uint team = me / MEMBERS;
    uint member = me % MEMBERS;
    for (uint first = 0; first < SPLIT; first += 2 * TEAMS) {
        precise vec4 near[TOGETHER];
        precise vec4 far[TOGETHER];
        [[unroll]] for (uint head = 0; head < TOGETHER; head++) {
            near[head] = vec4(0.0);
            far[head] = vec4(0.0);
        }
        uvec4 near_place = places[first + team];
        uvec4 far_place = places[first + TEAMS + team];
        for (uint col = 4 * member; col < K_WIDTH; col += 4 * MEMBERS) {
            vec4 near_key = key(near_place, col);
            vec4 far_key = key(far_place, col);
            [[unroll]] for (uint head = 0; head < TOGETHER; head++) {
                vec4 query = queries[head * K_QUADS + col / 4];
                precise vec4 near_product = query * near_key;
                precise vec4 far_product = query * far_key;
                near[head] += near_product;
                far[head] += far_product;
            }
        }
        [[unroll]] for (uint head = 0; head < TOGETHER; head++) {
            exchanged[team * APART + member] = near[head];
            exchanged[(TEAMS + team) * APART + member] = far[head];
            barrier();
            if (me < 2 * TEAMS) {
                vec4 lanes[LANE_VECTORS];
                [[unroll]] for (uint i = 0; i < LANE_VECTORS; i++) {
                    lanes[i] = exchanged[me * APART + i];
                }
                precise float scaled = joined(lanes) * push.scale;
                scores[head * SPLIT + first + me] = places[first + me].w != 0 ? scaled : LOWEST;
            }
            barrier();
        }
    }
}

// The weights of the located rows, their largest score and their sum, which are taken into the softmax: 32 invocations a head.
void weigh() {
    uint head = gl_LocalInvocationIndex / 32;
    uint lane = gl_LocalInvocationIndex % 32;
    float largest = LOWEST;
    if (head < TOGETHER) {
        for (uint i = 0; i < SPLIT; i++) {
            largest = max(largest, scores[head * SPLIT + i]);
        }
        for (uint i = lane; i < SPLIT; i += 32) {
            precise float weight = exp(scores[head * SPLIT + i] - largest);
            weights[head * SPLIT + i] = places[i].w != 0 ? weight : 0.0;
        }
    }
    barrier();
    if (head < TOGETHER && lane == 0) {
        precise vec4 four = vec4(0.0);
        for (uint i = head * SPLIT; i < (head + 1) * SPLIT; i += 4) {
            four += vec4(weights[i], weights[i + 1], weights[i + 2], weights[i + 3]);
        }
        precise vec2 two = four.xy + four.zw;
        precise float sum = two.x + two.y;
        if (WALK) {
            Softmax all = Softmax(softmax[head].x, softmax[head].y);
            factors[head] = take_part(all, largest, sum);
            softmax[head] = vec2(all.largest, all.sum);
        } else {
            softmax[head] = vec2(largest, sum);
        }
    }
}

// Where a head's part of the split along z stands.
uint part_start(uint head) {
    return ((gl_WorkGroupID.y * HEADS + head0 + head) * push.slots + gl_WorkGroupID.z) * (V_WIDTH + 2);
}

// What becomes of four columns of a head's weighted sum.
void take_values(uint head, uint quad, vec4 part) {
    if (WALK) {
        uint i = head * V_QUADS + quad;
        precise vec4 before = values[i] * factors[head].x;
        precise vec4 now = part * factors[head].y;
        precise vec4 sum = before + now;
        values[i] = sum;
    } else if (head < heads) {
        uint start = part_start(head) + 4 * quad;
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (4 * quad + j < V_WIDTH) {
                FLOATS(push.parts).at[start + j] = part[j];
            }
        }
    }
}

// The weighted sum of the located rows' V: rows 16n to 16n + 15 one after the other, then the four sums.
void sum_values() {
    uint me = gl_LocalInvocationIndex;
    uint part = me / 32;
    for (uint first = 0; first < V_QUADS; first += 32) {
        uint quad = first + me % 32;
        precise vec4 sums[TOGETHER];
        [[unroll]] for (uint head = 0; head < TOGETHER; head++) {
            sums[head] = vec4(0.0);
        }
        if (quad < V_QUADS) {
            for (uint i = part * 16; i < part * 16 + 16; i++) {
                uvec4 place = places[i];
                if (place.w != 0) {
                    vec4 value = row_quad(place.xy, place.z, rounded, v_col + 4 * quad, V_WIDTH - 4 * quad);
                    [[unroll]] for (uint head = 0; head < TOGETHER; head++) {
                        precise vec4 product = weights[head * SPLIT + i] * value;
                        sums[head] += product;
                    }
                }
            }
        }
        [[unroll]] for (uint head = 0; head < TOGETHER; head++) {
            exchanged[me] = sums[head];
            barrier();
            if (part == 0 && quad < V_QUADS) {
                precise vec4 low = exchanged[me] + exchanged[me + 32];
                precise vec4 high = exchanged[me + 64] + exchanged[me + 96];
                precise vec4 sum = low + high;
                take_values(head, quad, sum);
            }
            barrier();
        }
    }
}

// All of a split.
void part(uvec2 first_seen, uvec2 second_seen, uint split) {
    uint count = splits_of(first_seen);
    bool first = split < count;
    uvec2 seen = first ? first_seen : second_seen;
    locate(first ? 0 : 1, seen, (seen.x / SPLIT + split - (first ? 0 : count)) * SPLIT);
    score();
    weigh();
    sum_values();
}

void begin() {
    if (gl_LocalInvocationIndex < 4) {
        softmax[gl_LocalInvocationIndex] = vec2(LOWEST, 0.0);
    }
    for (uint i = gl_LocalInvocationIndex; WALK && i < TOGETHER * V_QUADS; i += gl_WorkGroupSize.x) {
        values[i] = vec4(0.0);
    }
}

// The results, from the sums over all splits.
void finish() {
    uint start = ROW_START(push.y, row) + head0 * V_WIDTH;
    for (uint i = gl_LocalInvocationIndex; i < heads * V_WIDTH; i += gl_WorkGroupSize.x) {
        uint head = i / V_WIDTH;
        uint col = i % V_WIDTH;
        Softmax all = Softmax(softmax[head].x, softmax[head].y);
        precise float number = values[head * V_QUADS + col / 4][col % 4];
        if (SINK) {
            number *= take_sink(all, FLOATS(push.sinks).at[head0 + head]);
        }
        precise float share = number / all.sum;
        FLOATS(push.y).at[start + i] = all.sum == 0.0 ? 0.0 : share;
    }
}

void main() {
    row = push.row0 + gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    at = ROW_AT(row);
    uvec2 first_seen = seen_0(at.pos);
    uvec2 second_seen = seen_1(at.pos);
    uint splits = splits_of(first_seen) + splits_of(second_seen);
    uint sets = (GROUP + TOGETHER - 1) / TOGETHER;
    uint set = gl_WorkGroupID.x % sets;
    head0 = gl_WorkGroupID.x / sets * GROUP + set * TOGETHER;
    heads = min(TOGETHER, GROUP - set * TOGETHER);
    if (gl_WorkGroupID.x == 0 && gl_WorkGroupID.z == 0 && gl_LocalInvocationIndex == 0) {
        if (LIST_0 == 0) {
            check_mask(push.state_0, 0, first_seen);
        }
        if (SOURCES > 1 && LIST_1 == 0) {
            check_mask(push.state_1, 1, second_seen);
        }
    }
    if (!WALK && gl_WorkGroupID.z >= splits) {
        return;
    }
    load_queries();
    begin();
    barrier();
    uint first = WALK ? 0 : gl_WorkGroupID.z;
    uint last = WALK ? splits : first + 1;
    [[dont_unroll]] for (uint split = first; split < last; split++) {
        part(first_seen, second_seen, split);
    }
    barrier();
    if (WALK) {
        finish();
    } else if (gl_LocalInvocationIndex < heads) {
        uint end = part_start(gl_LocalInvocationIndex) + V_WIDTH;
        FLOATS(push.parts).at[end] = softmax[gl_LocalInvocationIndex].x;
        FLOATS(push.parts).at[end + 1] = softmax[gl_LocalInvocationIndex].y;
    }
}
