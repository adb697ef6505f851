// What every kernel of a product y = f(W x) is told: which rows of x meet which matrix, and what becomes of a sum.
#include "functions.glsl"

// The matrix: columns, rows, bytes of a row and of a row of scales, rows that have one row of scales.
layout(constant_id = 1) const uint COLS = 32;
layout(constant_id = 2) const uint OUTS = 1;
layout(constant_id = 3) const uint ROW_BYTES = 32;
layout(constant_id = 4) const uint SCALE_BYTES = 0;
layout(constant_id = 5) const uint SCALE_ROWS = 1;
// Rows of the matrix that read the same columns of x; the next ones read the next COLS.
layout(constant_id = 6) const uint GROUP_OUTS = 1;
// How rows are picked: each row of x; each pair of a row and a rank; the pairs of one expert (`moe_group`).
layout(constant_id = 7) const uint PICK = 0;
// Of pairs: ranks of a row, those that read one row of x (1 where each has its own), experts, and which matrix of one: gate, up, down.
layout(constant_id = 8) const uint RANKS = 1;
layout(constant_id = 9) const uint SHARE_X = 1;
layout(constant_id = 10) const uint EXPERTS = 0;
layout(constant_id = 11) const uint WHICH = 0;
// Of a sum: a bias; the function of `matmul`; a gate, which y holds (1), or which is a sum of this kernel too (2), and its function.
layout(constant_id = 12) const bool BIASED = false;
layout(constant_id = 13) const uint ACT = 0;
layout(constant_id = 14) const uint GATED = 0;
layout(constant_id = 15) const uint GLU = 0;

PUSH(Operand x; Operand y; Address w; Address bias; Operand ids; Operand weights; Address groups; Address pairs; float limit;)

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Vectors { vec4 at[]; };

const uint ROWS_PICKED = 0;
const uint PAIRS_PICKED = 1;

// Rows that one workgroup takes: places in a list, and the expert whose matrix they meet. None where there is nothing to do.
struct Part { uint first; uint count; uint expert; };

// The row of y of place `at`.
uint y_row(uint at) {
    return PICK <= PAIRS_PICKED ? at : UINTS(push.pairs).at[at];
}

uvec2 expert_matrix(uint expert, uint which) {
    uint at = 6 * expert + 2 * which;
    return uvec2(UINTS(push.w).at[at], UINTS(push.w).at[at + 1]);
}

// The matrix of a part.
uvec2 matrix_of(Part part, uint which) {
    return PICK == ROWS_PICKED ? uvec2(push.w.low, push.w.high) : expert_matrix(part.expert, which);
}

// Says what is wrong with an expert of a pair, whose matrices are then not read.
bool is_there(uint expert, uint pair) {
    if (expert >= EXPERTS) {
        FAIL(0, ROW_AT(pair / RANKS).step_row, expert);
        return false;
    }
    if (expert_matrix(expert, WHICH) == uvec2(0)) {
        FAIL(1, ROW_AT(pair / RANKS).step_row, expert);
        return false;
    }
    return true;
}

// Part `index` of parts of `per` rows.
Part part_at(uint index, uint per) {
    const Part none = Part(0, 0, 0);
    if (PICK == ROWS_PICKED) {
        uint first = index * per;
        uint rows = ROW_COUNT;
        return first < rows ? Part(first, min(per, rows - first), 0) : none;
    }
    if (PICK == PAIRS_PICKED) {
        if (index / RANKS >= ROW_COUNT) {
            return none;
        }
        uint expert = UINTS(push.ids).at[ROW_START(push.ids, index / RANKS) + index % RANKS];
        return is_there(expert, index) ? Part(index, 1, expert) : none;
    }
    // The number of groups, then three words each.
    Uints groups = UINTS(push.groups);
    if (index >= groups.at[0]) {
        return none;
    }
    Part part = Part(groups.at[1 + 3 * index], groups.at[2 + 3 * index], groups.at[3 + 3 * index]);
    return is_there(part.expert, y_row(part.first)) ? part : none;
}

// Where the columns of x begin that meet row `o` of the matrix, for place `at` of a list.
uint x_start(uint at, uint o) {
    return ROW_START(push.x, y_row(at) / SHARE_X) + o / GROUP_OUTS * COLS;
}

// Whether columns of x begin at whole vectors, so that four come in one read.
bool has_vectors() {
    return (push.x.low & 15) == 0 && (push.x.stride & 3) == 0 && COLS % 4 == 0;
}

// Whether all of `col` to `col + 3` are there.
bool is_whole(uint col) {
    return COLS % 4 == 0 || col + 4 <= COLS;
}

// Columns `col` to `col + 3` of a row of x; those that there are not are 0.
vec4 x_columns(uint start, uint col, bool vectors) {
    if (vectors) {
        return Vectors(uvec2(push.x.low, push.x.high)).at[(start + col) / 4];
    }
    Floats x = FLOATS(push.x);
    uint at = start + col;
    if (is_whole(col)) {
        return vec4(x.at[at], x.at[at + 1], x.at[at + 2], x.at[at + 3]);
    }
    uint left = COLS - col;
    return vec4(x.at[at], left > 1 ? x.at[at + 1] : 0.0, left > 2 ? x.at[at + 2] : 0.0, 0.0);
}

// Columns `col` to `col + 3` of a row of the matrix, of which the first is there; those that there are not are 0.
vec4 w_columns(Row row, uint col) {
#if FMT_TAIL
    if (!is_whole(col)) {
        return fmt_tail4(row, col, COLS - col);
    }
#endif
    return fmt_decode4(row, col);
}

// Row `o` of a matrix.
Row w_row(uvec2 matrix, uint o) {
    return matrix_row(matrix, OUTS, ROW_BYTES, SCALE_BYTES, SCALE_ROWS, o);
}

// A row beside another one that comes before it, without the arithmetic of 64 bits.
Row row_beside(Row row, uint first, uint o) {
    return Row(
        row.values, row.at + (o - first) * ROW_BYTES,
        row.scales, row.scale_at + (o / SCALE_ROWS - first / SCALE_ROWS) * SCALE_BYTES
    );
}

float gated(float gate, float up) {
    return glu(GLU, push.limit, gate, up);
}

// What becomes of a sum for column `o` of row `row` of y.
float finished(float sum, uint row, uint o) {
    precise float number = sum;
    if (BIASED) {
        number += FLOATS(push.bias).at[o];
    }
    if (GATED == 1) {
        number = gated(FLOATS(push.y).at[ROW_START(push.y, row) + o], number);
    }
    switch (ACT) {
    case 1: return silu(number);
    case 2: return gelu(number);
    case 3: return number < 0.0 ? 0.0 : number;
    case 4: return sigmoid(number);
    default: return number;
    }
}

void finish(float sum, uint row, uint o) {
    FLOATS(push.y).at[ROW_START(push.y, row) + o] = finished(sum, row, o);
}

// The workgroup's place along x, which may be folded into z.
uint place_x() {
    return gl_WorkGroupID.x + gl_WorkGroupID.z * gl_NumWorkGroups.x;
}
