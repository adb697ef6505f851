// Sums in the order of exact mode (`sums.rs`): 32 lanes, of which an invocation holds four, so that a team of 8 invocations makes a sum.
// Member m of a team adds the terms 4m to 4m + 3 of every 32 to the components of a vec4, each product rounded before it is added; the
// teams of a workgroup then join their lanes here, all at the same time.

#define TEAM 8

shared vec4 sums_lanes[256];

// The sum of the lanes of the invocation's team. Every invocation of the workgroup calls it, the same number of times.
float join_lanes(vec4 lanes) {
    uint me = gl_LocalInvocationIndex;
    uint member = me % TEAM;
    sums_lanes[me] = lanes;
    barrier();
    [[unroll]] for (uint other = TEAM / 2; other > 0; other /= 2) {
        precise vec4 sum = sums_lanes[me];
        if (member < other) {
            sum += sums_lanes[me + other];
        }
        barrier();
        sums_lanes[me] = sum;
        barrier();
    }
    precise vec4 whole = sums_lanes[me - member];
    barrier();
    precise vec2 pair = whole.xy + whole.zw;
    precise float sum = pair.x + pair.y;
    return sum;
}
