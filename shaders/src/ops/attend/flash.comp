// Fast mode, prompts: 32 rows of each workgroup, along y; a head along x. Keys come in blocks that begin at multiples of 64, each row takes
// its blocks in ascending order, and a block in which it sees nothing changes nothing: so its bits depend on what it sees alone.
#include "rows.glsl"

PUSH(Operand q; Operand y; State state_0; State state_1; Address sinks; float scale;)

const uint TILE = 32;
// Columns of K that are in shared memory at a time, by fours; and what keeps rows of them on different banks.
const uint CHUNK = 4;
const uint APART = CHUNK + 1;
const uint K_QUADS = (K_WIDTH + 3) / 4;
const uint V_QUADS = (V_WIDTH + 3) / 4;
// Rows of V that are in shared memory at a time.
const uint V_ROWS = V_QUADS <= 32 ? 8 : 4;
// Fours of columns of V of an invocation.
const uint MINE = (V_QUADS + 15) / 16;

shared vec4 staged[SPLIT * APART];
shared vec4 queries[TILE * CHUNK];
shared float weights[TILE * SPLIT];
// Where rows of a block lie; 0 where there is none.
shared uvec2 rows_at[SPLIT];
// Of each row: largest score, sum, and the factor of what was there before the block.
shared float tops[TILE];
shared float sums[TILE];
shared float factors[TILE];

uint head;
// The first row of the tile, and those of its rows that are worked on: of one conversation.
uint tile;
uint begin;
uint end;
RowAt at;
bool rounded;
uint k_col;
uint v_col;

uvec2 seen_by(uint row, uint source) {
    uint pos = ROW_AT(row).pos;
    return source == 0 ? seen_0(pos) : seen_1(pos);
}

State state_of(uint source) {
    State state = push.state_0;
    if (source == 1) {
        state = push.state_1;
    }
    return state;
}

uvec2 row_address(uvec2 page, uint word) {
    uint carry;
    uint low = uaddCarry(page.x, word << 2, carry);
    return uvec2(low, page.y + (word >> 30) + carry);
}

// Looks up the rows of a block that some row sees; the others may never have been written.
void locate(uint source, uvec2 seen, uint base) {
    State state = state_of(source);
    uint me = gl_LocalInvocationIndex;
    if (me < SPLIT) {
        uint index = base + me;
        bool there = index >= seen.x && index < seen.y && has_row(STEP, state, at.conv, index);
        rows_at[me] = there ? row_address(uvec2(page_of(STEP, state, at.conv, index)), row_word(state, index)) : uvec2(0);
    }
    rounded = is_half(state);
    k_col = (source == 0 ? K_COL_0 : K_COL_1) + head / GROUP * K_WIDTH;
    v_col = (source == 0 ? V_COL_0 : V_COL_1) + head / GROUP * V_WIDTH;
    barrier();
}

vec4 stored(uint i, uint col0, uint col, uint width) {
    return rows_at[i] != uvec2(0) && col < width ? row_quad(rows_at[i], 0, rounded, col0 + col, width - col) : vec4(0.0);
}

vec4 query(uint row, uint col) {
    vec4 numbers = vec4(0.0);
    [[dont_unroll]] for (uint j = 0; j < 4; j++) {
        if (row < end && row >= begin && col + j < K_WIDTH) {
            numbers[j] = FLOATS(push.q).at[ROW_START(push.q, row) + head * K_WIDTH + col + j];
        }
    }
    return numbers;
}

// Scores of the block: an invocation has four rows and every 16th key.
void score(uint source, uint base) {
    uint me = gl_LocalInvocationIndex;
    uint row0 = me / 16 * 4;
    uint key0 = me % 16;
    float scores[4][4];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        [[unroll]] for (uint j = 0; j < 4; j++) {
            scores[i][j] = 0.0;
        }
    }
    for (uint chunk = 0; chunk < K_QUADS; chunk += CHUNK) {
        uint col = 4 * (chunk + me % CHUNK);
        queries[me] = query(tile + me / CHUNK, col);
        [[dont_unroll]] for (uint key = me / CHUNK; key < SPLIT; key += TILE) {
            staged[key * APART + me % CHUNK] = stored(key, k_col, col, K_WIDTH);
        }
        barrier();
        [[dont_unroll]] for (uint quad = 0; quad < CHUNK; quad++) {
            vec4 keys[4];
            [[unroll]] for (uint j = 0; j < 4; j++) {
                keys[j] = staged[(key0 + 16 * j) * APART + quad];
            }
            [[unroll]] for (uint i = 0; i < 4; i++) {
                vec4 of = queries[(row0 + i) * CHUNK + quad];
                [[unroll]] for (uint j = 0; j < 4; j++) {
                    scores[i][j] = fma(of.x, keys[j].x, scores[i][j]);
                    scores[i][j] = fma(of.y, keys[j].y, scores[i][j]);
                    scores[i][j] = fma(of.z, keys[j].z, scores[i][j]);
                    scores[i][j] = fma(of.w, keys[j].w, scores[i][j]);
                }
            }
        }
        barrier();
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint row = tile + row0 + i;
        uvec2 seen = row >= begin && row < end ? seen_by(row, source) : uvec2(0);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            uint index = base + key0 + 16 * j;
            bool sees = index >= seen.x && index < seen.y;
            weights[(row0 + i) * SPLIT + key0 + 16 * j] = sees ? scores[i][j] * push.scale : LOWEST;
        }
    }
    barrier();
}

