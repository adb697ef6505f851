// `attend_flash` on matrix units: operands are f16, sums f32. Each subgroup of a workgroup has M rows; keys come in blocks that begin at
// multiples of 64, whose rows all subgroups read from shared memory.
#include "rows.glsl"

layout(constant_id = 17) const uint M = 16;
layout(constant_id = 18) const uint N = 16;
layout(constant_id = 19) const uint K = 16;
layout(constant_id = 20) const uint LANES = 32;
layout(constant_id = 21) const uint SUBGROUPS = 4;
// Rows of K or V that are in shared memory at a time.
layout(constant_id = 22) const uint STAGED = 64;

PUSH(Operand q; Operand y; State state_0; State state_1; Address sinks; float scale;)

const uint TILE = M * SUBGROUPS;
const uint DEPTHS = (K_WIDTH + K - 1) / K;
const uint OUTS = (V_WIDTH + N - 1) / N;
const uint K_PADDED = DEPTHS * K;
const uint V_PADDED = OUTS * N;
const uint PADDED = K_PADDED > V_PADDED ? K_PADDED : V_PADDED;
// From row to row, in fours: a few more, so that rows begin on different banks. The same for scores and weights, in numbers.
const uint APART = PADDED / 4 + 2;
const uint SCORES_APART = SPLIT + 4;
const uint WEIGHTS_APART = SPLIT + 8;
const uint LANES_A_ROW = LANES / M;
const uint KEYS_A_LANE = SPLIT / LANES_A_ROW;

// Rows of K or V; of queries and of results before and after.
shared f16vec4 staged[STAGED * APART];
// Scores; once they are read, what values are multiplied with, a row's factor in every column; in the end, results.
shared float scores[TILE * SCORES_APART];
shared float16_t weights[TILE * WEIGHTS_APART];
shared uvec2 rows_at[SPLIT];
shared float tops[TILE];
shared float sums[TILE];
shared float partial[TILE * LANES_A_ROW];

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>

uint head;
// The first row of the tile, and those of its rows that are worked on: of one conversation.
uint tile;
uint begin;
uint end;
RowAt at;
bool rounded;
uint k_col;
uint v_col;
// The subgroup's first row of the tile, the invocation's row of the tile, and its place among those of the row.
uint row0;
uint own;
uint lane;

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
    for (uint i = gl_LocalInvocationIndex; i < SPLIT; i += gl_WorkGroupSize.x) {
        uint index = base + i;
        bool there = index >= seen.x && index < seen.y && has_row(STEP, state, at.conv, index);
        rows_at[i] = there ? row_address(uvec2(page_of(STEP, state, at.conv, index)), row_word(state, index)) : uvec2(0);
    }
    rounded = is_half(state);
    k_col = (source == 0 ? K_COL_0 : K_COL_1) + head / GROUP * K_WIDTH;
    v_col = (source == 0 ? V_COL_0 : V_COL_1) + head / GROUP * V_WIDTH;
    barrier();
}

// Brings some columns of rows of the block.
void stage(uint first, uint col0, uint width, uint padded) {
    uint quads = padded / 4;
    for (uint i = gl_LocalInvocationIndex; i < STAGED * quads; i += gl_WorkGroupSize.x) {
        uint row = i / quads;
        uint col = i % quads * 4;
        uvec2 from = rows_at[first + row];
        bool there = from != uvec2(0) && col < width;
        staged[row * APART + col / 4] = f16vec4(there ? row_quad(from, 0, rounded, col0 + col, width - col) : vec4(0.0));
    }
    barrier();
}

// Brings the queries of some rows of the tile.
void stage_queries(uint first) {
    uint quads = K_PADDED / 4;
    for (uint i = gl_LocalInvocationIndex; i < STAGED * quads; i += gl_WorkGroupSize.x) {
        uint row = tile + first + i / quads;
        uint col = i % quads * 4;
        vec4 numbers = vec4(0.0);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            if (first + i / quads < TILE && row >= begin && row < end && col + j < K_WIDTH) {
                numbers[j] = FLOATS(push.q).at[ROW_START(push.q, row) + head * K_WIDTH + col + j];
            }
        }
        staged[i / quads * APART + col / 4] = f16vec4(numbers);
    }
    barrier();
}

void score(OPERAND_A queries[DEPTHS], uint first) {
    for (uint n = 0; n < STAGED / N; n++) {
        SUMS sum = SUMS(0.0);
        [[unroll]] for (uint depth = 0; depth < DEPTHS; depth++) {
            OPERAND_B keys;
            coopMatLoad(keys, staged, n * N * APART + depth * K / 4, APART, gl_CooperativeMatrixLayoutColumnMajor);
            sum = coopMatMulAdd(queries[depth], keys, sum);
        }
        coopMatStore(sum, scores, row0 * SCORES_APART + first + n * N, SCORES_APART, gl_CooperativeMatrixLayoutRowMajor);
    }
    barrier();
}

