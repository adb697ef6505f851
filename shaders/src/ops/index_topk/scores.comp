// Sixteen rows of the state of each workgroup, along x, a team of 8 for each; a row of the step along y.
#include "rows.glsl"
#include "lanes.glsl"

layout(constant_id = 3) const uint HEADS = 1;
layout(constant_id = 4) const uint WIDTH = 1;
layout(constant_id = 5) const bool WEIGHTED = false;
layout(constant_id = 6) const bool GIVEN = false;
// Heads at a time: 1, 2 or 4.
layout(constant_id = 7) const uint TOGETHER = 1;

PUSH(Operand q; Operand w; Address keys; Address marks; State state; float scale; uint row0; uint slots; uint words;)

const uint MEMBERS = 8;
const uint TEAMS = 16;
const uint APART = MEMBERS + 1;
const uint BLOCKS = (WIDTH + 31) / 32;
const uint QUADS = BLOCKS * MEMBERS;

shared vec4 queries[TOGETHER * QUADS];
shared vec4 exchanged[TOGETHER * TEAMS * APART];
shared float products[TOGETHER * TEAMS];
shared uint wanted_teams;

vec4 numbers[BLOCKS];
RowAt at;
uint row;
uint team;
uint member;

bool is_marked(uint index) {
    uint block = index / BLOCK;
    return (UINTS(push.marks).at[gl_WorkGroupID.y * push.words + block / 32] >> block % 32 & 1) == 1;
}

void load_key(uint index) {
    uvec2 page = uvec2(page_of(STEP, push.state, at.conv, index));
    uint word = row_word(push.state, index);
    [[unroll]] for (uint block = 0; block < BLOCKS; block++) {
        uint col = block * 32 + member * 4;
        numbers[block] = col < WIDTH ? row_quad(page, word, is_half(push.state), col, WIDTH - col) : vec4(0.0);
    }
}

void load_queries(uint head0) {
    uint start = ROW_START(push.q, row) + head0 * WIDTH;
    for (uint i = gl_LocalInvocationIndex; i < TOGETHER * QUADS; i += gl_WorkGroupSize.x) {
        uint head = i / QUADS;
        uint col = i % QUADS * 4;
        vec4 query = vec4(0.0);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (head0 + head < HEADS && col + j < WIDTH) {
                query[j] = FLOATS(push.q).at[start + head * WIDTH + col + j];
            }
        }
        queries[i] = query;
    }
}

// What some heads add to the score, each in `products`.
void multiply(uint head0) {
    load_queries(head0);
    barrier();
    [[unroll]] for (uint head = 0; head < TOGETHER; head++) {
        precise vec4 lanes = vec4(0.0);
        [[unroll]] for (uint block = 0; block < BLOCKS; block++) {
            precise vec4 product = queries[head * QUADS + block * MEMBERS + member] * numbers[block];
            lanes += product;
        }
        exchanged[(head * TEAMS + team) * APART + member] = lanes;
    }
    barrier();
    if (member < TOGETHER && head0 + member < HEADS) {
        vec4 lanes[LANE_VECTORS];
        [[unroll]] for (uint i = 0; i < LANE_VECTORS; i++) {
            lanes[i] = exchanged[(member * TEAMS + team) * APART + i];
        }
        precise float product = push.scale * joined(lanes);
        // Not `max`, which would make a number of what is not one.
        product = product < 0.0 ? 0.0 : product;
        if (WEIGHTED) {
            product *= FLOATS(push.w).at[ROW_START(push.w, row) + head0 + member];
        }
        products[team * TOGETHER + member] = product;
    }
    barrier();
}

uint key_of(float score, uint index) {
    uint bits = floatBitsToUint(score);
    if ((bits & 0x7f800000u) == 0x7f800000u) {
        FAIL(1, at.step_row, index)
    }
    return (bits >> 31) == 1 ? ~bits : bits | 0x80000000u;
}

void main() {
    row = push.row0 + gl_WorkGroupID.y;
    if (row >= ROW_COUNT) {
        return;
    }
    at = ROW_AT(row);
    uint seen = seen_at(at.pos);
    if (gl_WorkGroupID.x * TEAMS >= seen) {
        return;
    }
    team = gl_LocalInvocationIndex / MEMBERS;
    member = gl_LocalInvocationIndex % MEMBERS;
    uint index = gl_WorkGroupID.x * TEAMS + team;
    bool wanted = index < seen && (!GIVEN || is_marked(index));
    if (wanted && !has_row(STEP, push.state, at.conv, index)) {
        FAIL(0, at.step_row, index)
        wanted = false;
    }
    if (gl_LocalInvocationIndex == 0) {
        wanted_teams = 0;
    }
    barrier();
    if (wanted && member == 0) {
        atomicOr(wanted_teams, 1);
    }
    [[unroll]] for (uint block = 0; block < BLOCKS; block++) {
        numbers[block] = vec4(0.0);
    }
    if (wanted) {
        load_key(index);
    }
    barrier();
    precise float score = 0.0;
    // A workgroup of rows that no candidate names has nothing to multiply.
    for (uint head0 = 0; wanted_teams != 0 && head0 < HEADS; head0 += TOGETHER) {
        multiply(head0);
        for (uint i = 0; i < min(TOGETHER, HEADS - head0); i++) {
            score += products[team * TOGETHER + i];
        }
    }
    if (member == 0 && index < seen) {
        UINTS(push.keys).at[gl_WorkGroupID.y * push.slots + index] = wanted ? key_of(score, index) : 0;
    }
}
