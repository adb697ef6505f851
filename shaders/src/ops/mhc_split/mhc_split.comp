// A row of each workgroup; of the matrix, an invocation has a row and then a column at a time.
#include "functions.glsl"

layout(constant_id = 1) const uint STREAMS = 1;
layout(constant_id = 2) const uint ITERATIONS = 1;

PUSH(Operand z; Operand pre; Operand post; Operand comb; Address scale; Address base; float eps;)

shared float shares[STREAMS * STREAMS];

// A column of z, scaled and moved.
float value(uint row, uint col, uint part) {
    precise float product = FLOATS(push.z).at[ROW_START(push.z, row) + col] * FLOATS(push.scale).at[part];
    precise float sum = product + FLOATS(push.base).at[col];
    return sum;
}

// The sum of so many shares from `first` on.
float sum_of(uint first, uint stride) {
    float sum = 0.0;
    for (uint other = 0; other < STREAMS; other++) {
        sum += shares[first + other * stride];
    }
    return sum;
}

void divide(uint first, uint stride, float divisor) {
    for (uint other = 0; other < STREAMS; other++) {
        shares[first + other * stride] /= divisor;
    }
}

// The softmax of a row, plus eps.
void soften(uint first) {
    float largest = shares[first];
    for (uint other = 1; other < STREAMS; other++) {
        largest = max(largest, shares[first + other]);
    }
    for (uint other = 0; other < STREAMS; other++) {
        shares[first + other] = exponential(shares[first + other] - largest);
    }
    float sum = sum_of(first, 1);
    for (uint other = 0; other < STREAMS; other++) {
        shares[first + other] = shares[first + other] / sum + push.eps;
    }
}

void main() {
    uint row = gl_WorkGroupID.x;
    uint me = gl_LocalInvocationIndex;
    if (row >= ROW_COUNT) {
        return;
    }
    for (uint at = me; at < STREAMS * STREAMS; at += gl_WorkGroupSize.x) {
        shares[at] = value(row, 2 * STREAMS + at, 2);
    }
    if (me < STREAMS) {
        FLOATS(push.pre).at[ROW_START(push.pre, row) + me] = sigmoid(value(row, me, 0)) + push.eps;
        FLOATS(push.post).at[ROW_START(push.post, row) + me] = 2.0 * sigmoid(value(row, STREAMS + me, 1));
    }
    barrier();
    for (uint time = 0; time < ITERATIONS; time++) {
        if (me < STREAMS) {
            if (time == 0) {
                soften(me * STREAMS);
            } else {
                divide(me * STREAMS, 1, sum_of(me * STREAMS, 1) + push.eps);
            }
        }
        barrier();
        if (me < STREAMS) {
            divide(me, STREAMS, sum_of(me, STREAMS) + push.eps);
        }
        barrier();
    }
    for (uint at = me; at < STREAMS * STREAMS; at += gl_WorkGroupSize.x) {
        FLOATS(push.comb).at[ROW_START(push.comb, row) + at] = shares[at];
    }
}
