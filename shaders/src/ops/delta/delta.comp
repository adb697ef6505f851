// Some columns of V of each workgroup, along x; a head along y; along z the rows where conversations begin, some for each workgroup, which
// then takes all rows of these conversations, in order. Numbers of S stay with the invocations: of a column, member m of 8 has the key
// channels 4m to 4m + 3 of every 32.
#include "states.glsl"
#include "lanes.glsl"
#include "functions.glsl"

layout(constant_id = 1) const uint K_WIDTH = 1;
layout(constant_id = 2) const uint V_WIDTH = 1;
// Value heads of a key head, or key heads where they are tiled.
layout(constant_id = 3) const uint GROUP = 1;
layout(constant_id = 4) const bool TILED = false;
layout(constant_id = 5) const bool BOUNDED = false;
layout(constant_id = 6) const bool PER_CHANNEL = false;
layout(constant_id = 7) const bool NEGATED = false;
layout(constant_id = 8) const uint ROWS = 1;

PUSH(Operand q; Operand k; Operand v; Operand gate; Operand beta; Operand y; Address a; Address dt; State state; float bound;)

const uint MEMBERS = 8;
const uint COLUMNS = 16;
const uint BLOCKS = (K_WIDTH + 31) / 32;

// Two of each: whoever is ahead writes one while invocations that are behind, by one barrier at most, read the other.
shared vec4 exchanged[2][MEMBERS * COLUMNS];
shared vec4 keys[2][BLOCKS * MEMBERS];
shared vec4 queries[2][BLOCKS * MEMBERS];
shared vec4 decays[2][BLOCKS * MEMBERS];

vec4 s[BLOCKS];
uint head;
uint key_head;
uint member;
uint column;
uint value;

float decay(uint row, uint channel) {
    float a = FLOATS(push.a).at[head];
    float rate = NEGATED ? -a : exp(a);
    uint at = PER_CHANNEL ? head * K_WIDTH + channel : head;
    precise float x = FLOATS(push.gate).at[ROW_START(push.gate, row) + at] + FLOATS(push.dt).at[at];
    precise float scaled = BOUNDED ? rate * x : softplus(x);
    precise float exponent = BOUNDED ? push.bound * sigmoid(scaled) : -(rate * scaled);
    return exp(exponent);
}

// Brings a row's query, key and decays.
void load_row(uint row, uint which) {
    uint query_start = ROW_START(push.q, row) + key_head * K_WIDTH;
    uint key_start = ROW_START(push.k, row) + key_head * K_WIDTH;
    for (uint i = gl_LocalInvocationIndex; i < BLOCKS * MEMBERS; i += gl_WorkGroupSize.x) {
        vec4 query = vec4(0.0);
        vec4 key = vec4(0.0);
        vec4 factor = vec4(0.0);
        [[dont_unroll]] for (uint j = 0; j < 4; j++) {
            uint channel = 4 * i + j;
            if (channel < K_WIDTH) {
                query[j] = FLOATS(push.q).at[query_start + channel];
                key[j] = FLOATS(push.k).at[key_start + channel];
                factor[j] = decay(row, channel);
            }
        }
        queries[which][i] = query;
        keys[which][i] = key;
        decays[which][i] = factor;
    }
}

// The sum of a column's lanes, of which each of its members has four.
float column_sum(vec4 mine, uint which) {
    exchanged[which][gl_LocalInvocationIndex] = mine;
    barrier();
    vec4 lanes[LANE_VECTORS];
    [[unroll]] for (uint i = 0; i < LANE_VECTORS; i++) {
        lanes[i] = exchanged[which][i * COLUMNS + column];
    }
    return joined(lanes);
}

uint place(uint block, uint j) {
    uint channel = block * 32 + member * 4 + j;
    return (push.state.form & 0x7fffffffu) + (head * K_WIDTH + channel) * V_WIDTH + value;
}

bool is_there(uint block, uint j) {
    return value < V_WIDTH && block * 32 + member * 4 + j < K_WIDTH;
}

void load_s(Floats page) {
    [[unroll]] for (uint block = 0; block < BLOCKS; block++) {
        vec4 numbers = vec4(0.0);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (is_there(block, j)) {
                numbers[j] = page.at[place(block, j)];
            }
        }
        s[block] = numbers;
    }
}

void store_s(Floats page) {
    [[unroll]] for (uint block = 0; block < BLOCKS; block++) {
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (is_there(block, j)) {
                page.at[place(block, j)] = s[block][j];
            }
        }
    }
}

void advance(uint row, uint which) {
    precise vec4 lanes = vec4(0.0);
    [[unroll]] for (uint block = 0; block < BLOCKS; block++) {
        precise vec4 scaled = s[block] * decays[which][block * MEMBERS + member];
        precise vec4 product = scaled * keys[which][block * MEMBERS + member];
        s[block] = scaled;
        lanes += product;
    }
    float share = sigmoid(FLOATS(push.beta).at[ROW_START(push.beta, row) + head]);
    float wanted = value < V_WIDTH ? FLOATS(push.v).at[ROW_START(push.v, row) + head * V_WIDTH + value] : 0.0;
    precise float missing = wanted - column_sum(lanes, 0);
    precise float change = share * missing;
    lanes = vec4(0.0);
    [[unroll]] for (uint block = 0; block < BLOCKS; block++) {
        precise vec4 added = keys[which][block * MEMBERS + member] * change;
        precise vec4 number = s[block] + added;
        precise vec4 product = number * queries[which][block * MEMBERS + member];
        s[block] = number;
        lanes += product;
    }
    float result = column_sum(lanes, 1);
    if (member == 0 && value < V_WIDTH) {
        FLOATS(push.y).at[ROW_START(push.y, row) + head * V_WIDTH + value] = result;
    }
}

// The rows of a conversation, from its first one on.
void run(uint first, uint count) {
    RowAt at = ROW_AT(first);
    uint entry = push.state.table + 4 * first;
    uvec2 page = uvec2(STEP.at[entry], STEP.at[entry + 1]);
    if (page == uvec2(0)) {
        if (gl_LocalInvocationIndex == 0) {
            FAIL(0, at.step_row, at.pos)
        }
        return;
    }
    load_s(Floats(page));
    // What a row needs is brought while the row before it is at work; of the row after the last one it is for nothing.
    [[dont_unroll]] for (uint next = first;; next++) {
        if (next < count) {
            load_row(next, next % 2);
        }
        if (next == first) {
            barrier();
            continue;
        }
        advance(next - 1, (next - 1) % 2);
        entry = push.state.table + 4 * (next - 1);
        uvec2 copy = uvec2(STEP.at[entry + 2], STEP.at[entry + 3]);
        if (copy != uvec2(0)) {
            store_s(Floats(copy));
        }
        if (next == count || ROW_AT(next).conv != at.conv) {
            break;
        }
    }
    store_s(Floats(page));
}

void main() {
    uint count = ROW_COUNT;
    uint first = gl_WorkGroupID.z * ROWS;
    if (first >= count) {
        return;
    }
    head = gl_WorkGroupID.y;
    key_head = TILED ? head % GROUP : head / GROUP;
    column = gl_LocalInvocationIndex % COLUMNS;
    member = gl_LocalInvocationIndex / COLUMNS;
    value = gl_WorkGroupID.x * COLUMNS + column;
    for (uint row = first; row < min(first + ROWS, count); row++) {
        if (row == 0 || ROW_AT(row - 1).conv != ROW_AT(row).conv) {
            run(row, count);
        }
    }
}
