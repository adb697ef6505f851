// Inner products. In the order of exact mode (`sums.rs`) a sum has 32 lanes, four in each of the 8 invocations of a team. Fast mode may
// have larger teams, fused products and sums, and an order of its own. A team has one row of the matrix; it decodes it once for several
// rows of x, each with lanes of its own, so that their number changes no bit.
#include "product.glsl"

// Rows of x that share a decode: 1, 2, 4, 8 or 16.
layout(constant_id = 16) const uint ROWS = 1;
// Vectors of shared memory: for the lanes of some rows, of all invocations.
layout(constant_id = 17) const uint JOINS = 64;
// Whether the ranks of a row are here, in teams side by side, and y becomes their weighted sum.
layout(constant_id = 18) const bool SUMMED = false;
// Invocations of a team: 8 in exact mode.
layout(constant_id = 19) const uint TEAM = 8;
layout(constant_id = 20) const bool FAST = false;

// Rows that are joined at once, each by a member of the team.
const uint BATCH = ROWS < 8 ? ROWS : 8;
const uint BATCHES = ROWS / BATCH;
// Fours of columns that are asked for before any is used: reads are what takes time.
const uint AHEAD = FAST ? 4 : 1;

shared vec4 joins[JOINS];

vec4 lanes[ROWS];
uint starts[ROWS];

// Adds the products of four columns to an invocation's lanes.
void add_four(vec4 w, uint col, bool vectors) {
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        vec4 x = x_columns(starts[r], col, vectors);
        precise vec4 product = w * x;
        precise vec4 sum = FAST ? fma(w, x, lanes[r]) : lanes[r] + product;
        lanes[r] = sum;
    }
}

// Adds the products of an invocation's columns.
void add_columns(Row row, uint member) {
    bool vectors = has_vectors();
    const uint SPAN = 4 * TEAM;
    for (uint base = 0; base < COLS; base += AHEAD * SPAN) {
        vec4 w[AHEAD];
        [[unroll]] for (uint a = 0; a < AHEAD; a++) {
            uint col = base + a * SPAN + 4 * member;
            w[a] = COLS % (AHEAD * SPAN) == 0 || col < COLS ? w_columns(row, col) : vec4(0.0);
        }
        [[unroll]] for (uint a = 0; a < AHEAD; a++) {
            uint col = base + a * SPAN + 4 * member;
            if (COLS % (AHEAD * SPAN) == 0 || col < COLS) {
                add_four(w[a], col, vectors);
            }
        }
    }
}

// The sum of row `first + member`, whose lanes the 8 invocations of a team hold: a tree, as `sums.rs` has it.
float joined(uint first, uint member) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint r = 0; r < BATCH; r++) {
        joins[r * gl_WorkGroupSize.x + me] = lanes[first + r];
    }
    barrier();
    uint at = min(member, BATCH - 1) * gl_WorkGroupSize.x + me - member;
    precise vec4 a = joins[at] + joins[at + 4];
    precise vec4 b = joins[at + 1] + joins[at + 5];
    precise vec4 c = joins[at + 2] + joins[at + 6];
    precise vec4 d = joins[at + 3] + joins[at + 7];
    barrier();
    precise vec4 even = a + c;
    precise vec4 odd = b + d;
    precise vec4 whole = even + odd;
    precise vec2 pair = whole.xy + whole.zw;
    precise float sum = pair.x + pair.y;
    return sum;
}

// The same in fast mode: each invocation adds its lanes first.
float joined_fast(uint first, uint member) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint r = 0; r < BATCH; r++) {
        precise vec2 pair = lanes[first + r].xy + lanes[first + r].zw;
        precise float sum = pair.x + pair.y;
        joins[(r * gl_WorkGroupSize.x + me) / 4][me % 4] = sum;
    }
    barrier();
    uint at = (min(member, BATCH - 1) * gl_WorkGroupSize.x + me - member) / 4;
    precise vec4 whole = joins[at];
    [[unroll]] for (uint four = 1; four < TEAM / 4; four++) {
        whole += joins[at + four];
    }
    barrier();
    precise vec2 pair = whole.xy + whole.zw;
    precise float sum = pair.x + pair.y;
    return sum;
}

// Adds the ranks' numbers, each times its weight, in order. `teams` of them are side by side; the first one of each row has the sum.
float summed(float number, uint row, uint team, bool first_of_team, bool live) {
    uint rank = team % RANKS;
    if (first_of_team) {
        precise float product = live ? number * FLOATS(push.weights).at[ROW_START(push.weights, row) + rank] : 0.0;
        joins[team].x = product;
    }
    barrier();
    precise float sum = 0.0;
    if (rank == 0 && first_of_team && live) {
        for (uint r = 0; r < RANKS; r++) {
            sum += joins[team + r].x;
        }
    }
    return sum;
}

void main() {
    uint me = gl_LocalInvocationIndex;
    uint member = me % TEAM;
    uint team = me / TEAM;
    uint teams = gl_WorkGroupSize.x / TEAM;
    // Rows of the matrix that a workgroup has.
    uint outs = SUMMED ? teams / RANKS : teams;
    uint o = place_x() * outs + (SUMMED ? team / RANKS : team);
    uint index = gl_WorkGroupID.y;
    if (SUMMED) {
        if (index >= ROW_COUNT) {
            return;
        }
        index = index * RANKS + team % RANKS;
    }
    Part part = part_at(index, ROWS);
    if (!SUMMED && part.count == 0) {
        return;
    }
    bool live = part.count > 0 && o < OUTS && (!SUMMED || team / RANKS < outs);
#ifdef FMT_GRID
    fmt_grid_fill(me, gl_WorkGroupSize.x);
    barrier();
#endif
    // Rows that there are not take the last one's place and are not stored.
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        starts[r] = live ? x_start(part.first + min(r, part.count - 1), o) : 0;
    }
    float gates[BATCHES];
    [[unroll]] for (uint which = GATED == 2 ? 0 : WHICH; which <= WHICH; which++) {
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            lanes[r] = vec4(0.0);
        }
        if (live) {
            add_columns(w_row(matrix_of(part, which), o), member);
        }
        [[unroll]] for (uint batch = 0; batch < BATCHES; batch++) {
            float sum = FAST ? joined_fast(batch * BATCH, member) : joined(batch * BATCH, member);
            if (GATED == 2 && which == 0) {
                gates[batch] = sum;
                continue;
            }
            if (SUMMED) {
                float whole = summed(sum, gl_WorkGroupID.y, team, member == 0, live);
                if (live && member == 0 && team % RANKS == 0) {
                    finish(whole, gl_WorkGroupID.y, o);
                }
                continue;
            }
            uint r = batch * BATCH + member;
            if (live && member < BATCH && r < part.count) {
                float number = GATED == 2 ? gated(gates[batch], sum) : sum;
                finish(number, y_row(part.first + r), o);
            }
        }
    }
}
