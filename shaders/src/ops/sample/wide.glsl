// Numbers of 64 bits and more, a quotient that is rounded right, and draws: what the choice of a token counts with.

// 64 bits: x is the lower half.

uvec2 plus(uvec2 a, uvec2 b) {
    uint carry;
    uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

uvec2 minus(uvec2 a, uvec2 b) {
    uint borrow;
    uint low = usubBorrow(a.x, b.x, borrow);
    return uvec2(low, a.y - b.y - borrow);
}

bool less(uvec2 a, uvec2 b) {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

uvec2 product(uint a, uint b) {
    uint high, low;
    umulExtended(a, b, high, low);
    return uvec2(low, high);
}

// The upper half of a product of 128 bits.
uvec2 upper_product(uvec2 a, uvec2 b) {
    uvec2 middle = plus(product(a.x, b.y), uvec2(product(a.x, b.x).y, 0));
    uvec2 other = plus(product(a.y, b.x), uvec2(middle.x, 0));
    return plus(plus(product(a.y, b.y), uvec2(middle.y, 0)), uvec2(other.y, 0));
}

// The rounded quotient: a device's own may be off by some units of the last digit. What it leaves is computed without rounding.
float quotient(float a, float b) {
    float about = a / b;
    precise float scaled_a = about * 4097.0;
    precise float high_a = scaled_a - (scaled_a - about);
    precise float low_a = about - high_a;
    precise float scaled_b = b * 4097.0;
    precise float high_b = scaled_b - (scaled_b - b);
    precise float low_b = b - high_b;
    precise float whole = about * b;
    precise float part = low_a * low_b - (((whole - high_a * high_b) - low_a * high_b) - high_a * low_b);
    precise float left = (a - whole) - part;
    precise float result = about + left / b;
    return result;
}

// The least whole number that is not below the share of a total, a product that is first rounded to 53 bits.
uvec2 share_of(float share, uvec2 total) {
    uint bits = floatBitsToUint(share);
    if (int(bits) <= 0) {
        return uvec2(1, 0);
    }
    uint exponent = max(bits >> 23, 1);
    uint significand = (bits & 0x7fffffu) | (bits >> 23 > 0 ? 0x800000u : 0);
    uvec2 low = product(significand, total.x);
    uvec2 high = plus(product(significand, total.y), uvec2(low.y, 0));
    // The product in units of 2^-places: 96 bits.
    uvec3 number = uvec3(low.x, high);
    uint places = min(150 - exponent, 100);
    uint last = 0;
    bool lost = false;
    while (number.z > 0 || number.y >> 21 > 0) {
        lost = lost || last == 1;
        last = number.x & 1;
        number = uvec3(number.x >> 1 | number.y << 31, number.y >> 1 | number.z << 31, number.z >> 1);
        places--;
    }
    if (last == 1 && (lost || (number.x & 1) == 1)) {
        number.xy = plus(number.xy, uvec2(1, 0));
    }
    lost = false;
    for (; places > 0; places--) {
        lost = lost || (number.x & 1) == 1;
        number = uvec3(number.x >> 1 | number.y << 31, number.y >> 1, 0);
    }
    return plus(number.xy, uvec2(lost ? 1 : 0, 0));
}

// The least number of equal logits whose units reach what is wanted.
uint count_to(uvec2 wanted, uint units) {
    uint low = 1;
    uint high = VOCAB;
    while (low < high) {
        uint middle = low + (high - low) / 2;
        if (less(product(middle, units), wanted)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// 64 bits for a position under a seed: the generator of `philox.rs`.
uvec2 random(uvec2 key, uint position) {
    uvec4 words = uvec4(position, 0, 0, 0);
    for (uint round = 0; round < 10; round++) {
        uvec2 first = product(0xD2511F53u, words.x);
        uvec2 second = product(0xCD9E8D57u, words.z);
        words = uvec4(second.y ^ words.y ^ key.x, second.x, first.y ^ words.w ^ key.y, first.x);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return words.xy;
}
