// What a workgroup of `attend` holds, and how it finds the rows of a split.
#include "rows.glsl"
#include "lanes.glsl"

// Heads of a workgroup: 1, 2 or 4.
layout(constant_id = 17) const uint TOGETHER = 1;
layout(constant_id = 18) const bool WALK = false;

PUSH(Operand q; Operand y; Address parts; Operand list_0; Operand list_1; State state_0; State state_1; Address sinks; float scale;
    uint row0; uint slots;)

const uint K_QUADS = (K_WIDTH + 3) / 4;
const uint V_QUADS = (V_WIDTH + 3) / 4;
const uint MEMBERS = 8;
const uint TEAMS = 16;
// Teams lie a vector apart, so that one invocation's reads of a team fall on other banks than its neighbour's.
const uint APART = MEMBERS + 1;

shared vec4 queries[TOGETHER * K_QUADS];
shared vec4 values[WALK ? TOGETHER * V_QUADS : 1];
// The rows of a split: page, word where the row begins, whether there is one.
shared uvec4 places[SPLIT];
shared float scores[TOGETHER * SPLIT];
shared float weights[TOGETHER * SPLIT];
shared vec4 exchanged[2 * TEAMS * APART];
shared vec2 factors[4];
shared vec2 softmax[4];

// The row, the workgroup's heads, and the source of the split at hand.
RowAt at;
uint row;
uint head0;
uint heads;
bool rounded;
uint k_col;
uint v_col;

void load_queries() {
    uint start = ROW_START(push.q, row) + head0 * K_WIDTH;
    for (uint i = gl_LocalInvocationIndex; i < TOGETHER * K_QUADS; i += gl_WorkGroupSize.x) {
        uint head = i / K_QUADS;
        uint col = i % K_QUADS * 4;
        vec4 numbers = vec4(0.0);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (head < heads && col + j < K_WIDTH) {
                numbers[j] = FLOATS(push.q).at[start + head * K_WIDTH + col + j];
            }
        }
        queries[i] = numbers;
    }
}

// Says what a mask lets through and is not stored.
void check_mask(State state, uint source, uvec2 seen) {
    if (seen.x >= seen.y) {
        return;
    }
    if (!has_row(STEP, state, at.conv, seen.x)) {
        FAIL(source * 3, at.step_row, seen.x)
    } else if (!has_row(STEP, state, at.conv, seen.y - 1)) {
        FAIL(source * 3, at.step_row, seen.y - 1)
    }
}

// The row that an entry of a list names, or the largest number where it names none.
uint listed(uint source, uint entry) {
    Operand list = push.list_0;
    if (source == 1) {
        list = push.list_1;
    }
    int index = int(UINTS(list).at[ROW_START(list, row) + entry]);
    if (index < 0) {
        if (index != -1) {
            FAIL(source * 3 + 1, at.step_row, index)
        }
        return ~0u;
    }
    if (uint(index) >= (at.pos + 1) / (source == 0 ? STRIDE_0 : STRIDE_1)) {
        FAIL(source * 3 + 2, at.step_row, uint(index))
        return ~0u;
    }
    return uint(index);
}

// Looks up the rows of a split of a source.
void locate(uint source, uvec2 seen, uint base) {
    uint me = gl_LocalInvocationIndex;
    State state = push.state_0;
    if (source == 1) {
        state = push.state_1;
    }
    if (me < SPLIT) {
        uint index = base + me;
        uvec4 place = uvec4(0);
        if (index >= seen.x && index < seen.y) {
            bool is_list = (source == 0 ? LIST_0 : LIST_1) != 0;
            index = is_list ? listed(source, index) : index;
            if (index != ~0u && has_row(STEP, state, at.conv, index)) {
                place = uvec4(uvec2(page_of(STEP, state, at.conv, index)), row_word(state, index), 1);
            } else if (is_list && index != ~0u) {
                FAIL(source * 3, at.step_row, index)
            }
        }
        places[me] = place;
    }
    rounded = is_half(state);
    k_col = (source == 0 ? K_COL_0 : K_COL_1) + head0 / GROUP * K_WIDTH;
    v_col = (source == 0 ? V_COL_0 : V_COL_1) + head0 / GROUP * V_WIDTH;
    barrier();
}