// The weights of the block, from its scores: four invocations a row.
void weigh() {
    uint me = gl_LocalInvocationIndex;
    uint row = me / 4;
    uint first = row * SPLIT + me % 4 * 16;
    float top = LOWEST;
    for (uint i = first; i < first + 16; i++) {
        top = max(top, weights[i]);
    }
    staged[me].x = top;
    barrier();
    top = max(max(staged[row * 4].x, staged[row * 4 + 1].x), max(staged[row * 4 + 2].x, staged[row * 4 + 3].x));
    top = max(top, tops[row]);
    float before = tops[row] == LOWEST ? 0.0 : exp(tops[row] - top);
    float sum = 0.0;
    for (uint i = first; i < first + 16; i++) {
        float weight = weights[i] == LOWEST ? 0.0 : exp(weights[i] - top);
        weights[i] = weight;
        sum += weight;
    }
    staged[me].y = sum;
    barrier();
    if (me % 4 == 0) {
        precise float low = staged[me].y + staged[me + 1].y;
        precise float high = staged[me + 2].y + staged[me + 3].y;
        precise float block = low + high;
        precise float scaled = sums[row] * before;
        sums[row] = scaled + block;
        tops[row] = top;
        factors[row] = before;
    }
    barrier();
}

// Adds the block's weighted V: an invocation has four rows and every 16th four of columns.
void add_values(inout vec4 values[4][MINE]) {
    uint me = gl_LocalInvocationIndex;
    uint row0 = me / 16 * 4;
    uint quad0 = me % 16;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        [[unroll]] for (uint j = 0; j < MINE; j++) {
            values[i][j] *= factors[row0 + i];
        }
    }
    for (uint first = 0; first < SPLIT; first += V_ROWS) {
        for (uint i = me; i < V_ROWS * V_QUADS; i += gl_WorkGroupSize.x) {
            staged[i] = stored(first + i / V_QUADS, v_col, i % V_QUADS * 4, V_WIDTH);
        }
        barrier();
        [[dont_unroll]] for (uint key = 0; key < V_ROWS; key++) {
            float of[4];
            [[unroll]] for (uint i = 0; i < 4; i++) {
                of[i] = weights[(row0 + i) * SPLIT + first + key];
            }
            [[unroll]] for (uint j = 0; j < MINE; j++) {
                vec4 value = staged[key * V_QUADS + min(quad0 + 16 * j, V_QUADS - 1)];
                [[unroll]] for (uint i = 0; i < 4; i++) {
                    values[i][j] = fma(vec4(of[i]), value, values[i][j]);
                }
            }
        }
        barrier();
    }
}

void walk(uint source, inout vec4 values[4][MINE]) {
    // Rows of a conversation ascend.
    uvec2 seen = uvec2(seen_by(begin, source).x, seen_by(end - 1, source).y);
    for (uint base = seen.x / SPLIT * SPLIT; base < seen.y; base += SPLIT) {
        locate(source, seen, base);
        score(source, base);
        weigh();
        add_values(values);
    }
}

void put(vec4 values[4][MINE]) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint of = me / 16 * 4 + i;
        uint row = tile + of;
        if (row >= begin && row < end) {
            Softmax all = Softmax(tops[of], sums[of]);
            float factor = 1.0;
            if (SINK) {
                factor = take_sink(all, FLOATS(push.sinks).at[head]);
            }
            uint start = ROW_START(push.y, row) + head * V_WIDTH;
            [[unroll]] for (uint j = 0; j < MINE; j++) {
                [[unroll]] for (uint k = 0; k < 4; k++) {
                    uint col = 4 * (me % 16 + 16 * j) + k;
                    if (col < V_WIDTH) {
                        FLOATS(push.y).at[start + col] = all.sum == 0.0 ? 0.0 : values[i][j][k] * factor / all.sum;
                    }
                }
            }
        }
    }
}

// Says what a mask lets through and is not stored.
void check(uint source) {
    State state = state_of(source);
    for (uint row = begin + gl_LocalInvocationIndex; head == 0 && row < end; row += gl_WorkGroupSize.x) {
        uvec2 seen = seen_by(row, source);
        bool first = has_row(STEP, state, at.conv, seen.x);
        if (seen.x < seen.y && !(first && has_row(STEP, state, at.conv, seen.y - 1))) {
            FAIL(source * 3, ROW_AT(row).step_row, first ? seen.y - 1 : seen.x)
        }
    }
}

void main() {
    // Later rows see more: they begin first.
    tile = (gl_NumWorkGroups.y - 1 - gl_WorkGroupID.y) * TILE;
    uint count = ROW_COUNT;
    head = gl_WorkGroupID.x;
    for (begin = tile; begin < min(tile + TILE, count); begin = end) {
        at = ROW_AT(begin);
        end = begin + 1;
        while (end < min(tile + TILE, count) && ROW_AT(end).conv == at.conv) {
            end++;
        }
        vec4 values[4][MINE];
        [[unroll]] for (uint i = 0; i < 4; i++) {
            [[unroll]] for (uint j = 0; j < MINE; j++) {
                values[i][j] = vec4(0.0);
            }
        }
        if (gl_LocalInvocationIndex < TILE) {
            tops[gl_LocalInvocationIndex] = LOWEST;
            sums[gl_LocalInvocationIndex] = 0.0;
        }
        barrier();
        [[dont_unroll]] for (uint source = 0; source < SOURCES; source++) {
            check(source);
            walk(source, values);
        }
        put(values);
        barrier();
    }
}
