// Sums in the order of exact mode (`sums.rs`) whose 32 lanes are at hand: lane j is component j % 4 of vector j / 4.

#define LANE_VECTORS 8

// Joins the lanes.
float joined(vec4 lanes[LANE_VECTORS]) {
    precise vec4 a = lanes[0] + lanes[4];
    precise vec4 b = lanes[1] + lanes[5];
    precise vec4 c = lanes[2] + lanes[6];
    precise vec4 d = lanes[3] + lanes[7];
    precise vec4 even = a + c;
    precise vec4 odd = b + d;
    precise vec4 whole = even + odd;
    precise vec2 pair = whole.xy + whole.zw;
    precise float sum = pair.x + pair.y;
    return sum;
}