// The weights of the block, from its scores.
void weigh(uint source, uint base) {
    uint row = tile + own;
    uvec2 seen = row >= begin && row < end ? seen_by(row, source) : uvec2(0);
    float mine[KEYS_A_LANE];
    float top = LOWEST;
    [[unroll]] for (uint i = 0; i < KEYS_A_LANE; i++) {
        uint key = lane + LANES_A_ROW * i;
        bool sees = base + key >= seen.x && base + key < seen.y;
        mine[i] = sees ? scores[own * SCORES_APART + key] * push.scale : LOWEST;
        top = max(top, mine[i]);
    }
    partial[own * LANES_A_ROW + lane] = top;
    barrier();
    for (uint i = 0; i < LANES_A_ROW; i++) {
        top = max(top, partial[own * LANES_A_ROW + i]);
    }
    float top_before = tops[own];
    top = max(top, top_before);
    float before = top_before == LOWEST ? 0.0 : exp(top_before - top);
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < KEYS_A_LANE; i++) {
        float weight = mine[i] == LOWEST ? 0.0 : exp(mine[i] - top);
        weights[own * WEIGHTS_APART + lane + LANES_A_ROW * i] = float16_t(weight);
        sum += weight;
    }
    for (uint i = lane; i < N; i += LANES_A_ROW) {
        scores[own * SCORES_APART + i] = before;
    }
    barrier();
    partial[own * LANES_A_ROW + lane] = sum;
    barrier();
    if (lane == 0) {
        float block = 0.0;
        for (uint i = 0; i < LANES_A_ROW; i++) {
            block += partial[own * LANES_A_ROW + i];
        }
        precise float scaled = sums[own] * before;
        sums[own] = scaled + block;
        tops[own] = top;
    }
}

void add_values(inout SUMS values[OUTS], uint first) {
    for (uint key = 0; key < STAGED; key += K) {
        OPERAND_A of;
        coopMatLoad(of, weights, row0 * WEIGHTS_APART + first + key, WEIGHTS_APART, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 0; i < OUTS; i++) {
            OPERAND_B numbers;
            coopMatLoad(numbers, staged, key * APART + i * N / 4, APART, gl_CooperativeMatrixLayoutRowMajor);
            values[i] = coopMatMulAdd(of, numbers, values[i]);
        }
    }
    barrier();
}

void walk(uint source, OPERAND_A queries[DEPTHS], inout SUMS values[OUTS]) {
    // Rows of a conversation ascend.
    uvec2 seen = uvec2(seen_by(begin, source).x, seen_by(end - 1, source).y);
    for (uint base = seen.x / SPLIT * SPLIT; base < seen.y; base += SPLIT) {
        locate(source, seen, base);
        for (uint first = 0; first < SPLIT; first += STAGED) {
            stage(first, k_col, K_WIDTH, K_PADDED);
            score(queries, first);
        }
        weigh(source, base);
        barrier();
        SUMS factor;
        coopMatLoad(factor, scores, row0 * SCORES_APART, SCORES_APART, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 0; i < OUTS; i++) {
            values[i] = values[i] * factor;
        }
        for (uint first = 0; first < SPLIT; first += STAGED) {
            stage(first, v_col, V_WIDTH, V_PADDED);
            add_values(values, first);
        }
    }
}

// Results go through the memory of the scores, as many columns at a time as it holds.
void put(SUMS values[OUTS]) {
    uint row = tile + own;
    bool is_ours = row >= begin && row < end;
    Softmax all = Softmax(tops[own], sums[own]);
    float factor = 1.0;
    if (SINK) {
        factor = take_sink(all, FLOATS(push.sinks).at[head]);
    }
    uint start = is_ours ? ROW_START(push.y, row) + head * V_WIDTH : 0;
    [[unroll]] for (uint i = 0; i < OUTS; i++) {
        coopMatStore(values[i], scores, row0 * SCORES_APART, SCORES_APART, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint j = lane; j < N; j += LANES_A_ROW) {
            uint col = i * N + j;
            if (is_ours && col < V_WIDTH) {
                FLOATS(push.y).at[start + col] = all.sum == 0.0 ? 0.0 : scores[own * SCORES_APART + j] * factor / all.sum;
            }
        }
        barrier();
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

void attend_rows() {
    OPERAND_A queries[DEPTHS];
    for (uint first = 0; first < TILE; first += STAGED) {
        stage_queries(first);
        if (row0 >= first && row0 < first + STAGED) {
            [[unroll]] for (uint i = 0; i < DEPTHS; i++) {
                coopMatLoad(queries[i], staged, (row0 - first) * APART + i * K / 4, APART, gl_CooperativeMatrixLayoutRowMajor);
            }
        }
        barrier();
    }
    SUMS values[OUTS];
    [[unroll]] for (uint i = 0; i < OUTS; i++) {
        values[i] = SUMS(0.0);
    }
    if (lane == 0) {
        tops[own] = LOWEST;
        sums[own] = 0.0;
    }
    barrier();
    [[dont_unroll]] for (uint source = 0; source < SOURCES; source++) {
        check(source);
        walk(source, queries, values);
    }
    put(values);
}

void main() {
    // Later rows see more: they begin first.
    tile = (gl_NumWorkGroups.y - 1 - gl_WorkGroupID.y) * TILE;
    head = gl_WorkGroupID.x;
    uint count = ROW_COUNT;
    row0 = gl_SubgroupID * M;
    own = gl_LocalInvocationIndex / LANES_A_ROW;
    lane = gl_LocalInvocationIndex % LANES_A_ROW;
    for (begin = tile; begin < min(tile + TILE, count); begin = end) {
        at = ROW_AT(begin);
        end = begin + 1;
        while (end < min(tile + TILE, count) && ROW_AT(end).conv == at.conv) {
            end++;
        }
        attend_rows();
    }
}
