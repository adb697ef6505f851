// A column of each invocation, along x; a row of each workgroup, along y. The step's rows are stored already.
#include "states.glsl"
#include "lanes.glsl"

// Columns of kv, columns of the output, positions of a group.
layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint OUT_WIDTH = 1;
layout(constant_id = 3) const uint RATIO = 1;
layout(constant_id = 4) const bool MEAN = false;
layout(constant_id = 5) const bool OVERLAP = false;
layout(constant_id = 6) const bool APE = false;

PUSH(Operand y; Address ape; State state;)

RowAt at;
// The output's column, and the first position of the row's own group.
uint col;
uint start;

// The column of a stored position that takes part.
uint column_of(uint index) {
    return OVERLAP && index >= start ? OUT_WIDTH + col : col;
}

// A number of a stored position, 0 where there is none; every invocation of the workgroup has the same position.
float stored(uint index, uint column) {
    if (!has_row(STEP, push.state, at.conv, index)) {
        // The row's own place has been told already.
        if (col == 0 && index != at.pos) {
            FAIL(1, at.step_row, index)
        }
        return 0.0;
    }
    Uints page = page_of(STEP, push.state, at.conv, index);
    return uintBitsToFloat(page.at[row_word(push.state, index) + column]);
}

float gate(uint index) {
    uint column = column_of(index);
    precise float sum = stored(index, WIDTH + column);
    if (APE) {
        sum += FLOATS(push.ape).at[index % RATIO * WIDTH + column];
    }
    return sum;
}

float mixed(uint first) {
    float largest = uintBitsToFloat(0xff800000u);
    for (uint index = first; !MEAN && index <= at.pos; index++) {
        largest = max(largest, gate(index));
    }
    precise vec4 sums[LANE_VECTORS];
    precise vec4 products[LANE_VECTORS];
    [[unroll]] for (uint i = 0; i < LANE_VECTORS; i++) {
        sums[i] = vec4(0.0);
        products[i] = vec4(0.0);
    }
    for (uint base = first; base <= at.pos; base += 4 * LANE_VECTORS) {
        float of_weight[4 * LANE_VECTORS];
        float of_product[4 * LANE_VECTORS];
        for (uint i = 0; i < 4 * LANE_VECTORS; i++) {
            float weight = 0.0;
            precise float product = 0.0;
            if (base + i <= at.pos) {
                float number = stored(base + i, column_of(base + i));
                weight = MEAN ? number : exp(gate(base + i) - largest);
                product = weight * number;
            }
            of_weight[i] = weight;
            of_product[i] = product;
        }
        [[unroll]] for (uint i = 0; i < LANE_VECTORS; i++) {
            sums[i] += vec4(of_weight[4 * i], of_weight[4 * i + 1], of_weight[4 * i + 2], of_weight[4 * i + 3]);
            products[i] += vec4(of_product[4 * i], of_product[4 * i + 1], of_product[4 * i + 2], of_product[4 * i + 3]);
        }
    }
    precise float sum = joined(sums);
    return MEAN ? sum / float(RATIO) : joined(products) / sum;
}

void main() {
    uint row = gl_WorkGroupID.y;
    col = gl_GlobalInvocationID.x;
    if (row >= ROW_COUNT || col >= OUT_WIDTH) {
        return;
    }
    at = ROW_AT(row);
    float number = 0.0;
    if ((at.pos + 1) % RATIO == 0) {
        start = at.pos + 1 - RATIO;
        number = mixed(OVERLAP && start >= RATIO ? start - RATIO : start);
    }
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = number;
}
