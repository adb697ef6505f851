// Four columns of each invocation, along x; a row of each workgroup, along y.

layout(constant_id = 1) const uint ROWS = 1;
layout(constant_id = 2) const uint COLS = 1;
layout(constant_id = 3) const uint IDS = 1;
layout(constant_id = 4) const uint JOIN = 0;
layout(constant_id = 5) const uint ROW_BYTES = 4;
layout(constant_id = 6) const uint SCALE_BYTES = 0;
layout(constant_id = 7) const uint SCALE_ROWS = 1;

#define CONCAT 0
#define MEAN 2
#define QUADS ((COLS + 3) / 4)

PUSH(Operand ids; Operand y; Address table;)

// Columns `col` to `col + 3` of the row of an id, as far as there are any; zeros for -1.
vec4 numbers(int id, uint row, uint col) {
    if (id < 0 || id >= ROWS) {
        if (id != -1 && col == 0) {
            FAIL(0, ROW_AT(row).step_row, uint(id));
        }
        return vec4(0.0);
    }
    Row at = matrix_row(uvec2(push.table.low, push.table.high), ROWS, ROW_BYTES, SCALE_BYTES, SCALE_ROWS, uint(id));
#if FMT_TAIL
    if (col + 4 > COLS) {
        return fmt_tail4(at, col, COLS - col);
    }
#endif
    return fmt_decode4(at, col);
}

// The sum or mean of all ids' rows.
vec4 joined(uint row, uint col) {
    uint ids = ROW_START(push.ids, row);
    uint count = 0;
    precise vec4 sum = vec4(0.0);
    for (uint at = 0; at < IDS; at++) {
        int id = int(UINTS(push.ids).at[ids + at]);
        sum += numbers(id, row, col);
        count += id == -1 ? 0 : 1;
    }
    return JOIN == MEAN && count > 0 ? sum / float(count) : sum;
}

void main() {
    uint quad = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || quad >= QUADS * (JOIN == CONCAT ? IDS : 1)) {
        return;
    }
    uint part = quad / QUADS;
    uint col = quad % QUADS * 4;
    uint y = ROW_START(push.y, row) + part * COLS + col;
    vec4 found;
    if (JOIN == CONCAT) {
        found = numbers(int(UINTS(push.ids).at[ROW_START(push.ids, row) + part]), row, col);
    } else {
        found = joined(row, col);
    }
    for (uint at = 0; at < min(COLS - col, 4); at++) {
        FLOATS(push.y).at[y + at] = found[at];
    }
}
