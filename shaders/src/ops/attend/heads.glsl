// What the kernels of `attend` share: which rows a row sees, and how parts of a softmax are joined.
//
// The rows of a source that a row sees are cut where their index (a list: the place in the list) is a multiple of SPLIT; the splits of the
// first source come before those of the second. Of each split there are the largest score, the sum of the exponentials of the differences
// from it, and the values weighted by them; splits are joined one after the other, a sink last.

layout(constant_id = 1) const uint K_WIDTH = 1;
layout(constant_id = 2) const uint V_WIDTH = 1;
layout(constant_id = 3) const uint HEADS = 1;
// Query heads of a K/V head.
layout(constant_id = 4) const uint GROUP = 1;
layout(constant_id = 5) const uint SOURCES = 1;
layout(constant_id = 6) const bool SINK = false;
// Of each source: positions of a row, the window or 0, entries of its list or 0, first columns of K and V.
layout(constant_id = 7) const uint STRIDE_0 = 1;
layout(constant_id = 8) const uint WINDOW_0 = 0;
layout(constant_id = 9) const uint LIST_0 = 0;
layout(constant_id = 10) const uint K_COL_0 = 0;
layout(constant_id = 11) const uint V_COL_0 = 0;
layout(constant_id = 12) const uint STRIDE_1 = 1;
layout(constant_id = 13) const uint WINDOW_1 = 0;
layout(constant_id = 14) const uint LIST_1 = 0;
layout(constant_id = 15) const uint K_COL_1 = 0;
layout(constant_id = 16) const uint V_COL_1 = 0;

const uint SPLIT = 64;
#define LOWEST uintBitsToFloat(0xff800000u)

// The rows or entries that a row at a position sees: the first, and the one after the last.
uvec2 seen_of(uint pos, uint stride, uint window, uint list) {
    if (list != 0) {
        return uvec2(0, list);
    }
    uint complete = (pos + 1) / stride;
    return uvec2(window != 0 && complete > window ? complete - window : 0, complete);
}

uvec2 seen_0(uint pos) {
    return seen_of(pos, STRIDE_0, WINDOW_0, LIST_0);
}

uvec2 seen_1(uint pos) {
    return SOURCES > 1 ? seen_of(pos, STRIDE_1, WINDOW_1, LIST_1) : uvec2(0);
}

uint splits_of(uvec2 seen) {
    return seen.x < seen.y ? (seen.y - 1) / SPLIT - seen.x / SPLIT + 1 : 0;
}

// The softmax so far. A sum of 0: nothing was seen.
struct Softmax { float largest; float sum; };

// Takes in a part; gives the factors of what was there and of what comes.
vec2 take_part(inout Softmax all, float largest, float sum) {
    if (sum == 0.0) {
        return vec2(1.0, 0.0);
    }
    if (all.sum == 0.0) {
        all = Softmax(largest, sum);
        return vec2(0.0, 1.0);
    }
    float top = max(all.largest, largest);
    precise float before = exp(all.largest - top);
    precise float now = exp(largest - top);
    precise float scaled = all.sum * before;
    precise float added = sum * now;
    precise float total = scaled + added;
    all = Softmax(top, total);
    return vec2(before, now);
}

// Takes in the sink, if something was seen; gives the factor of the values.
float take_sink(inout Softmax all, float sink) {
    if (all.sum == 0.0) {
        return 0.0;
    }
    float top = max(all.largest, sink);
    precise float before = exp(all.largest - top);
    precise float scaled = all.sum * before;
    precise float total = scaled + exp(sink - top);
    all = Softmax(top, total);
    return before;
}
