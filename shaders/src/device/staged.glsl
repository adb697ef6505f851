// Sums of `float term(uint col)`, which the kernel defines before this, in the order of `sums.glsl`.
//
// A wide sum is made by a whole workgroup, for long rows: all invocations compute terms, and one team adds them. Otherwise each team makes
// its own sum. The bits are the same.

#include "sums.glsl"

#define STAGED 2048

shared float staged[STAGED];

// The lanes of the first team, of a workgroup that makes one sum.
vec4 wide_lanes(uint count) {
    uint me = gl_LocalInvocationIndex;
    precise vec4 lanes = vec4(0.0);
    for (uint base = 0; base < count; base += STAGED) {
        uint left = min(count - base, STAGED);
        for (uint at = me; at < STAGED; at += gl_WorkGroupSize.x) {
            staged[at] = at < left ? term(base + at) : 0.0;
        }
        barrier();
        if (me < TEAM) {
            for (uint at = 4 * me; at < left; at += 4 * TEAM) {
                lanes += vec4(staged[at], staged[at + 1], staged[at + 2], staged[at + 3]);
            }
        }
        barrier();
    }
    return lanes;
}

// The lanes of the invocation's own team.
vec4 team_lanes(uint count) {
    precise vec4 lanes = vec4(0.0);
    for (uint at = 4 * (gl_LocalInvocationIndex % TEAM); at < count; at += 4 * TEAM) {
        uint left = count - at;
        lanes += vec4(term(at), left > 1 ? term(at + 1) : 0.0, left > 2 ? term(at + 2) : 0.0, left > 3 ? term(at + 3) : 0.0);
    }
    return lanes;
}

// The sum of `count` terms. Every invocation of the workgroup calls it; `wide` is one for all of them, and so is `count` where it is true.
float sum_of_terms(bool wide, uint count) {
    vec4 lanes = wide ? wide_lanes(count) : team_lanes(count);
    float sum = join_lanes(lanes);
    if (wide) {
        if (gl_LocalInvocationIndex == 0) {
            staged[0] = sum;
        }
        barrier();
        sum = staged[0];
        barrier();
    }
    return sum;
}
